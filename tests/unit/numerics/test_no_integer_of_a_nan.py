"""Contributions of rows stay in their bounds and on their grid where models of huge noise make them NaN or infinite."""

import numpy as np

from counterveil.published.doubly_robust import whole_parts

SPECIAL = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 0.25])


def test_parts_of_a_bound_are_total():
    with np.errstate(invalid="raise", over="ignore"):
        found = whole_parts(SPECIAL, 0.5)
    one = found[1]
    assert found.tolist() == [0, one, -one, one, -one, 0, one // 2]
    assert one > 0
