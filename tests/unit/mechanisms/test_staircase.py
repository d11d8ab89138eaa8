from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize

from counterveil.mechanisms import Staircase
from counterveil.mechanisms.staircase import StaircaseDistribution, least_variance_gamma

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_loss_is_the_claim_and_a_third_of_the_noise_breaks_it(epsilon, assert_claim):
    assert_claim(Staircase(3, epsilon), 3.0, epsilon)


@pytest.mark.parametrize("step", [0.1, 0.3, 1.0, 2.5])
def test_rounding_to_any_grid_loses_no_more(step, rounded_losses):
    assert rounded_losses(Staircase(1, 1), 1.0, step).max() <= 1 + 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_draws_follow_the_law(epsilon, assert_law):
    assert_law(Staircase(2, epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_fast_path_is_the_exact_path(epsilon, assert_paths_agree):
    assert_paths_agree(Staircase(1, epsilon), 10_000 if epsilon == 1 else 2_000)
    assert_paths_agree(Staircase(1, epsilon), 500, bits=46)
    assert_paths_agree(Staircase(1, epsilon), 500, bits=2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_paths_agree_at_the_edges_of_cells(epsilon, assert_seams_agree):
    assert_seams_agree(Staircase(1, epsilon))


def test_many_steps_are_cut_off_safely(assert_paths_agree):
    assert_paths_agree(Staircase(1, Fraction(1, 20_000)), 300)
    assert_paths_agree(Staircase(1, Fraction(1, 2**52)), 300)  # steps narrower than the head's last bit


def test_a_single_step_is_tabled_too(assert_paths_agree, assert_table_bounds):
    # At epsilon 40 the tail beyond the first step has probability 1e-11.
    noise = Staircase(1, 40)
    assert_paths_agree(noise, 300, bits=50)
    assert_table_bounds(noise.unit)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_table_keeps_its_bounds(epsilon, assert_table_bounds):
    assert_table_bounds(Staircase(1, epsilon).unit)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gamma_has_the_least_variance(epsilon):
    best = optimize.minimize_scalar(
        lambda gamma: StaircaseDistribution(epsilon, Fraction(gamma)).variance,
        bounds=(1e-6, 1 - 1e-6),
        method="bounded",
    )
    assert float(least_variance_gamma(epsilon)) == pytest.approx(best.x, abs=1e-3)
    assert Staircase(1, epsilon).variance <= best.fun * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 10**4), Fraction(700)])
def test_gamma_stays_inside_at_extreme_epsilon(epsilon):
    assert 0 < least_variance_gamma(epsilon) < 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_moments_and_quantiles_agree_with_the_density(epsilon):
    noise = Staircase(2, epsilon)
    limit = 60 / float(epsilon)
    edges = np.concatenate([[0.0], noise.kinks(0.0, limit, 10**6)])
    mass = integrate.fixed_quad  # exact for the polynomials between two jumps
    density = lambda x: np.exp(noise.log_density(x))  # noqa: E731
    pieces = [(a + 1e-13, b - 1e-13) for a, b in pairwise(edges)]
    assert 2 * sum(mass(density, a, b)[0] for a, b in pieces) == pytest.approx(1, abs=1e-9)
    second = 2 * sum(mass(lambda x: x * x * density(x), a, b)[0] for a, b in pieces)
    assert second == pytest.approx(noise.variance, rel=1e-6)
    p = np.linspace(0.001, 0.999, 101)
    assert np.allclose(noise.cdf(noise.quantile(p)), p, atol=1e-12)


def test_the_kinks_are_the_jumps_of_the_density():
    noise = Staircase(2, 1)
    kinks = noise.kinks(-5.0, 5.0, 100)
    assert np.all(np.abs(kinks) <= 5)
    assert np.array_equal(kinks, np.sort(kinks))
    assert np.array_equal(noise.kinks(-3.0, 1.0, 100), kinks[(kinks >= -3) & (kinks <= 1)])
    assert noise.kinks(-5.0, 5.0, len(kinks) - 1) is None
    assert len(noise.kinks(-5.0, 5.0, len(kinks))) == len(kinks)
    assert np.allclose(noise.log_density(kinks + 1e-9) - noise.log_density(kinks - 1e-9), -np.sign(kinks))
    smooth = np.linspace(-5, 5, 1000)
    far = np.min(np.abs(smooth[:, None] - kinks[None, :]), axis=1) > 1e-3
    assert np.allclose(noise.log_density(smooth[far] + 1e-4), noise.log_density(smooth[far] - 1e-4))
