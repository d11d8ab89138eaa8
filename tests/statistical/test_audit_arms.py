"""The means of several arms under the auditor, on worst neighbours in every arm.

Every sample runs the estimator's own release code through a real gate under a parallel plan; the weakened
copy sees a gate that draws for a third of the sensitivity and must be caught.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from counterveil.audit import Cloud, ExactTester, ThresholdTester, audit
from counterveil.data import Study, Table
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.linear.arm_design import Design, WeightedArm, exact_values, plain_arms
from counterveil.statistics.linear.arm_means import arms_plan, release
from counterveil_lab.attacks.watching import WeakGate

CLAIM = Budget(2)
SHARE = Fraction(1, 4)
STUDY = Study("t", "y", (0, 1), arms=(0, 1, 2), reference=0)
ARM = (0, 0, 1, 1, 2, 2, 2)
QUESTION = Question.ask(
    protects="outcome",
    epsilon=CLAIM.epsilon,
    delta=0,
    estimand="ATE",
    method="difference_in_means",
    level=0.95,
    mechanism="staircase",
    request_id=None,
)
PLAN = arms_plan(QUESTION, SHARE, 3)


def table(outcomes):
    return Table.attach({"t": ARM, "y": np.array(outcomes, dtype=float)}, STUDY)


def plain():
    return plain_arms(table([0] * len(ARM)))


def weighted():
    rows = table([0] * len(ARM))
    made = []
    for code, coefficients in enumerate(([0.3, 0.7], [0.5, 0.5], [0.2, 0.2, 0.6])):
        inside = np.flatnonzero(rows.arm == code)
        places = np.arange(len(inside))
        made.append(WeightedArm.of(rows, inside, np.array(coefficients), (places[:-1], places[1:])))
    return made


@dataclass(frozen=True)
class ArmMeans:
    """Six released numbers: mean and variance of every arm."""

    statistics: tuple
    gate: type[Gate] = Gate

    def sample(self, dataset, count, rng):
        source, known = SeededNoise(int(rng.integers(2**62))), self.values(dataset)
        bounds = [one.sensitivity for one in self.statistics]
        out = np.empty((count, 6))
        for row in out:
            released = release(self.gate(PLAN, source), bounds, known, True)
            row[:] = [float(part) for pair in released for part in pair]
        return out

    def values(self, dataset):
        return exact_values(table(dataset), Design("", self.statistics, ()))

    def log_density(self, dataset, outputs):
        known, total = self.values(dataset), 0.0
        part = 3 if self.gate is WeakGate else 1
        for code, one in enumerate(self.statistics):
            mean, variance = known[code]
            bounds = one.sensitivity
            for place, (name, value, bound) in enumerate(
                [("mean", mean, bounds.estimate), ("variance", variance, bounds.variance)]
            ):
                noise = PLAN.noise(f"{name} of arm {code}", bound / part)
                total = total + noise.log_density(outputs[:, 2 * code + place] - float(value))
        return total


def pairs():
    """Return, for every arm, all outcomes at 0 and one of the arm's flipped to 1."""
    still = (0,) * len(ARM)
    return [(still, tuple(int(i == row) for i in range(len(ARM)))) for row in (1, 3, 6)]


@pytest.mark.parametrize(
    "statistics",
    [pytest.param(tuple(plain()), marks=pytest.mark.slow), tuple(weighted())],
    ids=["plain", "weighted"],
)
def test_all_arms_together_keep_the_claim_of_one_and_a_third_of_the_noise_does_not(statistics):
    report = audit(
        CLAIM,
        ArmMeans(statistics),
        ArmMeans(statistics, WeakGate),
        pairs(),
        [ExactTester(Cloud(draws=120))],
        seed=1,
    )
    assert report.passed, str(report)


@pytest.mark.slow
def test_black_box():
    statistics = tuple(plain())
    report = audit(
        CLAIM,
        ArmMeans(statistics),
        ArmMeans(statistics, WeakGate),
        pairs()[:1],
        [ThresholdTester(samples=800)],
        seed=2,
    )
    assert report.passed, str(report)


def test_contrasts_would_not_be_parallel():
    """An outcome of the reference moves every contrast: the same plan on contrasts would break the claim."""
    rows = [table(one) for one in pairs()[0]]
    means = [[mean for mean, _ in exact_values(one, Design("", plain(), ()))] for one in rows]
    contrasts = [[mean - found[0] for mean in found[1:]] for found in means]
    moved = [abs(a - b) for a, b in zip(*contrasts, strict=True)]
    assert all(change > 0 for change in moved)
