"""What is kept between matchings, and what compiled loops write, is what is found afresh."""

from __future__ import annotations

import numpy as np
import pytest

from counterveil.numerics.arm_loops import add_moments
from counterveil.numerics.loops import turn
from counterveil.numerics.matching import SortedArms


@pytest.mark.parametrize("seed", range(6))
def test_a_matching_after_a_free_one_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    treated, score = rng.random(300) < 0.3, rng.random(300).round(2 if seed % 2 else 9)
    kept = SortedArms(treated, score)
    free = kept.match(3)
    for limit in range(1, int(free.uses.max()) + 2):
        one, other = kept.match(3, limit, limit), SortedArms(treated, score).match(3, limit, limit)
        assert np.array_equal(one.coefficients, other.coefficients)
        assert np.array_equal(one.uses, other.uses)
        assert np.array_equal(one.sizes, other.sizes)
        assert one.at_limit == other.at_limit


def test_moments_of_both_arms() -> None:
    rng = np.random.default_rng(1)
    values, treated = rng.normal(size=(50, 4)), rng.random(50) < 0.4
    one, other, centre = rng.random(50), rng.random(50), rng.normal(size=4)
    sums, squares = np.zeros((4, 4)), np.zeros((4, 4))
    add_moments(values, treated, one, other, centre, sums, squares)
    weights = np.stack([w * inside for w in (one, other) for inside in (treated, ~treated)])
    assert np.allclose(sums, weights @ (values - centre), rtol=1e-12)
    assert np.allclose(squares, weights @ (values - centre) ** 2, rtol=1e-12)


def test_columns_are_turned_into_rows() -> None:
    rng = np.random.default_rng(2)
    columns, mean, factor = rng.normal(size=(3, 150)), rng.normal(size=3), rng.random(3)
    rows = np.empty((150, 5))
    turn(columns, mean, factor, rows[:, 1:4])
    assert np.array_equal(rows[:, 1:4], ((columns - mean[:, None]) * factor[:, None]).T)
