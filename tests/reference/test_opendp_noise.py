"""Our distributions beside those of OpenDP, where both exist: same claims, same distributions.

OpenDP draws from the operating system, so these two-sample tests are random; they reject at a level
of one in a million.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from counterveil.mechanisms import Gaussian, Grid, Laplace, RandomizedResponse, SeededNoise
from counterveil.numerics.gaussian_profile import delta_of
from counterveil.privacy import Budget

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib")

COUNT = 6_000
LEAST_P_VALUE = 1e-6


def their_draws(make, metric, scale):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric(T=float)
    return make(*space, scale=scale)


def our_draws(noise, seed):
    grid = Grid.for_scale(noise.scale)
    return noise.draw(COUNT, grid, SeededNoise(seed)).astype(float) * float(grid.step)


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(2)])
def test_laplace_noise_has_the_same_claim_and_the_same_law(epsilon):
    noise = Laplace(3, epsilon)
    theirs = their_draws(dp.m.make_laplace, dp.l1_distance, float(noise.scale))
    assert theirs.map(3.0) == pytest.approx(float(noise.event.epsilon), rel=1e-9)
    assert stats.ks_2samp(our_draws(noise, 1), theirs([0.0] * COUNT)).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize("mu", [Fraction(1, 4), Fraction(2)])
def test_gaussian_noise_has_the_same_claim_and_the_same_law(mu):
    noise = Gaussian(3, mu)
    theirs = their_draws(dp.m.make_gaussian, dp.l2_distance, float(noise.scale))
    assert theirs.map(3.0) == pytest.approx(float(noise.event.mu) ** 2 / 2, rel=1e-9)  # rho of zCDP
    assert stats.ks_2samp(our_draws(noise, 2), theirs([0.0] * COUNT)).pvalue > LEAST_P_VALUE


def test_the_exact_gaussian_profile_lies_below_the_bound_through_zcdp():
    noise = Gaussian.calibrated(1, Budget(1, "1e-5"))
    theirs = their_draws(dp.m.make_gaussian, dp.l2_distance, float(noise.scale))
    bound = dp.c.make_zCDP_to_approxDP(theirs).map(1.0).delta(1.0)
    ours = float(delta_of(noise.mu, Fraction(1)))
    assert ours < bound < 10 * ours


@pytest.mark.parametrize("categories", [2, 5])
def test_randomized_response_has_the_same_claim_and_the_same_law(categories):
    ours = RandomizedResponse(Fraction(3, 2), categories)
    theirs = dp.m.make_randomized_response(categories=list(range(categories)), prob=ours.truth)
    assert theirs.map(1) == pytest.approx(float(ours.event.epsilon), rel=1e-9)
    counts = [
        np.bincount(ours.release_many(np.zeros(4000, dtype=int), SeededNoise(3)), minlength=categories),
        np.bincount([theirs(0) for _ in range(4000)], minlength=categories),
    ]
    assert stats.chi2_contingency(np.array(counts)).pvalue > LEAST_P_VALUE


def test_binary_response_has_the_same_probability_of_truth():
    truth = RandomizedResponse(Fraction(math.log(3)), 2).truth
    assert dp.m.make_randomized_response_bool(prob=truth).map(1) == pytest.approx(math.log(3), rel=1e-9)
