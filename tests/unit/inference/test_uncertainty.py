"""Total uncertainty: sampling error and noise convolved, parts, intervals, p-values, several at once, and bias."""

import sys
from fractions import Fraction
from itertools import pairwise
from math import exp, pi

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import norm
from tests.thinned import thinned
from tests.unit.inference.distributions import PlainLaplace, PlainNormal

from counterveil.inference import convolution, searches, variance_inflation
from counterveil.inference.convolution import half_width, tail
from counterveil.inference.noise_distribution import interquartile_range
from counterveil.inference.noise_sums import NoiseSum
from counterveil.inference.noisy_scale import NoiseOfNoisyScale, tail_point, variance_allowance
from counterveil.inference.pooled_uncertainty import PooledUncertainty
from counterveil.inference.uncertainty import Uncertainty, solve_together
from counterveil.inference.variance_inflation import HEADROOM, inflation, positive_part
from counterveil.mechanisms import Box, Gaussian, Laplace, Lomax, Staircase


def test_a_noisy_variance_is_enlarged_for_an_interval():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 900.0, PlainLaplace(3.0))
    assert known.known_variance(0.05) > known.likely_variance() > 4.0
    assert known.sampling_sd == pytest.approx(known.likely_variance() ** 0.5)


def test_variance_is_used_up_to_a_little_above_its_cap_only():
    capped = Uncertainty(PlainLaplace(1.0), 9.0, 9.0, PlainLaplace(50.0))
    plain = Uncertainty(PlainLaplace(1.0), 9.0 * HEADROOM, 9.0)
    assert capped.half_width(0.95) == pytest.approx(plain.half_width(0.95))


def test_p_value_agrees_with_interval():
    known = Uncertainty(PlainLaplace(1.0), 4.0, 9.0, PlainLaplace(0.5))
    half = known.half_width(0.95)
    assert known.p_value(half * 1.001, 0.95) < 0.05 < known.p_value(half * 0.999, 0.95)
    assert known.p_value(0.0, 0.95) == pytest.approx(1.0)


@pytest.mark.parametrize(("dimensions", "beyond"), [(3, lambda q: exp(-q) * (2 + q) / 2), (2, None)])
def test_noise_of_the_ball_reaches_as_far_as_it_does_at_every_level(dimensions, beyond):
    known = Uncertainty(None, 0.0, 0.0, ball_variance=dimensions + 1.0, ball_dimensions=dimensions)
    if beyond is None:
        generator = np.random.default_rng(3)
        # A direction of the plane, and a length of gamma(2).
        drawn = np.abs(generator.gamma(2.0, size=10**6) * np.sin(generator.uniform(0, 2 * pi, 10**6)))

        def beyond(q):
            return np.mean(drawn > q)

    for level in (0.95, 0.99, 0.999):
        half = known.half_width(level)
        assert beyond(half) == pytest.approx(1 - level, rel=0.1)
        # P-values are those of the intervals, whatever the level that they are asked at.
        assert known.p_value(half, 0.9) == pytest.approx(1 - level, rel=2e-3)
    assert known.noise_sd == pytest.approx((dimensions + 1) ** 0.5)


def test_pooled_noise_of_the_ball_keeps_its_reach():
    site = Uncertainty(None, 1.0, 1.0, ball_variance=4.0, ball_dimensions=3)
    pooled = PooledUncertainty((site, site), (0.5, 0.5))
    for level in (0.95, 0.999):
        assert pooled.half_width(level) == pytest.approx(site.half_width(level) / 2**0.5)
        assert pooled.p_value(pooled.half_width(level), 0.9) == pytest.approx(1 - level, rel=2e-3)


@pytest.mark.parametrize("level", [0.01, 0.95, 0.999])
@pytest.mark.parametrize("bias", [1e-6, 0.3, 2.0])
def test_intervals_hold_for_normal_errors_around_every_bias_up_to_the_bound(level, bias):
    known = Uncertainty(None, 0.04, 0.04, bias=bias)
    half = known.half_width(level)
    assert norm.sf([half - bias, half + bias], scale=0.2).sum() == pytest.approx(1 - level, rel=1e-6)
    assert known.p_value(-half, level) == pytest.approx(1 - level, rel=1e-6)
    ball = Uncertainty(None, 0.04, 0.04, bias=bias, ball_variance=0.01, ball_dimensions=2)
    assert ball.p_value(ball.half_width(level), 0.95) == pytest.approx(1 - level, rel=0.02)


def test_a_bias_lengthens_intervals_with_other_noise_at_both_ends():
    plain, known = (Uncertainty(PlainLaplace(0.1), 0.04, 0.04, bias=bias) for bias in (0.0, 0.3))
    assert known.half_width(0.95) == pytest.approx(plain.half_width(0.95) + 0.3)
    assert known.p_value(0.2, 0.95) == 1.0
    assert known.p_value(-0.8, 0.95) == pytest.approx(plain.p_value(0.5, 0.95))


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("x", [0.0, 0.01, 0.5, 2.0, 5.0, 20.0, 200.0])
def test_laplace_tail_equals_closed_form(scale, x):
    distribution = PlainLaplace(scale)
    expected = distribution.tail_with_normal(x, 1.0)
    assert tail(x, 1.0, distribution) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_normal_plus_normal_is_normal(scale):
    half = half_width(1.0, PlainNormal(scale), 0.05)
    assert half == pytest.approx(norm.ppf(0.975) * np.hypot(1.0, scale), rel=1e-7)


def test_half_width_without_noise_or_without_sampling_error():
    assert half_width(2.0, None, 0.05) == pytest.approx(2 * norm.ppf(0.975), rel=1e-8)
    assert half_width(0.0, PlainLaplace(1.0), 0.05) == pytest.approx(-np.log(0.05), rel=1e-8)
    assert half_width(0.0, None, 0.05) == 0.0


def test_half_width_never_rounds_inwards():
    distribution = PlainLaplace(0.7)
    for alpha in (0.2, 0.05, 0.001):
        assert 2 * tail(half_width(1.0, distribution, alpha), 1.0, distribution) <= alpha


@pytest.mark.parametrize("distribution", [PlainLaplace(1.0), PlainNormal(0.3)])
@pytest.mark.parametrize("sd", [1e-3, 0.1, 1.0, 30.0])
def test_half_width_is_hardly_longer_than_it_must_be(distribution, sd):
    for alpha in (0.5, 0.05, 1e-4):
        assert 2 * tail(half_width(sd, distribution, alpha) * (1 - 2e-8), sd, distribution) > alpha


MOST = 10**6  # breakpoints asked for, at most
X = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 8.0, 15.0])
# One lattice step is 1/90 of an interquartile range; between its points a tail is at most this much too heavy.
RELATIVE = 1e-4


def test_two_laplace_noises():
    a, b = 1.0, 0.5
    found = NoiseSum(Laplace(1, 1), Laplace(1, 2))
    exact = (a * a * np.exp(-X / a) - b * b * np.exp(-X / b)) / (2 * (a * a - b * b))
    assert np.allclose(found.cdf(-X), exact, rtol=RELATIVE)
    assert np.allclose(found.cdf(X), 1 - exact, rtol=RELATIVE)
    assert (found.cdf(-X[1:]) >= exact[1:]).all()
    assert found.variance == pytest.approx(2.5)


def test_two_gaussian_noises():
    found, sd = NoiseSum(Gaussian(1, 1), Gaussian(2, 1)), 5**0.5
    assert np.allclose(found.cdf(-X), ndtr(-X / sd), rtol=1e-4, atol=1e-13)
    p = np.array([1e-4, 0.02, 0.25, 0.5, 0.75, 0.999])
    assert np.allclose(found.quantile(p), sd * ndtri(p), atol=1e-4)


@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
@pytest.mark.parametrize("ratio", ["1/3", "1/1000"])
def test_two_staircase_noises(epsilon, ratio):
    one, other = Staircase(1, epsilon), Staircase(ratio, epsilon)
    found = NoiseSum(one, other)
    for x in np.array([0.3, 1.0, 2.5]) * found.variance**0.5:
        steps = one.breakpoints(-2 * x, 2 * x, MOST)
        reach = 60 * other.variance**0.5
        ends = np.unique(np.concatenate([other.breakpoints(-reach, reach, MOST), x - steps, x + steps]))
        ends = ends[np.abs(ends) <= reach]

        def inner(y, x=x):
            return float(np.exp(other.log_density(y)) * one.cdf(np.array([y - x]))[0])

        if len(ends) > 200:
            continue  # the integral would take longer than it tells
        exact = sum(quad(inner, a, b)[0] for a, b in pairwise(ends))
        assert found.cdf(np.array([-x]))[0] == pytest.approx(exact, rel=2e-3)


def test_half_widths_cover_with_both_noises_and_a_normal():
    rng = np.random.default_rng(0)
    one, other = Staircase(1, 1), Staircase("1/2", 1)
    distribution, sd, draws = NoiseSum(one, other), 0.7, 400_000
    h = half_width(sd, distribution, 0.05)
    error = rng.normal(0, sd, draws) + one.quantile(rng.random(draws)) + other.quantile(rng.random(draws))
    assert abs((np.abs(error) > h).mean() - 0.05) < 4 * (0.05 * 0.95 / draws) ** 0.5
    assert 2 * tail(h, sd, distribution) <= 0.05


@pytest.mark.parametrize("narrow", ["0.93", "0.5", "0.03"])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.9999])
def test_a_hidden_sum_is_one_of_few_that_are_no_narrower(narrow, level):
    for noise in (
        NoiseSum(Staircase(1, 3), Staircase(narrow, 3)),
        NoiseSum(Laplace(narrow, 1), Laplace(1, 1)),
    ):
        law, scale = noise.standard
        for sd in (4.1, 12.0):
            own = noise.variance**0.5 * sd
            exact = scale * half_width(own / scale, law, 1 - level)
            assert exact * (1 - 1e-7) <= half_width(own, noise, 1 - level) <= 1.004 * exact


def test_quantiles_invert_and_extremes_are_safe():
    distribution = NoiseSum(Laplace(1, 1), Staircase(3, 2))
    p = np.array([1e-6, 0.01, 0.3, 0.7, 0.99])
    assert np.allclose(distribution.cdf(distribution.quantile(p)), p, rtol=1e-6)
    assert distribution.cdf(np.array([-1e9, 1e9])).tolist() == [0.0, 1.0]
    assert half_width(1.0, distribution, 1e-15) < 1e3
    assert hash(distribution) == hash(NoiseSum(Laplace(1, 1), Staircase(3, 2)))


LOMAX = Lomax(Fraction(3, 4), Fraction(3, 40)).distribution(Fraction(1))


def _draws(distribution, log_scale, count=400_000):
    rng = np.random.default_rng(7)
    return distribution.quantile(rng.random(count)) * np.exp(-rng.laplace(0, log_scale, count))


@pytest.mark.parametrize("distribution", [LOMAX])
@pytest.mark.parametrize("log_scale", [0.05, 0.3, 0.8])
def test_quantiles_are_those_of_draws(distribution, log_scale):
    known = NoiseOfNoisyScale(distribution, 2.5, log_scale)
    drawn = 2.5 * _draws(distribution, log_scale)
    for p in (0.6, 0.9, 0.975, 0.995):
        point = known.quantile(np.array([p]))[0]
        assert np.mean(drawn <= point) == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / len(drawn)))
        assert known.cdf(np.array([point]))[0] == pytest.approx(p, abs=1e-9)
        assert known.cdf(np.array([-point]))[0] == pytest.approx(1 - p, abs=1e-9)


@pytest.mark.parametrize("log_scale", [0.1, 0.4])
def test_the_table_is_as_good_as_an_integral(log_scale):
    known = NoiseOfNoisyScale(LOMAX, 1.0, log_scale)
    for alpha in (0.3, 0.05, 1e-3):
        exact = tail_point(LOMAX, log_scale, alpha)
        assert known.quantile(np.array([1 - alpha / 2]))[0] == pytest.approx(exact, rel=1e-3)


def test_variance():
    known = NoiseOfNoisyScale(LOMAX, 2.0, 0.2)
    assert known.variance == pytest.approx(4 * LOMAX.variance / (1 - 4 * 0.04))
    assert NoiseOfNoisyScale(LOMAX, 1.0, 0.5).variance == np.inf


@pytest.mark.parametrize("log_scale", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_variance_known_up_to_noise_keeps_the_level(log_scale, alpha):
    factor = variance_allowance(log_scale, alpha)
    rng = np.random.default_rng(3)
    known = np.exp(rng.laplace(0, log_scale, 400_000))
    missed = np.abs(rng.normal(size=400_000)) > norm.ppf(1 - alpha / 2) * np.sqrt(factor) * known
    assert missed.mean() == pytest.approx(alpha, abs=0.003)
    assert factor > 1


@pytest.mark.parametrize("ratio", thinned([0.1, 0.5, 1.0, 2.0, 5.0], 0.5, 5.0))
@pytest.mark.parametrize("log_scale", thinned([0.1, 0.4], 0.4))
def test_intervals_for_both_errors_together_cover(ratio, log_scale):
    """The true scale is 1 and the sampling error `ratio` times the noise; both are known up to exp(L)."""
    rng = np.random.default_rng(11)
    sd = ratio * float(LOMAX.quantile(np.array([0.84]))[0])
    allowance = variance_allowance(log_scale, 0.05)
    covered = 0
    draws = 500
    for L in rng.laplace(0, log_scale, draws):
        known = Uncertainty(
            NoiseOfNoisyScale(LOMAX, float(np.exp(L)), log_scale),
            allowance * (sd * np.exp(L)) ** 2,
            allowance * (sd * np.exp(L)) ** 2,
        )
        error = rng.normal() * sd + LOMAX.quantile(rng.random(1))[0]
        covered += abs(error) <= half_width(known.known_sd(0.05), known.noise, 0.05)
    assert covered / draws >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / draws)


# What the order of sums may change, and that numbers whose binary logarithms agree to 2**-26 are calibrated as one.
ROUNDING = 2e-8
LEVELS = (0.95, 0.9998)


def forget():
    for memory in (
        convolution._TAILS,
        convolution._HALF_WIDTHS,
        variance_inflation._LIKELY,
        variance_inflation._INFLATIONS,
    ):
        memory.clear()


def errors():
    """Return estimates whose noises have one shape or another, with and without a noisy variance."""
    found = []
    for size in (3, 40, 500):
        for noise in (Staircase(f"5/{size}", 2), Laplace(f"1/{size}", 1), Gaussian(f"2/{size}", 1)):
            variance = Staircase(f"25/{size**2}", "1/2")
            found.append((0.3, Uncertainty(noise, 2 / size, 6 / size, variance)))
            found.append((-0.1, Uncertainty(noise, 2 / size, 2 / size)))
        found.append(
            (0.0, Uncertainty(Box(f"1/{size}", 1, 7), -0.1, 1 / size, Box(f"1/{size**2}", 1, 7), bias=0.01))
        )
    return [*found, (0.5, Uncertainty(None, 0.2, 0.2)), (0.5, Uncertainty(Laplace(1, 1), 0.0, 0.0))]


def shown():
    return [
        number
        for estimate, known in errors()
        for level in LEVELS
        for number in (known.half_width(level), known.p_value(estimate, level), known.sampling_sd)
    ]


@pytest.mark.parametrize("most", [16_384, 3])
def test_effects_solved_together_have_the_numbers_of_each_alone(most, monkeypatch):
    monkeypatch.setattr(searches, "_MOST_REMEMBERED", most)
    forget()
    alone = shown()
    forget()
    solve_together(errors(), LEVELS)
    assert shown() == pytest.approx(alone, rel=ROUNDING, abs=1e-15)


def test_a_memory_that_another_thread_empties_costs_no_answer():
    memory = {"known": 1.0}

    def solve(keys):
        memory.clear()
        return [2.0] * len(keys)

    assert searches.remembered(memory, ["known", "new"], solve) == [1.0, 2.0]


ALPHA = 0.05


def exact_half_widths(sd, distribution):
    """Half-widths from the closed form of the tail, by bisection."""
    low, high = np.zeros_like(sd), 50 * (distribution.scale + sd)
    for _ in range(60):
        middle = (low + high) / 2
        above = 2 * distribution.tail_with_normal(middle, sd) > ALPHA
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def coverage(variance, distribution, variance_noise, kappa, cap):
    """Coverage averaged over the noise of the variance, from closed forms only."""
    levels = (np.arange(4000) + 0.5) / 4000
    part = positive_part(variance + variance_noise.quantile(levels), variance_noise)
    known = np.minimum(part + kappa, HEADROOM * cap)
    half = exact_half_widths(np.sqrt(known), distribution)
    return 1 - 2 * distribution.tail_with_normal(half, np.full_like(half, np.sqrt(variance))).mean()


@pytest.mark.parametrize("ratio", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("kind", [PlainLaplace, PlainNormal])
def test_coverage_holds_for_every_variance_and_fails_without_inflation(ratio, kind):
    distribution, variance_noise, cap = kind(1.0), kind(ratio), 1e6
    kappa = inflation(distribution, variance_noise, cap, ALPHA)
    variances = ratio * np.array([0.0, 0.2, 0.5, 1.0, 1.7, 3.0, 6.0, 30.0])
    covered = [coverage(v, distribution, variance_noise, kappa, cap) for v in variances]
    assert min(covered) >= 1 - ALPHA
    # Not wasteful: with half of it some variance is covered less than promised. (Where the noise of the
    # variance is small beside the other noise, most of kappa is the margin for the grids' own error.)
    if ratio >= 5:
        assert min(coverage(v, distribution, variance_noise, kappa / 2, cap) for v in variances) < 1 - ALPHA


@pytest.mark.parametrize("cap", [0.02, 0.5, 5.0, 100.0])
def test_coverage_holds_up_to_the_cap(cap):
    distribution, variance_noise = PlainLaplace(1.0), PlainLaplace(1.0)
    kappa = inflation(distribution, variance_noise, cap, ALPHA)
    assert (
        min(coverage(v, distribution, variance_noise, kappa, cap) for v in cap * np.linspace(0, 1, 9))
        >= 1 - ALPHA
    )


@pytest.mark.parametrize("alpha", [0.2, 1e-3, 1e-4])
def test_other_levels_are_kept_too(alpha, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ALPHA", alpha)
    distribution, variance_noise, cap = PlainLaplace(1.0), PlainLaplace(5.0), 1e6
    kappa = inflation(distribution, variance_noise, cap, alpha)
    assert (
        min(coverage(v, distribution, variance_noise, kappa, cap) for v in (0.0, 1.0, 5.0, 15.0, 150.0))
        >= 1 - alpha
    )


@pytest.mark.parametrize("kind", [PlainLaplace, PlainNormal])
def test_what_is_released_is_taken_for_the_median_of_what_it_can_stand_for(kind):
    noise, released = kind(2.0), np.array([-50.0, -1.0, 0.0, 0.5, 3.0, 40.0])
    part = positive_part(released, noise)
    for value, found in zip(np.maximum(released, 0.0), part, strict=True):
        # Densities of the noise at value - V, for V from 0 on, from differences of its distribution function.
        below, between = 1 - noise.cdf(np.array([-value, found - value]))
        assert between == pytest.approx(below / 2)
    assert (part > 0).all()
    assert (part >= released).all()
    assert part[:3] == pytest.approx(part[0])
    assert part[-1] == pytest.approx(released[-1], rel=1e-6)


@pytest.mark.parametrize("kind", [PlainLaplace, PlainNormal])
def test_a_variance_that_came_out_below_zero_does_not_shorten_an_interval(kind):
    halves = [Uncertainty(kind(1.0), v, 100.0, kind(2.0)).half_width(0.95) for v in (-30.0, -2.0, 0.0, 1.0)]
    assert halves[:2] == pytest.approx([halves[2]] * 2)
    assert halves[3] > halves[2]
    # Longer than the noise alone would have it.
    assert halves[0] > 1.05 * Uncertainty(kind(1.0), 0.0, 100.0).half_width(0.95)


def test_intervals_of_variances_that_noise_hides_are_nearly_all_long_enough():
    """Where the variance is half of its noise's spread, even the shortest interval is as long as one that knows it."""
    noise, hidden = PlainLaplace(1.0), PlainLaplace(5.0)
    shortest = Uncertainty(noise, -1e6, 1e6, hidden).half_width(0.95)
    assert shortest > Uncertainty(noise, 2.5, 1e6).half_width(0.95)


@pytest.mark.parametrize("ratio", [0.62, 0.8])
def test_sums_of_two_noises_are_inflated_as_if_their_scales_were_a_little_others(ratio, monkeypatch):
    noise, hidden = (NoiseSum(PlainLaplace(1.0), PlainLaplace(1.0), part) for part in (ratio, ratio**2))
    unit = interquartile_range(hidden)
    found = inflation(noise, hidden, 3 * unit, ALPHA)
    monkeypatch.setattr(variance_inflation, "_RATIOS_AN_OCTAVE", 1e9)
    variance_inflation._shape.cache_clear()
    variance_inflation._INFLATIONS.clear()
    # The search itself ends within 1/128 of the unit.
    assert found == pytest.approx(inflation(noise, hidden, 3 * unit, ALPHA), abs=unit / 64)
    variance_inflation._shape.cache_clear()
