"""Weighted sums of whole outcomes and the variance from pairs of them are exact."""

from fractions import Fraction

import numpy as np
import pytest

from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.weighted_sum import exact_dot, linear_form

STEPS_BITS = 24


@pytest.mark.parametrize("size", [1e-9, 1.0, 3e7])
def test_the_total_is_that_of_the_truncated_coefficients(size):
    rng = np.random.default_rng(0)
    c = rng.normal(size=500) * size
    y = rng.integers(0, 2**24 + 1, 500)
    form = linear_form(c)
    exact = [Fraction(int(u)) / Fraction(2) ** form.bits for u in form.units]
    assert form.total(y) == sum(a * int(b) for a, b in zip(exact, y, strict=True))
    assert form.largest == max(map(abs, exact))
    assert form.squares == sum(a * a for a in exact)
    for a, b in zip(exact, c, strict=True):
        assert abs(a) <= abs(Fraction(float(b)))  # towards zero
        assert abs(float(a) - b) <= 2**-28 * np.abs(c).max()


def test_sums_of_the_largest_products_do_not_overflow():
    n = 3_000_000
    big = np.full(n, 2**29 - 1, dtype=np.int64)
    assert exact_dot(big, big) == n * (2**29 - 1) ** 2
    assert exact_dot(big, -big) == -n * (2**29 - 1) ** 2


def test_the_paired_variance_agrees_with_floats():
    rng = np.random.default_rng(1)
    c = rng.normal(size=7)
    first, second = np.array([0, 2, 4, 4]), np.array([1, 3, 5, 6])  # row 4 is in two pairs
    y = rng.integers(0, 2**24 + 1, 7)
    paired = paired_variance(c, first, second)
    part = c**2
    part[4] /= 2
    gap = (y[first] - y[second]) / 2**24
    weight = part[first] + part[second]
    assert float(paired.value(y, STEPS_BITS)) == pytest.approx((weight * gap**2 / 2).sum(), rel=1e-6)
    assert float(paired.largest_row(7)) == pytest.approx(
        max(weight[0], weight[1], weight[2] + weight[3]), rel=1e-6
    )
