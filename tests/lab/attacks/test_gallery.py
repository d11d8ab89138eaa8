"""Every claim of the gallery is caught, what is true instead passes; replay of several questions finds faults."""

import numpy as np
import pytest

from counterveil.accounting import accounts, ledger
from counterveil.mechanisms import Laplace
from counterveil.privacy import Budget
from counterveil_lab.attacks.command import examine
from counterveil_lab.attacks.gallery import CONFIDENCE, GALLERY, SCENARIOS, FloatingPointLaplace, Noisy
from counterveil_lab.attacks.mechanisms import Additive
from counterveil_lab.audit import Given, ThresholdTester


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


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_differs_and_without_the_rule_something_does(name):
    found = examine(SCENARIOS[name])
    assert found.report.passed, str(found.report)
    assert found.report.rows[0].ours.found == 0 < found.report.rows[0].weakened.found


def without_access_policies(monkeypatch):
    for module in (accounts, ledger):
        monkeypatch.setattr(module, "check_study", lambda *_, **__: None)


def test_an_account_that_is_bound_to_no_study_shows_what_it_protected(monkeypatch):
    """Finding B4: a second study made the outcome of the first a covariate, and its groups were counted."""
    without_access_policies(monkeypatch)
    found = examine(SCENARIOS["account/two studies"])
    assert found.verdict.value == "violated"
    assert "relapse" in found.report.rows[0].ours.witness
