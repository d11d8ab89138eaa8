"""The means of both arms behind an effect under the auditor, on worst neighbours in either arm."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.linear.test_arm_pair import ARM, effect, table

from counterveil.audit import Cloud, ExactTester, ThresholdTester, audit
from counterveil.privacy import Budget
from counterveil.session import Gate, Plan, SeededNoise
from counterveil.session.plan import in_parallel
from counterveil.statistics.linear.arm_pair import MEANS, VARIANCES, release, split_by_arm
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)
PLAN = in_parallel(
    Plan.split(CLAIM, {"effect": Fraction(3, 4), "variance": Fraction(1, 4)}, "staircase"),
    {"effect": MEANS, "variance": VARIANCES},
)


@dataclass(frozen=True)
class BothMeans:
    """Four released numbers: mean and variance of either arm."""

    form: str
    gate: type[Gate] = Gate

    def _pair(self, dataset):
        pair = split_by_arm(table(dataset), effect(self.form))
        exact = pair.values()
        return replace(pair, values=lambda: exact)

    def sample(self, dataset, count, rng):
        source, pair = SeededNoise(int(rng.integers(2**62))), self._pair(dataset)
        out = np.empty((count, 4))
        for row in out:
            found = release(self.gate(PLAN, source), pair.bounds, pair.values(), True)
            row[:] = [float(part) for arm in found for part in arm]
        return out

    def log_density(self, dataset, outputs):
        pair, total, part = self._pair(dataset), 0.0, 3 if self.gate is WeakGate else 1
        for arm, ((mean, variance), bounds) in enumerate(zip(pair.values(), pair.bounds, strict=True)):
            noise = PLAN.noise(MEANS[arm], bounds.estimate / part)
            total = total + noise.log_density(outputs[:, 2 * arm] - float(mean))
            noise = PLAN.noise(VARIANCES[arm], bounds.variance / part)
            total = total + noise.log_density(outputs[:, 2 * arm + 1] - float(variance))
        return total


def pairs():
    """Return all outcomes at 0, and one of largest coefficient at the other end of the range, in either arm."""
    return [((0,) * 7, tuple(2 * int(i == row) for i in range(len(ARM)))) for row in (0, 5)]


@pytest.mark.parametrize("form", ["pairs", pytest.param("lines", marks=pytest.mark.slow)])
def test_both_means_keep_the_claim_of_one_and_a_third_of_the_noise_does_not(form):
    testers = [ExactTester(Cloud(draws=150))]
    report = audit(CLAIM, BothMeans(form), BothMeans(form, WeakGate), pairs(), testers, seed=1)
    assert report.passed, str(report)


@pytest.mark.slow
def test_black_box():
    testers = [ThresholdTester(samples=800)]
    found, weak = BothMeans("pairs"), BothMeans("pairs", WeakGate)
    report = audit(CLAIM, found, weak, pairs()[:1], testers, seed=2)
    assert report.passed, str(report)
