"""Earlier numbers taken off outcomes: moments, their bounds and their audit, and the numbers that are compared."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.statistics.outcome_place import SLOPE_PARTS, Outcomes, bounds, exact_moments, moment_sums

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
    study = cv.Study("t", outcomes={"a": (0, 1), "b": (0, 3)}, baseline={"b": "b0"}, randomised=True)
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
