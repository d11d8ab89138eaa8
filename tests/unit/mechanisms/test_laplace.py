from fractions import Fraction

import numpy as np
import pytest

from counterveil.mechanisms import Grid, Laplace, SeededNoise

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_loss_is_the_claim_and_a_third_of_the_noise_breaks_it(epsilon, assert_claim):
    assert_claim(Laplace(3, epsilon), 3.0, epsilon)


@pytest.mark.parametrize("step", [0.3, 1.0, 2.5])
def test_rounding_to_any_grid_loses_no_more(step, rounded_losses):
    losses = rounded_losses(Laplace(1, 1), 1.0, step)
    assert 0.9 <= losses.max() <= 1 + 1e-6


def test_draws_follow_the_law(assert_law):
    assert_law(Laplace(2, "1/2"))


def test_the_fast_path_is_the_exact_path(assert_paths_agree):
    assert_paths_agree(Laplace(1, "1/3"), 10_000)
    assert_paths_agree(Laplace(1, "1/3"), 1_000, bits=46)  # nearly every draw is too close to call
    assert_paths_agree(Laplace(1, "1/3"), 1_000, bits=60)
    assert_paths_agree(Laplace(1, "1/3"), 1_000, bits=1)


def test_the_paths_agree_at_the_edges_of_cells(assert_seams_agree):
    assert_seams_agree(Laplace(1, 1))


def test_the_table_keeps_its_bounds(assert_table_bounds):
    assert_table_bounds(Laplace(1, 1).unit)


def test_releases_follow_the_law_about_a_value_off_the_grid():
    noise, grid, source = Laplace(1, 1), Grid(Fraction(1, 2)), SeededNoise(2)
    value = Fraction(10**9) + Fraction(1, 7)
    released = np.array([float(noise.release(value, grid, source) - 10**9) for _ in range(4000)])
    for point in np.arange(-2, 2.5, 0.5):
        low, high = noise.cdf(np.array([point - 0.25, point + 0.25]) - 1 / 7)
        expected = high - low
        assert abs(np.mean(released == point) - expected) < 4 * np.sqrt(expected / 4000)


def test_moments_and_quantiles_are_those_of_the_closed_form():
    noise = Laplace(2, "1/2")
    assert noise.scale == 4
    assert noise.variance == pytest.approx(32)
    p = np.array([0.001, 0.25, 0.5, 0.75, 0.999])
    assert np.allclose(noise.quantile(p), np.where(p < 0.5, 4 * np.log(2 * p), -4 * np.log(2 * (1 - p))))
    assert np.allclose(noise.cdf(noise.quantile(p)), p)
    assert np.array_equal(noise.kinks(-1.0, 1.0, 1), [0.0])
    draws = noise.draw(200_000, Grid.for_scale(noise.scale), SeededNoise(4)) * 4 / 2**24
    assert draws.var() == pytest.approx(32, rel=0.02)
