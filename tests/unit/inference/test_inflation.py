"""The inflation of a noisy variance keeps the level for every true variance, and is not wasteful."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from distributions import PlainLaplace, PlainNormal

from counterveil.inference import uncertainty
from counterveil.inference.uncertainty import (
    HEADROOM,
    NoiseSum,
    Uncertainty,
    inflation,
    interquartile_range,
    positive_part,
)

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
    monkeypatch.setattr(uncertainty, "_RATIOS", 1e9)
    uncertainty._shape.cache_clear()
    uncertainty._INFLATIONS.clear()
    # The search itself ends within 1/128 of the unit.
    assert found == pytest.approx(inflation(noise, hidden, 3 * unit, ALPHA), abs=unit / 64)
    uncertainty._shape.cache_clear()
