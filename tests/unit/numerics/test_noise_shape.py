"""Shapes of vector noise: private for every move, and better than noise of one size or of the moves' own shape."""

import numpy as np
import pytest

from counterveil.numerics.shrinkage import largest_move, matrix_power, noise_shape


def moves_and_loss(seed=0, rows=400, size=5):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    phi = np.stack([x**power for power in range(size)], axis=1)
    gram = phi.T @ phi
    return phi @ np.linalg.inv(gram), gram / rows


def cost(shape, moves, loss):
    """The mean squared error of predictions, once the shape is scaled to hide every move."""
    return np.trace(shape @ loss) * largest_move(moves, matrix_power(shape, -0.5)) ** 2


def test_the_shape_costs_less_than_others():
    moves, loss = moves_and_loss()
    best = cost(noise_shape(moves, loss, 40), moves, loss)
    for other in (np.eye(5), moves.T @ moves, np.linalg.inv(loss)):
        assert best < 0.9 * cost(other, moves, loss)
    rng = np.random.default_rng(1)
    for _ in range(20):
        turned = noise_shape(moves, loss, 40)
        change = rng.normal(size=(5, 5)) * 0.1
        near = (np.eye(5) + change) @ turned @ (np.eye(5) + change).T
        assert best < 1.04 * cost(near, moves, loss)


def test_scaled_by_the_largest_move_every_move_is_hidden():
    moves, loss = moves_and_loss(5)
    shape = noise_shape(moves, loss, 12)
    scaled = shape * largest_move(moves, matrix_power(shape, -0.5)) ** 2
    sizes = np.einsum("ij,jk,ik->i", moves, np.linalg.inv(scaled), moves)
    assert sizes.max() == pytest.approx(1)


def test_one_number_and_moves_that_span_less_than_the_space():
    assert noise_shape(np.array([[1.0], [-2.0]]), np.eye(1), 5).shape == (1, 1)
    flat = np.zeros((10, 3))
    flat[:, 0] = np.linspace(-1, 1, 10)
    assert np.isfinite(noise_shape(flat, np.eye(3), 12)).all()
