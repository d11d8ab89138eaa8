"""Every claim of the gallery is caught, and what is said to be true instead passes the same test."""

import numpy as np
import pytest

from counterveil.audit import Given, ThresholdTester
from counterveil.mechanisms import Laplace
from counterveil.privacy import Budget
from counterveil_lab.attacks.gallery import CONFIDENCE, GALLERY, FloatingPointLaplace, Noisy
from counterveil_lab.attacks.mechanisms import Additive


@pytest.mark.parametrize("name", GALLERY)
def test_a_claim_is_broken_at_the_stated_confidence(name):
    finding = GALLERY[name].examine()
    assert finding.violated
    assert finding.confidence >= CONFIDENCE


def test_a_true_claim_in_the_same_form_is_not_broken():
    right = Noisy(lambda values: float(np.mean(values)), lambda values: 1 / len(values))
    entry = GALLERY["bounds read off the data"]
    finding = entry.tester.examine(right, entry.pair, Budget(1), error=0.05, rng=np.random.default_rng(1))
    assert not finding.violated


def test_exact_draws_have_no_telling_last_bits():
    class LastBits(Additive):
        def sample(self, dataset, count, rng):
            outputs = super().sample(dataset, count, rng)
            fine = np.ldexp(outputs, 53)
            return ((np.abs(outputs) < 0.25) & (fine != np.floor(fine))).astype(float)

    tester = ThresholdTester(2000, (Given(lambda rows: rows[:, 0]),))
    pair = ((0.0, 1.0), (1.0, 1.0))
    rng = np.random.default_rng(1)
    assert not tester.examine(LastBits(Laplace(1, 1)), pair, Budget(1), error=0.05, rng=rng).violated
    assert tester.examine(FloatingPointLaplace(), (0.0, 1.0), Budget(1), error=0.05, rng=rng).violated
