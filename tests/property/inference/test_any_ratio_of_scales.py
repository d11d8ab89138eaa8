"""Half-widths and tails for noise from 1e-15 to 1e15 times the sampling error, of every mechanism."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.thinned import thinned_rows

from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_distribution import interquartile_range
from counterveil.inference.noise_sums import NoiseSum
from counterveil.inference.simultaneous import level_of_each
from counterveil.inference.uncertainty import Uncertainty
from counterveil.inference.variance_inflation import inflation
from counterveil.mechanisms import Gaussian, Laplace, LaplacePair, Lomax, Staircase

# A half-width is at most this part longer than need be: 1e-8 where it is integrated, 2e-8 of the noise's spread where
# the sampling error is bounded instead, and what a tail that is 1e-5 larger takes.
LONGER = 3e-5
LEVELS = st.sampled_from([0.5, 0.8, 0.95, 0.999, 0.999999])
RATIOS = st.floats(-15, 15).map(lambda power: 10.0**power)
EPSILONS = st.floats(-12, 4).map(lambda power: Fraction(float(10**power)))


def staircase_of(epsilon):
    return Staircase(1, epsilon)


def laplace_of(epsilon):
    return Laplace(1, epsilon)


def gaussian_of(epsilon):
    return Gaussian(1, epsilon)


def pair_of(epsilon):
    return LaplacePair(1, epsilon, 1 / (2 * epsilon))


def lomax_of(epsilon):
    return Lomax(epsilon, min(epsilon / 10, Fraction(2))).distribution(Fraction(1))


def sum_of(epsilon):
    return NoiseSum(Staircase(1, epsilon), Staircase("1/3", epsilon))


MAKERS = [
    staircase_of,
    laplace_of,
    gaussian_of,
    pair_of,
    lomax_of,
    sum_of,
]


@pytest.mark.parametrize("maker", MAKERS)
@settings(max_examples=15)
@given(epsilon=EPSILONS, ratio=RATIOS, level=LEVELS)
def test_a_half_width_covers_and_is_hardly_longer(maker, epsilon, ratio, level):
    distribution = maker(epsilon)
    sd, alpha = ratio * interquartile_range(distribution), 1 - level
    half = half_width(sd, distribution, alpha)
    assert np.isfinite(half)
    assert 2 * tail(half, sd, distribution) <= alpha * (1 + 1e-9)
    assert 2 * tail(half * (1 - LONGER), sd, distribution) >= alpha * (1 - 1e-4)
    # Neither error alone is longer than both together.
    alone = -float(distribution.quantile(np.array([alpha / 2]))[0])
    assert half >= alone * (1 - 1e-6)
    assert half >= half_width(sd, None, alpha) * (1 - 1e-6)


def exact_staircase_tail(epsilon, x, sd):
    """Return P(N + X > x) for staircase noise of sensitivity one by summing its steps in many digits."""
    with mpmath.workdps(40):
        gamma = (
            mpmath.mpf(Staircase(1, epsilon).unit.gamma.numerator)
            / Staircase(1, epsilon).unit.gamma.denominator
        )
        b = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        height = (1 - b) / (2 * (gamma * (1 - b) + b))
        sd, x = mpmath.mpf(sd), mpmath.mpf(x)

        def uniform(low, high):
            # Of P(N > x - u) over u in (low, high): an antiderivative of the normal distribution function.
            def area(u):
                z = (u - x) / sd
                return sd * (z * mpmath.ncdf(z) + mpmath.npdf(z))

            return area(high) - area(low)

        total, step = height * uniform(-gamma, gamma), 0
        while step < 60 / float(epsilon):
            density = height * b ** (step + 1)
            total += density * (
                uniform(gamma + step, gamma + step + 1) + uniform(-gamma - step - 1, -gamma - step)
            )
            step += 1
        return float(total)


STEPS = list(product([Fraction(1, 10), Fraction(1), Fraction(5)], [1e-3, 1.0, 3000.0]))


@pytest.mark.parametrize(("epsilon", "sd"), thinned_rows(STEPS, STEPS[1], STEPS[3], STEPS[8]))
def test_staircase_tails_against_their_steps_summed(epsilon, sd):
    distribution = Staircase(1, epsilon)
    for alpha in (0.5, 0.05, 1e-4):
        half = half_width(sd, distribution, alpha)
        exact = 2 * exact_staircase_tail(epsilon, half, sd)
        assert alpha * (1 - 1e-6) <= exact <= alpha * (1 + 1e-9)


def summed_staircase_tail(epsilon, x, sd):
    """Return P(N + X > x) as a sum over the steps of staircase noise, which are short beside the normal."""
    distribution = Staircase(1, epsilon)
    gamma, steps = float(distribution.unit.gamma), np.arange(int(60 / float(epsilon)))
    nodes, weights = np.polynomial.legendre.leggauss(4)
    near = gamma + steps
    mass = distribution.cdf(-near) - distribution.cdf(-near - 1)
    points = near[:, None] + 0.5 + nodes / 2
    both = ndtr((points - x) / sd) + ndtr((-points - x) / sd)
    inner = (
        (1 - 2 * float(distribution.cdf(np.array([-gamma]))[0]))
        * float(ndtr((gamma * nodes - x) / sd) @ weights)
        / 2
    )
    return inner + float(mass @ (both @ weights)) / 2


@pytest.mark.parametrize(
    ("epsilon", "ratio"),
    thinned_rows(
        [("1e-3", 0.1), ("1e-3", 3.0), ("1e-4", 0.1), ("1e-4", 30.0)], ("1e-3", 0.1), ("1e-4", 30.0)
    ),
)
def test_more_steps_than_are_listed_err_outwards(epsilon, ratio):
    distribution = Staircase(1, epsilon)
    sd = ratio * interquartile_range(distribution)
    for alpha in (0.5, 0.05, 1e-6):
        half = half_width(sd, distribution, alpha)
        assert (
            alpha * (1 - 2e-5) <= 2 * summed_staircase_tail(Fraction(epsilon), half, sd) <= alpha * (1 + 1e-9)
        )


@settings(max_examples=25)
@given(epsilon=EPSILONS, other=EPSILONS, ratio=RATIOS, level=LEVELS)
def test_inflation_is_a_number_that_an_interval_can_be_built_on(epsilon, other, ratio, level):
    noise, variance_noise = Staircase(1, epsilon), Staircase(1, other)
    cap = ratio * interquartile_range(variance_noise)
    kappa = inflation(noise, variance_noise, cap, 1 - level)
    assert kappa >= 0
    known = Uncertainty(noise, -cap, cap, variance_noise)
    assert 0 <= known.known_sd(1 - level) <= np.sqrt(1.1 * cap) * (1 + 1e-12)
    assert np.isfinite(known.half_width(level))


def test_a_variance_that_its_noise_hides_is_taken_at_its_cap():
    known = Uncertainty(Laplace(1, 1), -5.0, 1e-3, Laplace(1, "1e-6"))
    assert known.known_sd(0.05) == pytest.approx(np.sqrt(1.1e-3))


def test_levels_of_many_stay_below_one():
    level = level_of_each(0.9999999999999999, 10**6)
    assert level < 1
    assert np.isfinite(half_width(1.0, Laplace(1, 1), 1 - level))
