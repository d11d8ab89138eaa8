"""Noise in a ball and in a box: laws, draws and claims."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from counterveil.mechanisms import Ball, Box, Grid, Laplace, SeededNoise

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


@pytest.mark.parametrize("law", [Ball, Box])
def test_values_off_the_grid_are_rounded_after_the_noise(law):
    mechanism, grid = law("1/1000000", 1, 2), Grid(Fraction(1, 10))
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


def box_largest_loss(log_density, dimension, sensitivity):
    """Return the largest log-ratio over outputs and over neighbours at most `sensitivity` apart in each coordinate."""
    rng = np.random.default_rng(2)
    z = np.concatenate([rng.uniform(-1, 1, size=(300, dimension)) * scale for scale in (0.1, 1, 5, 20)])
    corners = rng.choice([-1.0, 1.0], size=(64, dimension))
    shifts = np.concatenate([corners, rng.uniform(-1, 1, size=(64, dimension))]) * sensitivity
    # Where all coordinates are alike, a corner moves the largest one by as much as any.
    z = np.concatenate([z, np.sign(z) * np.abs(z).max(axis=1, keepdims=True)])
    losses = log_density(z)[:, None] - log_density(z[:, None, :] - shifts[None, :, :])
    return float(np.abs(losses).max())


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize(("law", "largest"), [(Ball, largest_loss), (Box, box_largest_loss)])
def test_the_largest_loss_is_the_claim_and_a_third_of_the_noise_breaks_it(law, largest, dimension):
    for epsilon in (Fraction(1, 2), Fraction(4)):
        loss = largest(law(3, epsilon, dimension).log_density, dimension, 3.0)
        assert 0.95 * epsilon <= loss <= float(epsilon) + ROUNDING
    assert largest(law(1, 1, dimension).log_density, dimension, 3.0) > 2.5


def box_draws(dimension, count):
    mechanism, source = Box(2, "1/2", dimension), SeededNoise(6)
    step = Grid(Fraction(1, 2**20))
    return np.array([mechanism.release([Fraction(0)] * dimension, step, source) for _ in range(count)], float)


def test_the_largest_and_each_coordinate_follow_their_laws():
    z, d = box_draws(3, 2000), 3
    largest = np.abs(z).max(axis=1)
    # The largest of d uniform numbers times a Gamma number of shape d + 1 has the Gamma distribution of shape d.
    assert stats.kstest(largest, stats.gamma(d, scale=4).cdf).pvalue > 1e-3
    for i in range(d):
        assert stats.kstest(z[:, i], Box(2, "1/2", 3).cdf).pvalue > 1e-3
    assert np.mean(z**2) == pytest.approx(Box(2, "1/2", 3).variance, rel=0.1)


def test_one_dimension_is_laplace_noise():
    box, laplace, x = Box(2, "1/2", 1), Laplace(2, "1/2"), np.linspace(-20, 20, 9)
    assert box.cdf(x) == pytest.approx(laplace.cdf(x), abs=1e-12)
    assert box.variance == pytest.approx(laplace.variance)
    assert box.log_density(x[:, None]) == pytest.approx(laplace.log_density(x))


@pytest.mark.parametrize("dimension", [2, 20])
def test_quantiles_invert_the_distribution_function(dimension):
    box = Box(1, 1, dimension)
    p = np.array([1e-12, 1e-3, 0.2, 0.5, 0.9, 0.975])
    assert box.cdf(box.quantile(p)) == pytest.approx(p, rel=1e-6)
    spread, _ = integrate.quad(lambda x: 4 * x * float(box.cdf(-x)), 0, 300, limit=200)
    assert spread == pytest.approx(box.variance, rel=1e-6)
    assert list(box.breakpoints(-1, 1, 10)) == [0.0]
    assert not len(box.breakpoints(1, 2, 10))


def test_the_density_integrates_to_one():
    squares = integrate.quad(lambda r: 8 * r * np.exp(Box(1, 1, 2).log_density([r, 0])), 0, 60)
    assert squares[0] == pytest.approx(1, abs=1e-6)
