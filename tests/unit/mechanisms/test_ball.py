from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from counterveil.mechanisms import Ball, Grid, SeededNoise

ROUNDING = 1e-12
DIMENSIONS = [1, 2, 5]


def largest_loss(log_density, dimension, sensitivity):
    """Return the largest log-ratio over outputs and over neighbours at most `sensitivity` apart."""
    rng = np.random.default_rng(2)
    directions = rng.normal(size=(300, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    z = np.concatenate([scale * sensitivity * directions for scale in (0.1, 1, 2, 5)])
    worst = 0.0
    for size in np.linspace(0.1, 1, 10):
        shifts = np.concatenate([directions[:50], -directions[:50]]) * size * sensitivity
        losses = log_density(z)[:, None] - log_density(z[:, None, :] - shifts[None, :, :])
        worst = max(worst, float(np.abs(losses).max()))
    return worst


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_the_largest_loss_is_the_claim(dimension, epsilon):
    loss = largest_loss(Ball(3, epsilon, dimension).log_density, dimension, 3.0)
    assert 0.95 * epsilon <= loss <= float(epsilon) + ROUNDING


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_third_of_the_noise_breaks_the_claim(dimension):
    third = Ball(1, 1, dimension)
    assert largest_loss(third.log_density, dimension, 3.0) > 2.5


def draws(dimension, count, step=Fraction(1, 2**20)):
    mechanism, source = Ball(2, "1/2", dimension), SeededNoise(6)
    released = [mechanism.release([Fraction(0)] * dimension, Grid(step), source) for _ in range(count)]
    return np.array(released, dtype=float)


def test_the_norm_and_the_direction_follow_their_laws():
    z, d = draws(3, 3000), 3
    norm = np.linalg.norm(z, axis=1)
    assert stats.kstest(norm, stats.gamma(d, scale=4).cdf).pvalue > 1e-3
    for i in range(d):
        # One squared coordinate of a uniform direction has the Beta(1/2, (d - 1)/2) distribution; its sign is fair.
        assert stats.kstest((z[:, i] / norm) ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > 1e-3
        assert abs(np.mean(z[:, i] > 0) - 0.5) < 4 * 0.5 / np.sqrt(len(z))
    assert abs(np.corrcoef(norm, z[:, 0])[0, 1]) < 0.08


def test_values_off_the_grid_are_rounded_after_the_noise():
    mechanism, grid = Ball("1/1000000", 1, 2), Grid(Fraction(1, 10))
    released = mechanism.release([Fraction(1, 3), Fraction(-7, 3)], grid, SeededNoise(1))
    assert released == (Fraction(3, 10), Fraction(-23, 10))


def test_a_draw_that_needs_more_bits_still_settles():
    mechanism = Ball(1, 1, 2)
    released = mechanism.release([Fraction(0)] * 2, Grid(Fraction(1, 2**300)), SeededNoise(1))
    assert all((value * 2**300).denominator == 1 for value in released)
    coarse = mechanism.release([Fraction(0)] * 2, Grid(Fraction(1, 2**20)), SeededNoise(1))
    assert np.allclose(np.array(released, dtype=float), np.array(coarse, dtype=float), atol=2**-20)


def test_moments_are_those_of_the_closed_form():
    mechanism = Ball(2, "1/2", 3)
    assert mechanism.variance == pytest.approx(4 * 16)
    circles = integrate.quad(lambda r: 2 * np.pi * r * np.exp(Ball(1, 1, 2).log_density([r, 0])), 0, 60)
    assert circles[0] == pytest.approx(1, abs=1e-6)
