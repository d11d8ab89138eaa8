"""Contributions of rows stay in their bounds and on their grid where models of huge noise make them NaN or infinite."""

import numpy as np

from counterveil.numerics.products import projected_steps
from counterveil.published.proved_cross_fit import whole_parts

SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 0.25])


def test_parts_of_a_bound_are_total():
    with np.errstate(invalid="raise", over="ignore"):
        found = whole_parts(SPECIAL, 0.5)
    one = found[1]
    assert found.tolist() == [0, one, -one, one, -one, 0, one // 2]
    assert one > 0


def test_projections_are_total():
    rows = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        found = projected_steps(rows, np.array([np.inf, -np.inf]), 1.0, 4)
    # Infinity times zero is a NaN as well.
    assert found.tolist() == [0, 0, 0, 0]
    assert projected_steps(rows, np.array([0.5, -0.25]), 1.0, 4).tolist() == [4, 8, -4, 0]
