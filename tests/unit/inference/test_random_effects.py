"""Sites that differ: values by hand, and coverage where their variances are very unequal."""

import numpy as np
import pytest
from scipy.stats import t
from tests.thinned import thinned_rows

from counterveil.inference.pooling import (
    ErrorBetweenSites,
    heterogeneity,
    i_squared_of,
    paule_mandel,
    quiet_sites,
    tau_squared_interval,
)

LEVEL = 0.95


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
    assert between.reach(LEVEL) == pytest.approx(12.706 * 3**0.5, rel=1e-4)
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


def test_equal_variances_have_exactly_the_t_law():
    estimates, _ = draws(5, 1, 2.0, 20_000, np.random.default_rng(42))
    between = estimates.std(axis=1, ddof=1) / 5**0.5
    assert np.mean(np.abs(estimates.mean(axis=1)) <= t.ppf(0.975, 4) * between) == pytest.approx(
        0.95, abs=0.005
    )


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
