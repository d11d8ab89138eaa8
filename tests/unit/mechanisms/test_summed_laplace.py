"""Shares of Laplace noise: their exact distribution, that of their sum, and its quantiles."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import counterveil as cv
from counterveil.mechanisms import Grid, Laplace, LaplacePair, SeededNoise, SummedLaplace, mechanism_from_dict
from counterveil.mechanisms.summed_laplace import draw_share

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
