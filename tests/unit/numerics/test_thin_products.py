"""Thin products equal the library's own."""

import numpy as np
import pytest

from counterveil.numerics.products import Gram, gram, sums, times


@pytest.mark.parametrize(
    ("n", "p", "q"), [(1, 1, 1), (1000, 7, 3), (5001, 41, 41), (300, 200, 20), (90, 230, 2)]
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products(n, p, q, kind):
    rng = np.random.default_rng(n + p)
    matrix, small = rng.normal(size=(n, p)).astype(kind), rng.normal(size=(p, q))
    exact = matrix.astype(float)
    assert np.allclose(gram(matrix), exact.T @ exact, rtol=1e-10, atol=1e-8)
    assert np.allclose(times(matrix, small), exact @ small, rtol=1e-10, atol=1e-8)
    weights = rng.normal(size=(2, n))
    assert np.allclose(sums(matrix, weights), weights @ exact, rtol=1e-10, atol=1e-8)
    assert np.allclose(sums(matrix, weights[0]), weights[0] @ exact, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("width", [1, 30, 210])
def test_a_sum_of_products_is_that_of_all_rows(width):
    rng = np.random.default_rng(width)
    matrix = rng.normal(size=(700, width))
    total = Gram(width)
    for start in range(0, 700, 300):
        total.add(matrix[start : start + 300])
    np.testing.assert_allclose(total.whole(), matrix.T @ matrix, atol=1e-10)
    np.testing.assert_array_equal(total.whole(), total.whole().T)


@pytest.mark.parametrize("width", [30, 210])
def test_single_precision_is_near(width):
    matrix = np.random.default_rng(width).normal(size=(700, width))
    total = Gram(width, np.float32)
    total.add(matrix)
    found, exact = total.whole(), matrix.T @ matrix
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact, atol=1e-5 * exact.max())
    np.testing.assert_array_equal(found, found.T)
