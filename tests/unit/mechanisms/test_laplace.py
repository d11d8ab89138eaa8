"""Laplace noise, two draws on one number, and shares of it: exact laws and draws."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.stats import chi2

import counterveil as cv
from counterveil.mechanisms import Grid, Laplace, LaplacePair, SeededNoise, SummedLaplace, mechanism_from_dict
from counterveil.mechanisms.summed_laplace import draw_share
from counterveil.privacy import LaplaceEvent

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


SCALES = [("1", "1"), ("1", "0.9999999"), ("3", "2"), ("3", "1/100")]


def pair(wide, narrow):
    return LaplacePair(Fraction(wide), 1, narrow)


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_density_tail_and_quantile_belong_together(wide, narrow):
    noise = pair(wide, narrow)
    total = 2 * sum(
        quad(lambda x: np.exp(noise.log_density(x)), *ends)[0] for ends in ((0, 1), (1, 8), (8, 150))
    )
    assert total == pytest.approx(1, abs=1e-9)
    p = np.array([1e-9, 0.01, 0.25, 0.5, 0.75, 0.999])
    assert np.allclose(noise.cdf(noise.quantile(p)), p, rtol=1e-9, atol=0)
    assert np.isinf(noise.quantile(np.array([0.0, 1.0]))).all()
    x = np.array([0.3, 2.0])
    slope = (noise.cdf(x + 1e-5) - noise.cdf(x - 1e-5)) / 2e-5
    assert np.allclose(slope, np.exp(noise.log_density(x)), rtol=1e-6)


def test_it_is_the_signed_mixture_of_both_scales():
    noise, x = pair("3", "2"), np.array([0.0, 0.5, 4.0, 40.0])
    density = (3 * np.exp(-x / 3) - 2 * np.exp(-x / 2)) / (2 * (9 - 4))
    assert np.allclose(np.exp(noise.log_density(-x)), density)
    tail = (9 * np.exp(-x / 3) - 4 * np.exp(-x / 2)) / (2 * (9 - 4))
    assert np.allclose(noise.cdf(-x), tail)
    assert noise.variance == pytest.approx(2 * (9 + 4))


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_draws_and_releases_follow_the_law(wide, narrow):
    noise = pair(wide, narrow)
    grid = Grid.for_scale(noise.scale)
    draws = noise.draw(20_000, grid, SeededNoise(5)).astype(float) * float(grid.step)
    assert stats.kstest(draws, noise.cdf).pvalue > 1e-3
    source = SeededNoise(6)
    released = [float(one) - 10 for one in noise.release_all([Fraction(10)] * 2000, grid, source)]
    assert stats.kstest(released, noise.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("wide", "narrow"), SCALES)
def test_the_largest_loss_is_the_claim_and_a_third_of_the_noise_breaks_it_of_pair(wide, narrow):
    noise = pair(wide, narrow)

    def loss(distribution):
        x = -np.concatenate([np.linspace(0, 10, 200), np.geomspace(10, 1e5, 200)])
        return float(
            np.max(distribution.log_density(x) - distribution.log_density(x - float(noise.sensitivity)))
        )

    assert 0.95 < loss(noise) <= 1 + 1e-9
    assert loss(LaplacePair(noise.sensitivity / 3, 1, noise.narrow / 3)) > 1.5


def test_event_and_facts():
    noise = LaplacePair("1/2", "1/4", 1)
    assert noise.event == LaplaceEvent(Fraction(1, 4))
    assert noise.scale == 2
    assert mechanism_from_dict(noise.to_dict()) == noise
    assert np.array_equal(noise.kinks(-1.0, 1.0, 1), [0.0])


NEVER = 1e-6
# Tails are interpolated between twenty thousand points.
INTERPOLATED = 1e-7


def share_probabilities(decay, shape, reach):
    """Return P(A - B = k) for k from -reach to reach, A and B negative binomial: their own recurrence, convolved."""
    p, long = np.exp(-decay), 60 * reach
    k = np.arange(1, long)
    one = (1 - p) ** shape * np.cumprod(np.append(1.0, p * (k - 1 + shape) / k))
    both = np.convolve(one, one[::-1])
    return both[long - 1 - reach : long + reach]


@pytest.mark.parametrize(("decay", "honest"), [(Fraction(7, 10), 2), (Fraction(1, 5), 3)])
def test_shares_and_their_sum_have_their_distribution(decay, honest):
    source, reach, count = SeededNoise(1), 6, 1500
    shares = np.array([[draw_share(decay, honest, source) for _ in range(honest)] for _ in range(count)])
    laplace = np.tanh(float(decay) / 2) * np.exp(-float(decay) * np.abs(np.arange(-reach, reach + 1)))
    one = share_probabilities(float(decay), 1 / honest, reach)
    for drawn, wanted in ((shares.ravel(), one), (shares.sum(axis=1), laplace)):
        seen = np.array([np.count_nonzero(drawn == k) for k in range(-reach, reach + 1)])
        seen, wanted = (np.append(x, whole - x.sum()) for x, whole in ((seen, len(drawn)), (wanted, 1.0)))
        expected = len(drawn) * wanted
        assert np.sum((seen - expected) ** 2 / expected) < chi2.isf(NEVER, len(seen) - 1)


@pytest.mark.parametrize("honest", [1, 2, 5])
def test_honest_shares_are_laplace_noise_exactly(honest):
    """The brute force of the proof: honest shares convolved are the probabilities of the discrete Laplace noise."""
    reach, found = 40, np.ones(1)
    for _ in range(honest):
        found = np.convolve(found, share_probabilities(0.9, 1 / honest, reach))
    middle = len(found) // 2
    ratios = np.log(found[middle : middle + 10] / found[middle + 1 : middle + 11])
    assert np.allclose(ratios, 0.9, atol=1e-9)


def test_the_sum_for_intervals_agrees_with_known_sums():
    x, p = np.array([-30.0, -2.0, 0.0, 0.3, 9.0]), np.array([1e-9, 0.2, 0.5, 0.975])
    for sites, known in ((1, Laplace(2, 1)), (2, LaplacePair(2, 1, 2))):
        ours = SummedLaplace(2, 1, sites, 1)
        assert np.allclose(ours.cdf(x), known.cdf(x), rtol=INTERPOLATED)
        assert np.allclose(ours.log_density(x), known.log_density(x), rtol=INTERPOLATED)
        assert np.allclose(ours.quantile(p), known.quantile(p), rtol=INTERPOLATED)
    three = SummedLaplace(1, 1, 3, 2)
    assert np.allclose(three.cdf(three.quantile(p)), p, rtol=INTERPOLATED)
    assert mechanism_from_dict(three.to_dict()) == three
    with pytest.raises(cv.errors.CounterveilError, match="CV-P204"):
        SummedLaplace(1, 1, 2, 3)


def test_values_off_the_grid_are_rounded_before_a_share_is_added():
    grid = Grid(Fraction(1, 8))
    noise = SummedLaplace(1, 1, 3, 2)
    (share,) = noise.draw(1, grid, SeededNoise(4))
    assert noise.release_all([Fraction(1, 5)], grid, SeededNoise(4)) == [(2 + int(share)) * grid.step]
