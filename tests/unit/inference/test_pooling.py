"""Pooled noise, weights, and the coverage of the pooled interval given the noise distributions."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent))
from distributions import PlainLaplace, PlainNormal
from tests.thinned import thinned

from counterveil.inference.pooling import (
    PooledUncertainty,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
    unsure_variances,
)
from counterveil.inference.uncertainty import Uncertainty, WeightedSum, tail

LEVEL = 0.95


def test_sum_of_normals_is_normal():
    distribution = WeightedSum(((0.5, PlainNormal(2.0)), (0.25, PlainNormal(4.0)), (0.25, PlainNormal(4.0))))
    sd = 3**0.5
    x = np.array([-4.0, -2.0, -0.5, 0.0, 1.0, 3.0])
    assert distribution.cdf(x) == pytest.approx(norm.cdf(x / sd), abs=3e-6)
    assert distribution.variance == pytest.approx(3.0)
    assert distribution.quantile(np.array([0.025, 0.975])) == pytest.approx([-1.96 * sd, 1.96 * sd], rel=1e-3)


def test_sum_of_two_laplaces_has_its_closed_form():
    distribution = WeightedSum(((0.5, PlainLaplace(2.0)), (1.0, PlainLaplace(1.0))))
    x = np.array([0.2, 1.0, 3.0, 7.0])
    assert 1 - distribution.cdf(x) == pytest.approx((1 / 2 + x / 4) * np.exp(-x), rel=1e-3, abs=2e-6)


def test_tails_of_a_sum_err_outwards():
    distribution = WeightedSum(tuple((1 / 30, PlainLaplace(1.0 + k / 10)) for k in range(30)))
    draws = np.random.default_rng(1).laplace(size=(200_000, 30)) * (1 + np.arange(30) / 10) / 30
    far = float(np.quantile(draws.sum(axis=1), 0.975))
    assert float(distribution.quantile(np.array([0.975]))[0]) == pytest.approx(far, rel=0.02)
    assert float(distribution.cdf(np.array([-1e6]))[0]) > 0


def known(variance=1.0, scale=1.0, variance_scale=0.5, cap=50.0, **more):
    return Uncertainty(PlainLaplace(scale), variance, cap, PlainLaplace(variance_scale), **more)


def test_weights_of_every_method():
    sizes, variances = np.array([10.0, 30.0, 60.0]), np.array([1.0, 1.0, 4.0])
    assert pooling_weights("all", sizes, variances) == pytest.approx([0.1, 0.3, 0.6])
    assert pooling_weights("largest", sizes, variances) == pytest.approx([0, 0, 1])
    assert pooling_weights("ivw", sizes, variances) == pytest.approx([4 / 9, 4 / 9, 1 / 9])
    assert pooling_weights("mvagg", sizes, variances) == pytest.approx([0.25, 0.75, 0])
    assert pooling_weights("random_effects", sizes, variances, 1e9) == pytest.approx([1 / 3] * 3)
    assert pooling_weights("random_effects", sizes, np.array([1.0, 1.0, 1e4])) == pytest.approx([0.5, 0.5, 0])


def test_a_negative_variance_is_not_taken_for_a_good_one():
    # Of Laplace noise around no variance, half lies within log 2 of its scale.
    site = known(variance=-5.0, scale=2.0)
    assert released_variance(site) == pytest.approx(8.0 + site.variance_noise.scale * np.log(2))
    assert released_variance(known(variance=1e9, scale=2.0, cap=3.0)) == pytest.approx(11.0)


def test_variances_that_differ_by_noise_alone_are_drawn_together():
    sizes = np.full(4, 100.0)
    arm_correlation = [known(variance=v, variance_scale=1.0) for v in (0.8, 1.2, 0.9, 1.1)]
    assert steadied_variances(arm_correlation, sizes) == pytest.approx([1.0] * 4)
    apart = [known(variance=v, variance_scale=1e-4) for v in (1.0, 9.0, 1.0, 9.0)]
    assert steadied_variances(apart, sizes) == pytest.approx([1.0, 9.0, 1.0, 9.0], rel=1e-3)


def test_a_lucky_variance_is_not_taken_at_its_word():
    sites = [known(variance=v, variance_scale=1.0) for v in (-6.0, 1.0, 5.0, 9.0)]
    steadied = steadied_variances(sites, np.full(4, 100.0))
    assert steadied.min() > 0.5
    assert (np.diff(steadied) >= 0).all()
    unknown = Uncertainty(PlainLaplace(1.0), 7.0, 7.0)
    assert steadied_variances([unknown, sites[1]], np.full(2, 100.0))[0] == 7.0


def test_with_a_common_variance_no_weight_follows_a_sites_own_number():
    sizes = np.array([100.0, 400.0])
    one, other = steadied_variances([known(variance=0.1), known(variance=7.0)], sizes, common=True)
    assert one == pytest.approx(4 * other)
    # Variances per person are 10 and 2800, with noise in proportion to size.
    assert one * 100 == pytest.approx((10 * 16 + 2800) / 17)
    assert unsure_variances([known(), known(variance_scale=1e9)]) == pytest.approx([0.5 * 2**0.5, 50.0])


def miss(sites, truth, sizes, method, rng):
    """Return how often the interval misses, given variances drawn with their noise."""
    drawn = [
        replace(site, variance=v + float(site.variance_noise.quantile(np.array([rng.random()]))[0]))
        for site, v in zip(sites, truth, strict=True)
    ]
    steadied = steadied_variances(drawn, sizes)
    weights = pooling_weights(method, sizes, steadied + [other_variance(site) for site in drawn])
    pooled = PooledUncertainty(tuple(drawn), tuple(weights), None if method == "all" else tuple(steadied))
    sd = float(np.sqrt(weights**2 @ truth))
    return 2 * tail(pooled.half_width(LEVEL), sd, pooled.noise)


# Sizes of the sites, standard deviation of an outcome, scale of the noise and of the variance's noise at size 1.
CELLS = [
    ((200, 200), (0.2, 0.2), 2.0, 10.0),
    ((100, 100), (0.1, 0.1), 0.7, 12.0),
    ((100, 100, 100, 100), (0.5, 0.1, 0.5, 0.1), 3.0, 20.0),
    ((1000, 300, 100), (0.2, 0.2, 0.2), 4.0, 60.0),
    ((150,) * 6, (0.15,) * 6, 1.0, 8.0),
    ((1000, 50, 50), (0.05, 0.4, 0.2), 2.0, 20.0),
]


def cell_of(sizes, spreads, scale, variance_scale, distribution=PlainLaplace):
    sizes, spreads = np.array(sizes, dtype=float), np.array(spreads)
    sites = [
        Uncertainty(distribution(scale / n), 0.0, 1 / n, distribution(variance_scale / n**2)) for n in sizes
    ]
    return sites, 4 * spreads**2 / sizes, sizes


@pytest.mark.parametrize("method", ["all", "mvagg", "ivw"])
@pytest.mark.parametrize("cell", thinned(CELLS, CELLS[0], CELLS[3]))
def test_coverage_over_the_noise_of_the_variances(cell, method):
    rng = np.random.default_rng(21)
    sites, truth, sizes = cell_of(*cell)
    missed = np.mean([miss(sites, truth, sizes, method, rng) for _ in range(25)])
    assert 1 - missed >= 0.93


def test_the_interval_without_the_noise_of_variances_would_be_too_short():
    """Power of the check above: intervals that ignore all noise miss far more often."""
    sites, truth, _ = cell_of(*CELLS[2])
    truth, sites = truth[:2], sites[:2]
    pooled = PooledUncertainty(
        tuple(replace(site, variance=v) for site, v in zip(sites, truth, strict=True)), (0.5, 0.5)
    )
    sd = float(np.sqrt((truth / 4).sum()))
    assert 2 * tail(pooled.naive_half_width(LEVEL), sd, pooled.noise) > 0.07
    assert 2 * tail(pooled.half_width(LEVEL), sd, pooled.noise) < 0.05
