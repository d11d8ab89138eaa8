"""Probabilities of (sampling error + privacy noise): a normal plus any symmetric distribution.

P(N + X <= x) is the integral of the normal density times the noise's distribution function. It is
taken by Gauss-Legendre pieces that end wherever the noise distribution has a kink and shrink towards the
kinks, so that it is accurate whether the noise is a thousand times wider or narrower than the
sampling error. Time and memory are bounded whatever the two are.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import hypot, inf, isfinite, isnan, log
from typing import Protocol, cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr, ndtri

from counterveil.numerics.arrays import Floats

_NODES, _WEIGHTS = leggauss(12)
_SCALED_WEIGHTS = _WEIGHTS / np.sqrt(2 * np.pi)
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_REACH = 8.7
_NORMAL_ENDS = np.linspace(-_REACH, _REACH, 19)
# Distances from a kink, in standard deviations of the noise, at which pieces end.
_LADDER = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])
# Kinks at which pieces end, at most. Those beyond the reach of the noise, which it exceeds with this probability, are
# left out where all would be more. A distribution that has still more falls by less than 0.006 (in logarithms) from
# one to the next, so that its tails are within 5e-6 of smooth ones: they are taken as larger by twice that part.
_MOST_KINKS, _BEYOND, _RIPPLE = 20_000, 1e-25, 1e-5
# A normal this much narrower than the noise, as a part of its interquartile range, is bounded, not integrated: by so
# many standard deviations, which it exceeds with less than the probability beside them.
_NEGLIGIBLE, _FAR, _BEYOND_FAR = 1e-9, 9.6, 1e-21

# A half-width is at most this part above the one that is exact.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_MOST_STEPS = 100


class NoiseDistribution(Protocol):
    """A symmetric noise distribution, as far as inference needs it; hashable, so that results can be cached."""

    @property
    def variance(self) -> float:
        """The distribution's variance; may be infinite."""
        ...

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x)."""
        ...

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(X <= x) >= p."""
        ...

    def kinks(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points of [low, high] where the density is not smooth; None where they exceed `most`."""
        ...


def interquartile_range(distribution: NoiseDistribution) -> float:
    """Return the interquartile range of the distribution, which exists whatever its variance."""
    return _interquartile_range(cast(Hashable, distribution))


@lru_cache(maxsize=256)
def _interquartile_range(distribution: NoiseDistribution) -> float:
    ends = distribution.quantile(np.array([0.25, 0.75]))
    return float(ends[1] - ends[0])


def tail(x: float, sd: float, distribution: NoiseDistribution | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given distribution."""
    if not isfinite(x):
        # An estimate that somebody wrote into a file, or that an unproved form overflowed to.
        return float("nan") if isnan(x) else float(x < 0)
    if distribution is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - distribution.cdf(np.array([x]))[0])
    if sd < _NEGLIGIBLE * interquartile_range(distribution):
        return float(distribution.cdf(np.array([_FAR * sd - x]))[0]) + _BEYOND_FAR
    return _tail_and_density(x, sd, distribution)[0]


def _tail_and_density(x: float, sd: float, distribution: NoiseDistribution) -> tuple[float, float]:
    """Return P(N + X > x) and the density of N + X at x, for a positive standard deviation."""
    kinks = _kinks_near(x, sd, distribution)
    z, weight = _pieces(x, sd, interquartile_range(distribution), np.zeros(1) if kinks is None else kinks)
    # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
    weight *= distribution.cdf(sd * z - x)
    found = float(weight.sum())
    return found if kinks is not None else found * (1 + _RIPPLE), float(weight @ z) / sd


def _kinks_near(x: float, sd: float, distribution: NoiseDistribution) -> Floats | None:
    """Return the kinks within the normal's reach of x, None where there are too many to integrate between."""
    reach = _REACH * sd * (1 + _TOLERANCE)
    low, high = x - reach, x + reach
    found = distribution.kinks(low, high, _MOST_KINKS)
    if found is not None:
        return found
    end = float(-distribution.quantile(np.array([_BEYOND]))[0])
    return distribution.kinks(max(low, -end), min(high, end), _MOST_KINKS)


def _pieces(x: float, sd: float, width: float, kinks: Floats) -> tuple[Floats, Floats]:
    """Return points of the normal part and what they weigh, in pieces between which the integrand is smooth.

    `width` is typical of the noise.
    """
    ladder = _LADDER[_LADDER * width < 2 * (abs(x) + _REACH * sd)] * width
    cuts = (x - np.concatenate([kinks, -ladder, ladder])) / sd
    cuts = np.concatenate([_NORMAL_ENDS, cuts[np.abs(cuts) < _REACH]])
    cuts.sort()
    half = (cuts[1:] - cuts[:-1]) / 2
    z = (half[:, None] * _NODES + (cuts[:-1] + half)[:, None]).ravel()
    weight = z * z
    weight *= -0.5
    np.exp(weight, out=weight)
    weight *= (half[:, None] * _SCALED_WEIGHTS).ravel()
    return z, weight


def half_width(sd: float, distribution: NoiseDistribution | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if distribution is None:
        return normal * (1 + _ROUNDING)
    if sd <= 0:
        return -float(distribution.quantile(np.array([alpha / 2]))[0]) * (1 + _TOLERANCE)
    if sd < _NEGLIGIBLE * interquartile_range(distribution):
        # |N + X| is beyond h only where |X| is beyond h - FAR sd or |N| beyond FAR sd.
        own = -float(distribution.quantile(np.array([max(alpha / 2 - _BEYOND_FAR, alpha / 4)]))[0])
        return (own + _FAR * sd) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(float(distribution.quantile(np.array([alpha / 2]))[0]), normal)
    low, high = 0.0, inf
    for _ in range(_MOST_STEPS):
        beyond, density = _tail_and_density(h, sd, distribution)
        # Logarithms of tails are nearly straight: Newton's steps on them find the root fast.
        excess = log(max(2 * beyond, 1e-300) / alpha)
        step = excess * beyond / density if density > 0 else inf
        if excess <= 0 and (-step <= _TOLERANCE * h or h - low <= _TOLERANCE * h):
            return h
        low, high = (max(h, low), high) if excess > 0 else (low, min(h, high))
        # Aim a hair beyond the root, so that a good guess ends above it.
        trial = (h + step) * (1 + _TOLERANCE / 2)
        if not low < trial < high:
            trial = (low + high) / 2 if high < inf else 2 * h
        h = trial
    return high
