import numpy as np
import pytest
from scipy import optimize

from counterveil.mechanisms import Gaussian, Grid, SeededNoise
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
