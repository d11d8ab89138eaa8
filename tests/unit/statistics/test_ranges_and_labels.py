"""Bought ranges and labels: the public grid, what one row changes, and what is read off noisy counts."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.data.cells import from_array, from_cells
from counterveil.privacy import Budget
from counterveil.session import Gate, Kind, Plan, SeededNoise
from counterveil.statistics.ranges_and_labels import (
    CELLS,
    EDGES,
    label_counts,
    range_counts,
    range_of,
    release_labels,
    release_range,
)


def column(cells):
    return from_cells(list(cells), "x")


def found_range(cells, epsilon=1, seed=0):
    plan = Plan.split(Budget(epsilon), {"x": Fraction(1)}, "laplace", {"x": Kind.CELLS})
    counts = release_range(Gate(plan, SeededNoise(seed)), "x", column(cells))
    return range_of(counts, plan.amount("x", Kind.CELLS))


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (18, 90, (10, 100)),
        (0, 1, (0, 1)),
        (0, 100, (0, 100)),
        (-30, 400, (-50, 500)),
        (-7, -3, (-10, -2)),
        (0.003, 0.04, (0, Fraction(1, 20))),
        (0.015, 0.04, (Fraction(1, 100), Fraction(1, 20))),
        (-90, 0, (-100, 0)),
        (3e9, 9e11, (2 * 10**9, 5 * 10**9)),
    ],
)
def test_ranges_are_round_numbers_around_the_data(low, high, wanted):
    # On a logarithmic scale where one is possible, so that every cell of the grid has many rows.
    spread = np.geomspace(low, high, 4000) if low > 0 else np.linspace(low, high, 4000)
    assert found_range(spread.tolist()) == wanted


def test_few_rows_far_away_do_not_widen_the_range():
    assert found_range([50.0] * 2000 + [1e9]) == (20, 50)


def test_without_numbers_there_is_no_range():
    assert found_range(["x"] * 500) is None
    assert found_range([0.0] * 500) is None
    assert found_range([1.0, 2.0]) is None


def test_every_row_falls_into_one_cell():
    cells = [
        0,
        -0.0,
        1e-9,
        -1e-9,
        1e300,
        -1e300,
        "1",
        "x",
        None,
        "NaN",
        True,
        float("inf"),
        *map(float, EDGES),
    ]
    assert range_counts(column(cells)).sum() == len(cells)
    assert len(range_counts(column(["x"]))) == CELLS
    numbers = from_array(np.array([0.0, np.nan, 7.0]), "x")
    assert np.flatnonzero(range_counts(numbers)).size == 3


def test_one_row_moves_two_counts_by_one():
    values = [None, "a", "b", "1", "1.0", 2.5, -2.5]
    for rows in product(values, repeat=2):
        for other in values:
            one, two = column(rows), column((other, rows[1]))
            moved = np.abs(range_counts(one) - range_counts(two))
            assert moved.sum() <= 2
            counts = [label_counts(each) for each in (one, two)]
            assert (
                sum(abs(counts[0].get(key, 0) - counts[1].get(key, 0)) for key in {**counts[0], **counts[1]})
                <= 2
            )


def test_labels_are_numbers_where_they_are_written_so_and_only_those_that_occur():
    assert label_counts(column(["1", "1.0", "yes", "yes", None, "NA", "x" * 500])) == {1: 2, "yes": 2}
    assert label_counts(from_array(np.array([1, 1, 2]), "x")) == {1: 2, 2: 1}


def test_released_labels_stand_in_the_order_of_their_noisy_counts():
    plan = Plan.split(Budget(1, "1e-6"), {"x": Fraction(1)}, "laplace", {"x": Kind.LABELS})
    cells = ["c"] * 900 + ["a"] * 300 + ["b"] * 600 + ["rare"]
    pairs = release_labels(Gate(plan, SeededNoise(2)), "x", column(cells))
    assert [label for label, _ in pairs] == ["c", "b", "a"]
    assert all(abs(count - wanted) < 40 for (_, count), wanted in zip(pairs, (900, 600, 300), strict=True))
