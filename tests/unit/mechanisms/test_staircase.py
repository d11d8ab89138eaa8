"""Noise of steps, of Lomax tails and by randomised response: laws and draws; every mechanism under the auditor."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from tests.thinned import thinned

from counterveil.mechanisms import Grid, Lomax, RandomizedResponse, SeededNoise, Staircase, SystemNoise
from counterveil.mechanisms.response import _limits
from counterveil.mechanisms.staircase import StaircaseDistribution, least_variance_gamma
from counterveil_lab.attacks.command import examine_mechanism
from counterveil_lab.attacks.mechanisms import MECHANISMS

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


SETTINGS = [("1/4", "1/40"), (1, "1/50"), (1, "1/10"), (1, "1/2"), (5, "1/2"), (5, 2), ("1.7", "0.63")]
ROUNDING = 1e-12


def largest_loss(mechanism, shrink=1):
    """Return the largest log-ratio over neighbours (f, S), (f', S') and outputs x; S = 1, f = 0."""
    g = float(mechanism.smoothness)
    sizes = np.concatenate([[0], np.logspace(-4, 8, 300)])
    x = np.concatenate([-sizes[::-1], sizes])
    base = mechanism.distribution(Fraction(1, shrink))
    worst = -np.inf
    for change in np.linspace(-g, g, 21):
        other = mechanism.distribution(Fraction(np.exp(change)) / shrink)
        farthest = min(1.0, np.exp(change))  # each S bounds its own local sensitivity
        for shift in farthest * np.array([-1, -0.5, 0, 0.5, 1]):
            losses = base.log_density(x) - other.log_density(x - shift)
            worst = max(worst, float(losses.max()), float(-losses.min()))
    return worst


@pytest.mark.parametrize(("epsilon", "smoothness"), SETTINGS)
def test_the_largest_loss_is_the_claim(epsilon, smoothness):
    mechanism = Lomax(epsilon, smoothness)
    assert 0.95 * mechanism.epsilon <= largest_loss(mechanism) <= float(mechanism.epsilon) + ROUNDING


@pytest.mark.parametrize(("epsilon", "smoothness"), [(1, "1/50"), (1, "1/10"), (5, "1/2")])
def test_a_third_of_the_noise_breaks_the_claim(epsilon, smoothness):
    assert largest_loss(Lomax(epsilon, smoothness), shrink=3) > 1.2 * epsilon


@pytest.mark.parametrize(("epsilon", "smoothness"), SETTINGS)
def test_alpha_satisfies_the_three_inequalities_and_no_larger_one_does(epsilon, smoothness):
    mechanism = Lomax(epsilon, smoothness)
    g = float(mechanism.smoothness)

    def worst(alpha):
        return max(alpha * np.log1p(g), (alpha - 1) * g, g + alpha * np.log1p(g * np.exp(-g)))

    assert worst(float(mechanism.alpha)) <= float(mechanism.epsilon) + ROUNDING
    assert worst(float(mechanism.alpha) + 1e-9) > float(mechanism.epsilon)


def test_draws_follow_the_law_of_lomax(assert_law):
    assert_law(Lomax(1, "1/10").distribution(Fraction(3, 7)))
    assert_law(Lomax(1, "1/2").distribution(Fraction(3, 7)))


def test_the_fast_path_is_the_exact_path_of_lomax(assert_paths_agree):
    noise = Lomax.usual(1).distribution(Fraction(1))
    assert_paths_agree(noise, 10_000)
    assert_paths_agree(noise, 1_000, bits=46)
    assert_paths_agree(
        Lomax(1, "1/2").distribution(Fraction(1)), 1_000
    )  # tails so heavy that cells are coarse


def test_the_paths_agree_at_the_edges_of_cells_of_lomax(assert_seams_agree):
    assert_seams_agree(Lomax.usual(1).distribution(Fraction(1)))


@pytest.mark.parametrize("smoothness", ["1/1000", "1/10"])
def test_the_table_keeps_its_bounds_of_lomax(smoothness, assert_table_bounds):
    assert_table_bounds(Lomax(1, smoothness).unit)


def test_releases_follow_the_law():
    mechanism, grid, source = Lomax.usual(1), Grid(Fraction(1, 1024)), SeededNoise(8)
    released = [float(mechanism.release(Fraction(5), Fraction(2), grid, source)) - 5 for _ in range(4000)]
    distribution = mechanism.distribution(Fraction(2))
    for p in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert abs(np.mean(released <= distribution.quantile(p)) - p) < 4 * np.sqrt(p * (1 - p) / 4000)


def test_a_zero_sensitivity_releases_the_rounded_value_and_refuses_nothing():
    mechanism, grid = Lomax.usual(1), Grid(Fraction(1, 10))
    assert mechanism.release(Fraction(1, 3), Fraction(0), grid, SeededNoise(1)) == Fraction(3, 10)
    assert mechanism.release(Fraction(1, 3), Fraction(-1), grid, SeededNoise(1)) == Fraction(3, 10)


def test_moments_and_quantiles_are_those_of_the_closed_form():
    mechanism = Lomax(1, "1/10")
    distribution, a = mechanism.distribution(Fraction(1)), float(mechanism.alpha)
    assert distribution.variance == pytest.approx(2 * 100 / ((a - 2) * (a - 3)))
    assert np.sqrt(distribution.variance) == pytest.approx(1.796, abs=1e-3)
    assert distribution.quantile(0.975) == pytest.approx(10 * (0.05 ** (-1 / (a - 1)) - 1))
    p = np.linspace(0.01, 0.99, 9)
    assert np.allclose(distribution.cdf(distribution.quantile(p)), p)
    assert np.array_equal(distribution.kinks(-1.0, 1.0, 1), [0.0])
    assert Lomax(1, "1/2").distribution(Fraction(1)).variance == np.inf


RESPONSE_SETTINGS = [(Fraction(1, 4), 2), (Fraction(1), 2), (Fraction(1), 5), (Fraction(4), 40)]


def response_largest_loss(probabilities):
    """Return the largest log-ratio over true values and released values."""
    logs = np.log(probabilities)
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


@pytest.mark.parametrize(("epsilon", "categories"), RESPONSE_SETTINGS)
def test_the_largest_loss_is_exactly_the_claim(epsilon, categories):
    probabilities = RandomizedResponse(epsilon, categories).probabilities
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert response_largest_loss(probabilities) == pytest.approx(float(epsilon), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "categories"), RESPONSE_SETTINGS)
def test_a_third_of_the_lies_breaks_the_claim(epsilon, categories):
    third = RandomizedResponse(epsilon, categories).probabilities / 3
    np.fill_diagonal(third, 0)
    np.fill_diagonal(third, 1 - third.sum(axis=1))
    assert response_largest_loss(third) > 1.2 * epsilon


@pytest.mark.parametrize(("epsilon", "categories"), RESPONSE_SETTINGS)
def test_responses_follow_the_law(epsilon, categories):
    mechanism = RandomizedResponse(epsilon, categories)
    values = np.full(100_000, categories - 1)
    counts = np.bincount(mechanism.release_many(values, SeededNoise(3)), minlength=categories)
    assert stats.chisquare(counts, 100_000 * mechanism.probabilities[-1]).pvalue > 1e-3


@pytest.mark.parametrize(("epsilon", "categories"), RESPONSE_SETTINGS)
def test_a_word_on_a_limit_is_decided_by_further_bits(epsilon, categories, scripted):
    mechanism = RandomizedResponse(epsilon, categories)
    for j, limit in enumerate(_limits(mechanism.epsilon, categories).tolist()):
        for word, further, expected in [
            (limit - 1, 0, j),
            (limit, 0, j),
            (limit, 2**64 - 1, j + 1),
            (limit + 1, 0, j + 1),
        ]:
            source = scripted([word], further)
            assert mechanism.release(0, source) == expected
            assert (source.asked > 0) == (word == limit)


def test_values_outside_the_categories_are_clamped_and_not_refused():
    mechanism = RandomizedResponse(30, 3)
    assert mechanism.release_many([-5, 0, 2, 99], SystemNoise()).tolist() == [0, 0, 2, 2]


def test_an_enormous_epsilon_tells_the_truth():
    assert RandomizedResponse(1000, 3).release_many([0, 1, 2], SeededNoise(1)).tolist() == [0, 1, 2]


# Noise of published forms alone, two answers beside four, and laws whose own tests find the largest loss, of all of
# the noise and of a third, are left to `make test-all`.
SHARES = "shares of laplace", "shares of gaussian", "shares of ball"
RARE = {
    f"mechanism/{name}"
    for name in ("lomax", "student", "smooth laplace", "response of 2", "ball", "box", *SHARES)
}


@pytest.mark.parametrize("name", thinned(MECHANISMS, *(MECHANISMS.keys() - RARE)))
def test_passes_and_a_third_of_the_noise_is_caught(name):
    report = examine_mechanism(MECHANISMS[name], seed=1)
    assert report.passed, str(report)
