"""Bands and levels of several contrasts: joint coverage is what they claim; few clusters have Student's t."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.special import chdtri

from counterveil.inference.clusters import ClusterUncertainty, sd_inflation, t_factor
from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_sums import NoiseSum
from counterveil.inference.simultaneous import adjusted_p, deviations, level_of_each, pointwise, simultaneous
from counterveil.mechanisms import Gaussian, Laplace, Staircase
from counterveil.numerics.bases import Axis, make_basis

X = np.linspace(0, 1, 150)
FEATURES = make_basis((Axis("x", "legendre", 4),), 4, True).features({"x": X})


def covariance(size, seed=1):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size


def test_one_point_needs_the_usual_factor_and_many_need_more():
    c = covariance(5)
    assert pointwise(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert simultaneous(FEATURES[:1], c, 0.95) == pytest.approx(1.96, abs=0.06)
    assert 2.2 < simultaneous(FEATURES, c, 0.95) <= chdtri(5, 0.05) ** 0.5


def test_bands_cover_at_once_as_often_as_they_claim():
    c = covariance(5, 2)
    factor, sd = simultaneous(FEATURES, c, 0.9), deviations(FEATURES, c)
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(5), c, 4000)
    inside = (np.abs(draws @ FEATURES.T) <= factor * sd).all(axis=1).mean()
    assert inside == pytest.approx(0.9, abs=0.02)


def test_levels_and_p_values_agree():
    each = level_of_each(0.95, 3)
    assert 1 - 0.05 / 3 > each > 0.95
    assert adjusted_p(1 - each, 3) == pytest.approx(0.05)
    assert level_of_each(0.9, 1) == pytest.approx(0.9)
    assert adjusted_p(0.2, 1) == pytest.approx(0.2)


# Every two of the three meet.
@pytest.mark.parametrize(
    ("distribution", "shared", "contrasts"),
    [
        (distribution, shared, (2, 4, 9)[(one + other) % 3])
        for one, distribution in enumerate([Laplace, Staircase, Gaussian])
        for other, shared in enumerate([0.1, 1.0, 10.0])
    ],
)
def test_joint_coverage_by_integration_over_the_shared_error(distribution, contrasts, shared):
    own, reference = distribution(1, 1), distribution(str(shared), 1)
    half = half_width(
        np.hypot(0.5, 0.5 * shared), NoiseSum(own, reference), 1 - level_of_each(0.95, contrasts)
    )
    nodes, weights = hermegauss(24)
    noise = reference.quantile((np.arange(400) + 0.5) / 400)
    joint = total = 0.0
    grid = np.linspace(0, 0.5 * shared * nodes.max() + noise.max(), 201)
    covered = np.array([1 - tail(half - t, 0.5, own) - tail(half + t, 0.5, own) for t in grid])
    for z, w in zip(nodes, weights, strict=True):
        shift = np.abs(0.5 * shared * z + noise)
        joint += w * float((np.interp(shift, grid, covered) ** contrasts).mean())
        total += w
    # A little below the level is the coarseness of the integral; Bonferroni's half-width would be longer.
    assert joint / total >= 0.95 - 2e-3
    assert half < half_width(np.hypot(0.5, 0.5 * shared), NoiseSum(own, reference), 0.05 / contrasts)


EFFECT = Staircase(Fraction(1, 500), Fraction(1, 2))
ERROR = Laplace(Fraction(1, 450), Fraction(1, 2))
DRAWS = 40_000
# Three standard errors of a coverage of 95 % over so many draws.
CHANCE = 3 * np.sqrt(0.05 * 0.95 / DRAWS)


@pytest.mark.parametrize("freedom", [3.0, 8.5, 60.0])
def test_without_noise_intervals_are_those_of_t(freedom):
    known = ClusterUncertainty(None, 4.0, 9.0, freedom=freedom)
    assert known.half_width(0.9) == pytest.approx(2 * stats.t.ppf(0.95, freedom), rel=1e-9)
    assert known.p_value(2 * stats.t.ppf(0.95, freedom), 0.9) == pytest.approx(0.1, rel=1e-6)
    assert (known.sampling_sd, known.noise_sd) == (2, 0)


def test_noise_that_clusters_hold_has_their_freedom():
    known = ClusterUncertainty(None, 3.0, 9.0, extra=1.0, freedom=5.0)
    assert known.half_width(0.95) == pytest.approx(2 * stats.t.ppf(0.975, 5), rel=1e-9)
    assert known.total_sd == pytest.approx(2)


@pytest.mark.parametrize("clusters", range(4, 31))
def test_p_values_are_those_of_t_whatever_the_level_of_the_interval(clusters):
    freedom = clusters - 2.0
    known = ClusterUncertainty(None, 3.0, 9.0, extra=1.0, bias=0.1, freedom=freedom)
    for distance in (0.3, 2.0, 4.7, 9.0):
        exact = 2 * stats.t.sf((distance - 0.1) / 2, freedom)
        # The class finds p-values to a part of a thousand.
        assert known.p_value(-distance, 0.9) == pytest.approx(max(exact, 1e-12), rel=1e-3)
    assert known.p_value(0.1, 0.9) == known.p_value(0.0, 0.9) == 1


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_p_is_below_alpha_exactly_where_that_interval_leaves_out_zero(level):
    known = ClusterUncertainty(EFFECT, 0.01**2, 0.3**2, sd_noise=ERROR, freedom=6.0)
    for alpha in (0.05, 0.01):
        half = known.half_width(1 - alpha)
        assert known.p_value(half * 1.002, level) < alpha < known.p_value(half * 0.998, level)


@pytest.mark.parametrize("freedom", [4.0, 18.0, 198.0])
def test_a_noisy_standard_error_keeps_the_level_whatever_it_is(freedom):
    rng = np.random.default_rng(7)
    cap, alpha = 0.3, 0.05
    grid = np.concatenate([[0.0], np.geomspace(5e-4, 2.5, 40)])
    # Half lengths on a grid of released errors, as the class gives them.
    halves = [
        ClusterUncertainty(EFFECT, s**2, cap**2, sd_noise=ERROR, freedom=freedom).half_width(1 - alpha)
        for s in grid
    ]
    for error in (0.0, 0.002, 0.01, 0.05, cap):
        own = error * np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)
        released = np.maximum(own + ERROR.quantile(rng.random(DRAWS)), 0)
        wrong = error * rng.standard_normal(DRAWS) + EFFECT.quantile(rng.random(DRAWS))
        covered = np.mean(np.abs(wrong) <= np.interp(released, grid, halves))
        assert covered >= 1 - alpha - CHANCE
    kappa = sd_inflation(EFFECT, ERROR, cap, freedom, alpha)
    assert 0 < kappa < np.sqrt(ERROR.variance)


def test_what_is_built_on_stays_near_the_largest_possible():
    known = ClusterUncertainty(EFFECT, 100.0, 0.01, sd_noise=ERROR, freedom=10.0)
    largest = half_width(t_factor(10.0, 0.05) * 0.2, EFFECT, 0.05)
    assert known.half_width(0.95) == pytest.approx(largest, rel=1e-6)
