"""Brute force: no changed outcome moves a map of residuals, their squares or their counts further than claimed."""

from fractions import Fraction
from itertools import product
from math import isqrt

import numpy as np
import pytest
from tests.unit.rows.attached import noting

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.linear.series_features import functions_of
from counterveil.numerics.arrays import sqrt_up
from counterveil.privacy import Unit
from counterveil.rows.linear.linear_map import MAP_STEP, Residuals, map_sums
from counterveil.rows.public import PublicRows
from counterveil.settings import Series

STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)})
ROWS = 64
MAP_VALUES = (0.0, 0.5, 1.0)
# Rows whose outcomes take every value; the others stay at one.
MOVED = 4


def table(outcomes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.full(ROWS, 0.25)
    y[: len(outcomes)] = outcomes
    frame = {"t": np.arange(ROWS) % 2, "x": rng.uniform(size=ROWS), "y": y}
    return Table.attach(frame, STUDY)


def public(made):
    return PublicRows(made, Unit.OUTCOME)


def worst(clip, prediction, columns, white):
    """Return the largest moves of map, squares and counts over all data sets and the claim's bounds."""
    found = {}
    for outcomes in product(MAP_VALUES, repeat=MOVED):
        own = table(outcomes)
        functions = functions_of(public(own), Series(degree=1))
        residuals = Residuals.of(public(own), prediction, clip)
        steps = residuals.steps(own)
        sums = map_sums(steps, functions.mapped(columns, white), len(white))
        squares = [int((steps[own.treated == arm] ** 2).sum()) for arm in (False, True)]
        plain = Residuals.of(public(own), prediction)
        count = int(np.count_nonzero(np.abs(plain.steps(own)) <= OUTCOME_STEPS // 4))
        found[outcomes] = (sums, squares, count, residuals)
    largest = [0.0, 0.0, 0]
    for outcomes, (sums, squares, count, _) in found.items():
        for place, value in product(range(MOVED), MAP_VALUES):
            other = found[(*outcomes[:place], value, *outcomes[place + 1 :])]
            gap = [a - b for a, b in zip(sums[0], other[0][0], strict=True)]
            largest[0] = max(largest[0], sum(step * step for step in gap))
            apart = [a - b for a, b in zip(squares, other[1], strict=True)]
            largest[1] = max(largest[1], sum(step * step for step in apart))
            largest[2] = max(largest[2], abs(count - other[2]))
    sums, _, _, residuals = found[(0.0,) * MOVED]
    bound = residuals.bounds(sqrt_up(Fraction(sums[1])) * Fraction(MAP_STEP))
    return largest, bound, sums


@pytest.mark.parametrize(("clip", "middle"), [(0.2, 0.5), (0.4, 0.25), (2.0, 0.0)])
def test_no_change_exceeds_the_claim(clip, middle):
    functions = functions_of(public(table((0.0,) * MOVED)), Series(degree=1))
    columns = np.arange(2 * functions.size)
    white = np.random.default_rng(3).normal(size=(3, len(columns)))
    largest, bound, _ = worst(clip, np.full(ROWS, middle), columns, white)
    unit = table((0.0,)).outcome_unit
    # In steps of the outcome and of the map; squares of lengths, so that all is in integers.
    claim = bound.values / Fraction(MAP_STEP) / unit
    assert largest[0] <= claim**2
    assert largest[1] <= (bound.squares / unit**2) ** 2
    assert largest[2] <= bound.counts


def test_every_claim_is_attained():
    """The longest column among the rows that move, a clip that both ends reach, and a count that is crossed."""
    own = table((0.0,) * MOVED)
    functions = functions_of(public(own), Series(degree=1))
    # One number that only looks at the effect's constant: a treated row and a control row are equally long.
    columns = np.array([0])
    white = np.ones((1, 1))
    largest, bound, sums = worst(0.25, np.full(ROWS, 0.5), columns, white)
    unit = own.outcome_unit
    assert isqrt(sums[1]) ** 2 == sums[1]
    assert largest[0] == (bound.values / Fraction(MAP_STEP) / unit) ** 2
    assert largest[2] == bound.counts
    largest, bound, _ = worst(0.5, np.zeros(ROWS), columns, white)
    assert largest[1] == (bound.squares / unit**2) ** 2
    assert functions.size == 2


def test_sums_are_those_of_exact_arithmetic():
    own = table((0.1, 0.9, 0.3, 1.0), seed=5)
    functions = functions_of(public(own), Series(degree=1))
    columns = np.arange(2 * functions.size)
    white = np.random.default_rng(1).normal(size=(2, len(columns)))
    white /= np.linalg.norm(functions.sample @ white.T, axis=1).max()
    residuals = Residuals.of(public(own), np.full(ROWS, 0.4), 0.3)
    found = map_sums(residuals.steps(own), functions.mapped(columns, white), 2)
    moved = np.concatenate([z[:, columns] @ white.T for _, z in functions.weighted_blocks()])
    steps = np.trunc(moved * ((1 - 2.0**-40) / MAP_STEP)).astype(int)
    expected = [
        sum(int(w) * int(r) for w, r in zip(column, residuals.steps(own), strict=True)) for column in steps.T
    ]
    assert found[0] == expected
    assert found[1] == max(sum(int(w) ** 2 for w in row) for row in steps)
    # Columns that are too long for their bits are shortened, and all sums stay within what doubles hold.
    long = map_sums(residuals.steps(own), functions.mapped(columns, 1000 * white), 2)
    assert 0.999 * 4**17 < long[1] <= 4**17


def test_residuals_are_clipped_in_whole_steps():
    own = table((0.0, 1.0, 0.5))
    residuals = Residuals.of(public(own), np.full(ROWS, 0.5), 0.1)
    assert residuals.steps(own)[:3].tolist() == [-residuals.clip_steps, residuals.clip_steps, 0]
    assert residuals.clip == pytest.approx(0.1, abs=1e-6)
    assert residuals.clip >= 0.1
    # Without a clip nothing is cut, wherever the prediction lies.
    beyond = Residuals.of(public(own), np.full(ROWS, 7.0))
    assert beyond.steps(own)[:3].tolist() == [-OUTCOME_STEPS, 0, -OUTCOME_STEPS // 2]


def test_releases_are_the_sums_at_their_bounds():
    own = table((0.1, 0.9, 0.3, 1.0), seed=5)
    functions = functions_of(public(own), Series(degree=1))
    residuals = Residuals.of(public(own), np.full(ROWS, 0.4), 0.3)
    steps = residuals.steps(own)
    unit = own.outcome_unit
    gate = noting(own)
    residuals.release_sums(gate, "sums")
    assert gate.values["sums"] == [int(steps[own.treated == arm].sum()) * unit for arm in (False, True)]
    assert gate.sensitivity["sums"] == 2 * residuals.clip_steps * unit
    squares, _ = residuals.release_squares(gate, "squares")
    assert gate.values["squares"] == [
        int((steps[own.treated == arm] ** 2).sum()) * unit**2 for arm in (False, True)
    ]
    assert gate.sensitivity["squares"] == (residuals.clip_steps * unit) ** 2
    assert squares == pytest.approx(
        [np.mean((steps[own.treated == arm] * float(unit)) ** 2) for arm in (0, 1)]
    )
    columns = np.arange(2 * functions.size)
    vectors = list(functions.mapped(columns, np.ones((1, len(columns)))))
    (total,), longest = map_sums(steps, vectors, 1)
    residuals.release_map(gate, "map", vectors, 1)
    assert gate.values["map"] == [total * unit * Fraction(MAP_STEP)]
    bounds = residuals.bounds(sqrt_up(Fraction(longest)) * Fraction(MAP_STEP))
    assert gate.sensitivity["map"] == bounds.values
