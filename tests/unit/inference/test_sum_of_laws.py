"""The sum of two noises against closed forms and exact integrals."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from counterveil.inference.uncertainty import NoiseSum, half_width, tail
from counterveil.mechanisms import Gaussian, Laplace, Staircase

MOST = 10**6  # kinks asked for, at most
X = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 8.0, 15.0])
# One lattice step is 1/90 of an interquartile range; between its points a tail is at most this much too heavy.
RELATIVE = 1e-4


def test_two_laplace_noises():
    a, b = 1.0, 0.5
    found = NoiseSum(Laplace(1, 1), Laplace(1, 2))
    exact = (a * a * np.exp(-X / a) - b * b * np.exp(-X / b)) / (2 * (a * a - b * b))
    assert np.allclose(found.cdf(-X), exact, rtol=RELATIVE)
    assert np.allclose(found.cdf(X), 1 - exact, rtol=RELATIVE)
    assert (found.cdf(-X[1:]) >= exact[1:]).all()
    assert found.variance == pytest.approx(2.5)


def test_two_gaussian_noises():
    found, sd = NoiseSum(Gaussian(1, 1), Gaussian(2, 1)), 5**0.5
    assert np.allclose(found.cdf(-X), ndtr(-X / sd), rtol=1e-4, atol=1e-13)
    p = np.array([1e-4, 0.02, 0.25, 0.5, 0.75, 0.999])
    assert np.allclose(found.quantile(p), sd * ndtri(p), atol=1e-4)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
@pytest.mark.parametrize("ratio", ["1/3", "1/1000"])
def test_two_staircase_noises(epsilon, ratio):
    one, other = Staircase(1, epsilon), Staircase(ratio, epsilon)
    found = NoiseSum(one, other)
    for x in np.array([0.3, 1.0, 2.5]) * found.variance**0.5:
        steps = one.kinks(-2 * x, 2 * x, MOST)
        reach = 60 * other.variance**0.5
        ends = np.unique(np.concatenate([other.kinks(-reach, reach, MOST), x - steps, x + steps]))
        ends = ends[np.abs(ends) <= reach]

        def inner(y, x=x):
            return float(np.exp(other.log_density(y)) * one.cdf(np.array([y - x]))[0])

        if len(ends) > 200:
            continue  # the integral would take longer than it tells
        exact = sum(quad(inner, a, b)[0] for a, b in pairwise(ends))
        assert found.cdf(np.array([-x]))[0] == pytest.approx(exact, rel=2e-3)


def test_half_widths_cover_with_both_noises_and_a_normal():
    rng = np.random.default_rng(0)
    one, other = Staircase(1, 1), Staircase("1/2", 1)
    distribution, sd, draws = NoiseSum(one, other), 0.7, 400_000
    h = half_width(sd, distribution, 0.05)
    error = rng.normal(0, sd, draws) + one.quantile(rng.random(draws)) + other.quantile(rng.random(draws))
    assert abs((np.abs(error) > h).mean() - 0.05) < 4 * (0.05 * 0.95 / draws) ** 0.5
    assert 2 * tail(h, sd, distribution) <= 0.05


@pytest.mark.parametrize("narrow", ["0.93", "0.5", "0.03"])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.9999])
def test_a_hidden_sum_is_one_of_few_that_are_no_narrower(narrow, level):
    for noise in (
        NoiseSum(Staircase(1, 3), Staircase(narrow, 3)),
        NoiseSum(Laplace(narrow, 1), Laplace(1, 1)),
    ):
        law, scale = noise.standard
        for sd in (4.1, 12.0):
            own = noise.variance**0.5 * sd
            exact = scale * half_width(own / scale, law, 1 - level)
            assert exact * (1 - 1e-7) <= half_width(own, noise, 1 - level) <= 1.004 * exact


def test_quantiles_invert_and_extremes_are_safe():
    distribution = NoiseSum(Laplace(1, 1), Staircase(3, 2))
    p = np.array([1e-6, 0.01, 0.3, 0.7, 0.99])
    assert np.allclose(distribution.cdf(distribution.quantile(p)), p, rtol=1e-6)
    assert distribution.cdf(np.array([-1e9, 1e9])).tolist() == [0.0, 1.0]
    assert half_width(1.0, distribution, 1e-15) < 1e3
    assert hash(distribution) == hash(NoiseSum(Laplace(1, 1), Staircase(3, 2)))
