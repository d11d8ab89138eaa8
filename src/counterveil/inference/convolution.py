"""Probabilities of (sampling error + privacy noise): a normal plus any symmetric law.

P(N + X <= x) is the integral of the normal density times the noise's distribution function. It is
taken by Gauss-Legendre pieces that end wherever the noise law has a kink and shrink towards the
kinks, so that it is accurate whether the noise is a thousand times wider or narrower than the
sampling error.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import hypot, inf, log
from typing import Protocol, cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = leggauss(12)
_SCALED_WEIGHTS = _WEIGHTS / np.sqrt(2 * np.pi)
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_REACH = 8.7
_NORMAL_ENDS = np.linspace(-_REACH, _REACH, 19)
# Distances from a kink, in standard deviations of the noise, at which pieces end.
_LADDER = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])


# A half-width is at most this part above the one that is exact.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_MOST_STEPS = 100


class NoiseLaw(Protocol):
    """A symmetric law of noise, as far as inference needs it; hashable, so that results can be cached."""

    @property
    def variance(self) -> float:
        """The law's variance; may be infinite."""
        ...

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x)."""
        ...

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(X <= x) >= p."""
        ...

    def kinks(self, limit: float) -> Floats:
        """Return the points of [-limit, limit] where the density is not smooth."""
        ...


def spread_of(law: NoiseLaw) -> float:
    """Return a length that is typical of the law: its interquartile range."""
    return _spread_of(cast(Hashable, law))


@lru_cache(maxsize=256)
def _spread_of(law: NoiseLaw) -> float:
    ends = law.quantile(np.array([0.25, 0.75]))
    return float(ends[1] - ends[0])


def tail(x: float, sd: float, law: NoiseLaw | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given law."""
    if law is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - law.cdf(np.array([x]))[0])
    return _tail_and_density(x, sd, law)[0]


def _tail_and_density(x: float, sd: float, law: NoiseLaw) -> tuple[float, float]:
    """Return P(N + X > x) and the density of N + X at x, for a positive standard deviation."""
    z, weight = _pieces(x, sd, law)
    # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
    weight *= law.cdf(sd * z - x)
    return float(weight.sum()), float(weight @ z) / sd


def _pieces(x: float, sd: float, law: NoiseLaw) -> tuple[Floats, Floats]:
    """Return points of the normal part and what they weigh, in pieces between which the integrand is smooth."""
    width = spread_of(law)
    reach = abs(x) + _REACH * sd
    ladder = _LADDER[_LADDER * width < 2 * reach] * width
    cuts = (x - np.concatenate([law.kinks(reach), -ladder, ladder])) / sd
    cuts = np.concatenate([_NORMAL_ENDS, cuts[np.abs(cuts) < _REACH]])
    cuts.sort()
    half = (cuts[1:] - cuts[:-1]) / 2
    z = (half[:, None] * _NODES + (cuts[:-1] + half)[:, None]).ravel()
    weight = z * z
    weight *= -0.5
    np.exp(weight, out=weight)
    weight *= (half[:, None] * _SCALED_WEIGHTS).ravel()
    return z, weight


def half_width(sd: float, law: NoiseLaw | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if law is None:
        return normal * (1 + _ROUNDING)
    if sd <= 0:
        return -float(law.quantile(np.array([alpha / 2]))[0]) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(float(law.quantile(np.array([alpha / 2]))[0]), normal)
    low, high = 0.0, inf
    for _ in range(_MOST_STEPS):
        beyond, density = _tail_and_density(h, sd, law)
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
