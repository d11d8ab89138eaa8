"""The releases behind an outcome-level function under the auditor: whole vectors on worst neighbours.

Every sample runs the estimator's own release code through a real gate; the weakened copy sees a gate that draws a third
of every noise and must be caught.
"""

import numpy as np
import pytest
from tests.statistical.released_alone import ReleasedAlone, check
from tests.unit.statistics.linear.test_linear_map import ROWS, table

from counterveil.numerics.shrinkage import matrix_power, noise_shape
from counterveil.privacy import Budget
from counterveil.settings import Series
from counterveil.statistics.linear.functions import (
    Residuals,
    functions_of,
    release_levels,
    release_map,
    release_squares,
)

FUNCTIONS = functions_of(table((0.0,)), Series(degree=1))
COLUMNS = np.arange(2 * FUNCTIONS.size)
SOLVE = np.linalg.inv(FUNCTIONS.gram + 1e-6 * np.eye(len(COLUMNS)))
SHAPE = noise_shape(FUNCTIONS.sample @ SOLVE.T, FUNCTIONS.gram / ROWS, 12)
WHITE = matrix_power(SHAPE, -0.5) @ SOLVE
# The row whose column is the longest: its outcome moves the whitened map most.
LONGEST = int(np.argmax(np.linalg.norm(FUNCTIONS.sample @ WHITE.T, axis=1)))


def with_outcome(value):
    """Return the table whose row of the longest column has this outcome."""
    outcomes = np.full(ROWS, 0.25)
    outcomes[LONGEST] = value
    return table(outcomes)


def shaped_map(gate, value):
    residuals = Residuals.of(with_outcome(value), np.full(ROWS, 0.5), 0.3)
    return release_map(gate, "r", FUNCTIONS, COLUMNS, WHITE, residuals)


CASES = {
    "shaped map": (shaped_map, (0.0, 1.0)),
    "levels": (lambda gate, value: release_levels(gate, "r", with_outcome(value)), (0.0, 1.0)),
    "squares": (
        lambda gate, value: release_squares(
            gate, "r", Residuals.of(with_outcome(value), np.zeros(ROWS), 0.5)
        ),
        (0.0, 0.5),
    ),
}


GAUSSIAN, PURE = Budget("3/2", "1e-2"), Budget(2)


def released(name, claim, at_once=False):
    release, pair = CASES[name]
    return ReleasedAlone("r", lambda gate, one, pure: release(gate, one), pair, claim, at_once=at_once)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("claim", [GAUSSIAN, PURE])
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(name, claim):
    check(released(name, claim), 900, 1)


@pytest.mark.parametrize("name", list(CASES))
def test_no_release_breaks_its_claim_over_many_samples(name):
    check(released(name, GAUSSIAN, at_once=True), 20_000, 4)


def test_worst_neighbours_move_the_map_by_all_that_is_claimed():
    """The pair above is the worst there is: it attains the bound but for truncation."""
    (one, bound), (two, _) = (released("shaped map", GAUSSIAN).handed_over(value) for value in (0.0, 1.0))
    moved = np.linalg.norm([float(a - b) for a, b in zip(one, two, strict=True)])
    assert moved / float(bound) == pytest.approx(1, abs=1e-9)
