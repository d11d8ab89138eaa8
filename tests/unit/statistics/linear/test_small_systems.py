"""Small systems of equations: solutions and roots, multiplied out again."""

import numpy as np
import pytest

from counterveil.statistics.linear.kernels.balancing import inverse_root, lower_root, solve_positive


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 150])
def test_a_positive_system_is_solved(width):
    rng = np.random.default_rng(width)
    root = rng.normal(size=(width, 2 * width))
    matrix, sides = root @ root.T + 0.1 * np.eye(width), rng.normal(size=(width, 2))
    np.testing.assert_allclose(matrix @ solve_positive(matrix, sides), sides, atol=1e-9)


@pytest.mark.parametrize("width", [1, 120, 121, 250])
def test_the_root_of_an_inverse_is_triangular_and_multiplies_to_it(width):
    rows = np.random.default_rng(width).normal(size=(2 * width, width))
    matrix = rows.T @ rows
    root = inverse_root(matrix)
    np.testing.assert_array_equal(root, np.triu(root))
    np.testing.assert_allclose(root @ root.T @ matrix, np.eye(width), atol=1e-9)


@pytest.mark.parametrize("width", [1, 120, 121, 250])
def test_the_lower_root_multiplies_to_the_matrix(width):
    rows = np.random.default_rng(width).normal(size=(2 * width, width))
    root = lower_root(rows.T @ rows)
    np.testing.assert_array_equal(root, np.tril(root))
    np.testing.assert_allclose(root @ root.T, rows.T @ rows, atol=1e-9)


@pytest.mark.parametrize("width", [5, 130])
def test_a_system_that_rounding_made_indefinite_is_solved(width):
    matrix = np.eye(width)
    matrix[-1, -1] = -1e-6
    sides = np.ones((width, 1))
    np.testing.assert_allclose(matrix @ solve_positive(matrix, sides), sides, atol=1e-9)
