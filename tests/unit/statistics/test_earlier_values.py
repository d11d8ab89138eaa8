"""Earlier numbers taken off outcomes: moments, their bounds and their audit, and the numbers that are compared."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import counterveil as cv
from counterveil.audit import Cloud, ExactTester, audit
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.outcome_list import SLOPE_PARTS, Outcomes, bounds, exact_moments, moment_sums

STEPS = [0, OUTCOME_STEPS // 2, OUTCOME_STEPS]
REST = (np.array([OUTCOME_STEPS, 5]), np.array([7, 0]))


def moments(x, y):
    return exact_moments(moment_sums(np.append(REST[0], x), np.append(REST[1], y)), len(REST[0]) + 1)


def test_one_row_moves_the_moments_by_their_bounds_at_most():
    found = [moments(x, y) for x, y in product(STEPS, repeat=2)]
    largest = [Fraction(0)] * 4
    for one, other in product(found, repeat=2):
        moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
        assert all(change <= most for change, most in zip(moved, bounds(3), strict=True))
        largest = [max(pair) for pair in zip(largest, moved, strict=True)]
    assert largest == bounds(3)


def test_what_is_compared_stays_in_its_steps_for_every_slope():
    study = cv.Study("t", outcomes={"a": (0, 1), "b": (0, 3)}, earlier={"b": "b0"}, randomised=True)
    grid = np.array(list(product(STEPS, repeat=2))) / OUTCOME_STEPS
    arm = np.arange(len(grid)) % 2
    table = Table.attach({"t": arm, "a": arm, "b": 3 * grid[:, 0], "b0": 3 * grid[:, 1]}, study)
    ends = ((Fraction(0), Fraction(1)), (Fraction(0), Fraction(3)))
    for slope in range(SLOPE_PARTS + 1):
        listed = Outcomes(("a", "b"), ends, (Fraction(1),) * 2, (None, 1), (0, slope))
        plain, adjusted = listed.numbers(table)
        assert adjusted.min() >= 0
        assert adjusted.max() <= OUTCOME_STEPS
        assert np.array_equal(plain, table.outcome)
        part = slope / SLOPE_PARTS
        wanted = 3 * (grid[:, 0] + part * (1 - grid[:, 1]))
        assert float(listed.widths[1]) == pytest.approx(3 * (1 + part))
        assert adjusted / OUTCOME_STEPS * float(listed.widths[1]) == pytest.approx(wanted, abs=1e-5)


@dataclass(frozen=True)
class Moments:
    """Four released moments; a data set is the earlier number and the outcome of one row."""

    plan: Plan
    part: int = 1

    def sample(self, dataset, count, rng):
        source, values = SeededNoise(int(rng.integers(2**62))), moments(*dataset)
        limits, ones = [bound / self.part for bound in bounds(3)], [Fraction(1)] * 4
        draws = (
            Gate(self.plan, source).release_several("slopes", values, limits, ones) for _ in range(count)
        )
        return np.array([[float(one) for one in drawn] for drawn in draws])

    def log_density(self, dataset, outputs):
        noises = self.plan.several_noise("slopes", bounds(3), [Fraction(1)] * 4)
        scale = np.array([float(one.sensitivity) / self.part for one in noises])
        unit = type(noises[0])(1, noises[0].epsilon, 4)
        centre = np.array([float(value) for value in moments(*dataset)])
        return unit.log_density((outputs - centre) / scale) - np.log(scale).sum()


def test_the_moments_keep_their_claim_and_a_third_of_the_noise_does_not():
    plan = Plan.split(Budget(1), {"slopes": Fraction(1)}, "staircase", {"slopes": Kind.SEVERAL})
    pairs = [((0, 0), (OUTCOME_STEPS, OUTCOME_STEPS)), ((0, OUTCOME_STEPS), (OUTCOME_STEPS, OUTCOME_STEPS))]
    testers = [ExactTester(Cloud(draws=150))]
    report = audit(Budget(1), Moments(plan), Moments(plan, 3), pairs, testers, seed=1)
    assert report.passed, str(report)
