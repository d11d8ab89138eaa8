"""Noise at a scale that is known up to noise."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm
from tests.thinned import thinned

from counterveil.inference.uncertainty import (
    Uncertainty,
    UnsureScale,
    half_width,
    tail_point,
    variance_allowance,
)
from counterveil.mechanisms import Lomax

LOMAX = Lomax(Fraction(3, 4), Fraction(3, 40)).distribution(Fraction(1))


def _draws(distribution, log_scale, count=400_000):
    rng = np.random.default_rng(7)
    return distribution.quantile(rng.random(count)) * np.exp(-rng.laplace(0, log_scale, count))


@pytest.mark.parametrize("distribution", [LOMAX])
@pytest.mark.parametrize("log_scale", [0.05, 0.3, 0.8])
def test_quantiles_are_those_of_draws(distribution, log_scale):
    known = UnsureScale(distribution, 2.5, log_scale)
    drawn = 2.5 * _draws(distribution, log_scale)
    for p in (0.6, 0.9, 0.975, 0.995):
        point = known.quantile(np.array([p]))[0]
        assert np.mean(drawn <= point) == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / len(drawn)))
        assert known.cdf(np.array([point]))[0] == pytest.approx(p, abs=1e-9)
        assert known.cdf(np.array([-point]))[0] == pytest.approx(1 - p, abs=1e-9)


@pytest.mark.parametrize("log_scale", [0.1, 0.4])
def test_the_table_is_as_good_as_an_integral(log_scale):
    known = UnsureScale(LOMAX, 1.0, log_scale)
    for alpha in (0.3, 0.05, 1e-3):
        exact = tail_point(LOMAX, log_scale, alpha)
        assert known.quantile(np.array([1 - alpha / 2]))[0] == pytest.approx(exact, rel=1e-3)


def test_variance():
    known = UnsureScale(LOMAX, 2.0, 0.2)
    assert known.variance == pytest.approx(4 * LOMAX.variance / (1 - 4 * 0.04))
    assert UnsureScale(LOMAX, 1.0, 0.5).variance == np.inf


@pytest.mark.parametrize("log_scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_variance_known_up_to_noise_keeps_the_level(log_scale, alpha):
    factor = variance_allowance(log_scale, alpha)
    rng = np.random.default_rng(3)
    known = np.exp(rng.laplace(0, log_scale, 400_000))
    missed = np.abs(rng.normal(size=400_000)) > norm.ppf(1 - alpha / 2) * np.sqrt(factor) * known
    assert missed.mean() == pytest.approx(alpha, abs=0.003)
    assert factor > 1


@pytest.mark.parametrize("ratio", thinned([0.1, 0.5, 1.0, 2.0, 5.0], 0.5, 5.0))
@pytest.mark.parametrize("log_scale", thinned([0.1, 0.4], 0.4))
def test_intervals_for_both_errors_together_cover(ratio, log_scale):
    """The true scale is 1 and the sampling error `ratio` times the noise; both are known up to exp(L)."""
    rng = np.random.default_rng(11)
    sd = ratio * float(LOMAX.quantile(np.array([0.84]))[0])
    allowance = variance_allowance(log_scale, 0.05)
    covered = 0
    draws = 500
    for L in rng.laplace(0, log_scale, draws):
        known = Uncertainty(
            UnsureScale(LOMAX, float(np.exp(L)), log_scale),
            allowance * (sd * np.exp(L)) ** 2,
            allowance * (sd * np.exp(L)) ** 2,
        )
        error = rng.normal() * sd + LOMAX.quantile(rng.random(1))[0]
        covered += abs(error) <= half_width(known.known_sd(0.05), known.noise, 0.05)
    assert covered / draws >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / draws)
