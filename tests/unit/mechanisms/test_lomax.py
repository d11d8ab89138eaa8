from fractions import Fraction

import numpy as np
import pytest

from counterveil.mechanisms import Grid, Lomax, SeededNoise

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


def test_draws_follow_the_law(assert_law):
    assert_law(Lomax(1, "1/10").distribution(Fraction(3, 7)))
    assert_law(Lomax(1, "1/2").distribution(Fraction(3, 7)))


def test_the_fast_path_is_the_exact_path(assert_paths_agree):
    noise = Lomax.usual(1).distribution(Fraction(1))
    assert_paths_agree(noise, 10_000)
    assert_paths_agree(noise, 1_000, bits=46)
    assert_paths_agree(
        Lomax(1, "1/2").distribution(Fraction(1)), 1_000
    )  # tails so heavy that cells are coarse


def test_the_paths_agree_at_the_edges_of_cells(assert_seams_agree):
    assert_seams_agree(Lomax.usual(1).distribution(Fraction(1)))


@pytest.mark.parametrize("smoothness", ["1/1000", "1/10"])
def test_the_table_keeps_its_bounds(smoothness, assert_table_bounds):
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
