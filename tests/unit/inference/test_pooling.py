"""Pooled noise and weights, the subset of least variance, sites that differ, and the coverage of pooled intervals."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from scipy.stats import norm, t
from tests.thinned import thinned, thinned_rows
from tests.unit.inference.distributions import PlainLaplace, PlainNormal

from counterveil.inference.between_sites import ErrorBetweenSites, quiet_sites
from counterveil.inference.convolution import tail
from counterveil.inference.heterogeneity import (
    heterogeneity,
    i_squared_of,
    paule_mandel,
    tau_squared_interval,
)
from counterveil.inference.noise_sums import WeightedSum
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.site_weights import (
    best_subset,
    noise_sds_of_variances,
    other_variance,
    pooling_weights,
    released_variance,
    steadied_variances,
)
from counterveil.inference.uncertainty import Uncertainty

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
    assert noise_sds_of_variances([known(), known(variance_scale=1e9)]) == pytest.approx([0.5 * 2**0.5, 50.0])


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


def variance(chosen, sizes, variances):
    part = sizes[chosen]
    return float((part**2 * variances[chosen]).sum() / part.sum() ** 2)


def masks(count):
    return ((np.arange(1, 2**count)[:, None] >> np.arange(count)) & 1).astype(bool)


def best_by_force(sizes, variances):
    every = masks(len(sizes)).astype(float)
    return float((every @ (sizes**2 * variances) / (every @ sizes) ** 2).min())


def cases(rng, count):
    """Sizes and variances of many kinds: alike, far apart, whole numbers with ties, zeros."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(1, 2, count), rng.uniform(1, 2, count)
    if kind == 1:
        return np.exp(rng.normal(0, 2, count)), np.exp(rng.normal(0, 3, count))
    if kind == 2:
        return rng.integers(1, 5, count).astype(float), rng.integers(1, 5, count).astype(float)
    return rng.integers(1, 50, count).astype(float), rng.integers(0, 3, count) * rng.uniform(0, 1, count)


def test_equals_brute_force_over_all_subsets():
    rng = np.random.default_rng(11)
    tried = 0
    for count in chain([1, 2, 3, 4, 5, 6, 7, 8] * 400, [9, 10, 11] * 150, [12] * 200):
        sizes, variances = cases(rng, count)
        found = best_subset(sizes, variances)
        assert found.any()
        least = best_by_force(sizes, variances)
        assert variance(found, sizes, variances) == pytest.approx(least, rel=1e-12, abs=1e-300)
        tried += 1
    assert tried == 3850


def test_values_worked_out_by_hand():
    estimates, variances = np.array([0.0, 2.0]), np.array([0.5, 0.5])
    found = heterogeneity(estimates, variances)
    # Q = 2 (1)^2 / 0.5 = 4; tau^2 solves 2 / (0.5 + tau^2) = 1.
    assert (found.q, found.df) == (pytest.approx(4.0), 1)
    assert found.i_squared == pytest.approx(0.75)
    assert found.tau_squared == pytest.approx(1.5)
    assert found.p_value == pytest.approx(0.0455, abs=1e-4)
    assert heterogeneity(np.array([1.0, 1.1]), variances).tau_squared == 0.0
    # The mean of 0 and 2, with the t distribution of one degree of freedom.
    between = ErrorBetweenSites.of(estimates)
    assert between.half_width(LEVEL) == pytest.approx(12.706, rel=1e-4)
    assert between.prediction_half_width(LEVEL) == pytest.approx(12.706 * 3**0.5, rel=1e-4)
    assert between.p_value(1.0) == pytest.approx(0.5)


def test_sites_alike_are_all_kept_and_drowned_ones_left_out():
    assert quiet_sites(np.ones(5), 0.0).all()
    assert quiet_sites(np.array([1.0, 1e6, 1.0, 1.0]), 0.0).tolist() == [True, False, True, True]
    # Where effects differ by far more than the noise, a noisy site is as good as any.
    assert quiet_sites(np.array([1.0, 30.0, 1.0, 1.0]), 1e4).all()
    # Two sites are the least there can be.
    assert quiet_sites(np.array([1.0, 1e9]), 0.0).all()


def draws(sites, ratio, tau, count, rng):
    """Return estimates (count, sites) around 0 and their variances, the largest `ratio` times the smallest."""
    variances = np.geomspace(1, ratio, sites) / ratio**0.5
    scale = np.sqrt(variances / 2)
    errors = rng.laplace(size=(count, sites)) * scale + rng.normal(size=(count, sites)) * scale * 0.1
    return errors + tau * rng.normal(size=(count, sites)), variances


def covered(estimates, variances):
    """Return how often the interval covers 0: equal weights on chosen sites, and weights 1/(v + tau^2)."""
    hits = np.zeros(2)
    for row in estimates:
        tau_squared = paule_mandel(row, variances)
        chosen = row[quiet_sites(variances, tau_squared)]
        between = ErrorBetweenSites.of(chosen)
        weights = 1 / (variances + tau_squared)
        weights /= weights.sum()
        centre = float(weights @ row)
        half = float(weights @ (row - centre) ** 2 / (len(row) - 1)) ** 0.5 * t.ppf(0.975, len(row) - 1)
        hits += [abs(chosen.mean()) <= between.half_width(LEVEL), abs(centre) <= half]
    return hits / len(estimates)


UNEQUAL = [(2, 1000, 1), (3, 1000, 0.3), (4, 100, 1), (8, 1000, 0.3)]


@pytest.mark.parametrize(("sites", "ratio", "tau"), thinned_rows(UNEQUAL, UNEQUAL[0], UNEQUAL[3]))
def test_coverage_where_variances_are_very_unequal(sites, ratio, tau):
    count = 800
    ours, weighted = covered(*draws(sites, ratio, tau, count, np.random.default_rng([41, sites])))
    assert ours >= 0.95 - 3 * (0.95 * 0.05 / count) ** 0.5
    # Power of this check: the interval with inverse variances as weights fails it.
    assert weighted < 0.95 - 3 * (0.95 * 0.05 / count) ** 0.5


def test_intervals_for_the_variance_between_sites():
    estimates, variances = np.array([-1.0, 0.0, 1.0]), np.full(3, 0.25)
    low, high = tau_squared_interval(estimates, variances, 0.95)
    # Q is 2 / (0.25 + tau^2) on two degrees of freedom, whose quantiles are -2 log p.
    assert low == pytest.approx(2 / (-2 * np.log(0.025)) - 0.25)
    assert high == pytest.approx(2 / (-2 * np.log(0.975)) - 0.25)
    assert i_squared_of(0.75, variances) == pytest.approx(0.75)
    # Variances far apart leave no warning and no zero to divide by.
    assert 0 < i_squared_of(1.0, np.array([1e-30, 1.0, 2.0])) < 1
    rng, sds, hits = np.random.default_rng(0), np.array([0.1, 0.2, 0.5, 1.0, 0.1]), 0
    for _ in range(300):
        low, high = tau_squared_interval(rng.normal(0, np.sqrt(0.09 + sds**2)), sds**2, 0.9)
        hits += low <= 0.09 <= high
    # Five standard errors around 270 of 300.
    assert abs(hits - 270) < 26
