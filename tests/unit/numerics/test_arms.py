"""Exact arm totals."""

import numpy as np
import pytest

from counterveil.numerics.columns import Arm, arm_totals


@pytest.mark.parametrize("n", [2, 7, 8191, 8192, 8193, 50_000])
def test_totals_equal_python_integers(n):
    rng = np.random.default_rng(n)
    treated = rng.random(n) < 0.4
    outcome = rng.integers(0, 2**24 + 1, n)
    arms = arm_totals(treated, outcome)
    for arm, chosen in ((arms.treated, treated), (arms.control, ~treated)):
        values = [int(y) for y in outcome[chosen]]
        assert arm == Arm(len(values), sum(values), sum(y * y for y in values))
    assert arms.count == n


def test_largest_values_do_not_overflow():
    n = 100_000
    arms = arm_totals(np.ones(n, dtype=bool), np.full(n, 2**24, dtype=np.int64))
    assert arms.treated.squares == n * 2**48
    assert arms.control == Arm(0, 0, 0)
