"""Gaussian noise and its shares: bounds, laws and draws."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import chi2, kstest

import counterveil as cv
from counterveil.mechanisms import (
    Gaussian,
    Grid,
    SeededNoise,
    SummedBall,
    SummedGaussian,
    mechanism_from_dict,
)
from counterveil.mechanisms.noise import exact_ball
from counterveil.mechanisms.summed_normal import draw_gamma, draw_normals
from counterveil.privacy import Budget

BUDGETS = [Budget("1/10", "1e-6"), Budget(1, "1e-5"), Budget(10, "1e-5")]


def exact_delta(noise, shift, epsilon):
    """Return the integral of (p - e^epsilon q)+ for the density p and its shifted copy q.

    The log-ratio is monotone, so the integral is a difference of tails beyond one point.
    """
    reach = 50 * float(noise.scale)

    def excess(x):
        return float(noise.log_density(x) - noise.log_density(x + shift)) - epsilon

    edge = optimize.brentq(excess, -reach, reach, xtol=1e-14 * reach)
    return float(noise.cdf(-edge) - np.exp(epsilon) * noise.cdf(-edge - shift))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_profile_meets_delta_and_is_tight(budget):
    noise = Gaussian.calibrated(3, budget)
    deltas = [exact_delta(noise, shift, float(budget.epsilon)) for shift in np.linspace(0.3, 3, 28)]
    assert np.all(np.diff(deltas) > 0)  # the farthest neighbours are the worst
    assert 0.95 * budget.delta <= deltas[-1] <= float(budget.delta) * (1 + 1e-6)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_third_of_the_noise_breaks_the_claim(budget, third):
    noise = third(Gaussian.calibrated(3, budget))
    assert exact_delta(noise, 3.0, float(budget.epsilon)) > 100 * budget.delta


def test_rounding_to_a_coarse_grid_keeps_the_profile():
    budget = Budget(1, "1e-2")
    noise = Gaussian.calibrated(1, budget)
    for step in (0.5, 1.0, 3.0):
        for value in (0.0, 0.21 * step, 0.4 * step):
            edges = (np.arange(-60, 61) - 0.5) * step
            here, there = np.diff(noise.cdf(edges - value)), np.diff(noise.cdf(edges - value - 1))
            assert np.maximum(here - np.e * there, 0).sum() <= 0.01 + 1e-9


def test_draws_follow_the_law(assert_law):
    assert_law(Gaussian(2, "3/2"))


def test_the_fast_path_is_the_exact_path(assert_paths_agree):
    assert_paths_agree(Gaussian(1, "1/3"), 10_000)
    assert_paths_agree(Gaussian(1, "1/3"), 1_000, bits=46)
    assert_paths_agree(Gaussian(1, "1/3"), 1_000, bits=1)


def test_the_paths_agree_at_the_edges_of_cells(assert_seams_agree):
    assert_seams_agree(Gaussian(1, 1))


def test_the_table_keeps_its_bounds(assert_table_bounds):
    assert_table_bounds(Gaussian(1, 1).unit)


def test_moments_and_quantiles_are_those_of_the_closed_form():
    noise = Gaussian(2, "1/2")
    assert noise.scale == 4
    assert noise.variance == pytest.approx(16)
    assert noise.quantile(0.975) == pytest.approx(4 * 1.959963984540054)
    assert noise.kinks(-10.0, 10.0, 1).size == 0
    draws = noise.draw(200_000, Grid.for_scale(noise.scale), SeededNoise(4)) * 4 / 2**24
    assert draws.var() == pytest.approx(16, rel=0.02)


NEVER = 1e-6
# Doubles, summed over a few hundred numbers.
ROUNDED = 1e-11
STEPS = np.arange(-80, 81)


def normal(variance, offsets):
    return np.exp(-(offsets**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


@pytest.mark.parametrize("width", [0.5, 1.0, 4.0])
def test_sums_of_discrete_normal_numbers_are_rounded_normal_ones_within_the_bound(width):
    """The proof's (a) to (c), at a width so small that the factor is seen, and where it is below all rounding."""
    eta = 3 * np.exp(-(np.pi**2) * width)
    shares = [normal(v, STEPS) / normal(v, STEPS).sum() for v in (width, 1.7 * width, 2.6 * width)]
    total = np.convolve(np.convolve(*shares[:2]), shares[2])
    middle = np.abs(np.arange(len(total)) - len(total) // 2) <= 12
    offsets = np.arange(len(total)) - len(total) // 2
    ideal = normal(5.3 * width, offsets)
    assert np.abs(np.log(total[middle] / ideal[middle])).max() <= 2 * 3 * 2 * eta + ROUNDED
    # Rounding at random of a normal number around 3, by the midpoint rule, which is exact for such functions.
    fine = np.linspace(-60, 60, 120 * 64 + 1)
    chances = normal(width, STEPS[:, None] - fine)
    rounded = (chances / chances.sum(axis=0)) @ normal(4.3 * width, fine - 3) * (fine[1] - fine[0])
    near = np.abs(STEPS - 3) <= 12
    wanted = normal(5.3 * width, STEPS - 3)
    assert np.abs(np.log(rounded[near] / wanted[near])).max() <= 2 * eta + ROUNDED


def test_draws_have_their_distributions():
    source, variance, count = SeededNoise(3), Fraction(7, 2), 1500
    drawn = np.array(draw_normals(count, ([], partial(exact_ball, variance)), source))
    reach = np.arange(-4, 5)
    wanted = normal(3.5, reach) / normal(3.5, STEPS).sum()
    seen = np.array([np.count_nonzero(drawn == z) for z in reach])
    seen, wanted = (np.append(x, whole - x.sum()) for x, whole in ((seen, count), (wanted, 1.0)))
    assert np.sum((seen - count * wanted) ** 2 / (count * wanted)) < chi2.isf(NEVER, len(reach))
    for shape in (Fraction(3, 4), Fraction(5, 2), Fraction(2)):
        gammas = [float(draw_gamma(shape, source)[1]().mid()) for _ in range(300)]
        assert kstest(gammas, "gamma", args=(float(shape),)).pvalue > NEVER


def test_honest_shares_are_normal_and_ball_noise():
    source, grid, count = SeededNoise(5), Grid(Fraction(1, 2**24)), 300
    normals = SummedGaussian(2, Fraction(1, 2), 8, 2)
    sums = sum(normals.draw(count, grid, source) for _ in range(2)).astype(float) / 2**24
    assert kstest(sums / 4, "norm").pvalue > NEVER
    assert np.isclose(normals.variance, 16 * 8 / 2)
    ball = SummedBall(2, Fraction(1, 2), 3, 8, 2)
    parts = [[ball.release_all([Fraction(0)] * 3, grid, source) for _ in range(2)] for _ in range(count)]
    vectors = np.array(parts, dtype=float).sum(axis=1)
    assert kstest(np.linalg.norm(vectors, axis=1) / 4, "gamma", args=(3,)).pvalue > NEVER
    # A coordinate of a uniform direction in space is uniform.
    assert kstest(vectors[:, 0] / np.linalg.norm(vectors, axis=1), "uniform", args=(-1, 2)).pvalue > NEVER
    assert np.isclose(ball.variance, 4 * 16 * 8 / 2)


def test_records_and_limits():
    noise = SummedGaussian(1, 1, 3, 2)
    assert mechanism_from_dict(noise.to_dict()) == noise
    for wrong, code in (((1, 1, 2, 3), "CV-P204"), ((1, 2001, 3, 2), "CV-P160")):
        with pytest.raises(cv.errors.CounterveilError, match=code):
            SummedGaussian(*wrong)
    with pytest.raises(cv.errors.CounterveilError, match="CV-P204"):
        SummedBall(1, 1, 3, 2, 3)
