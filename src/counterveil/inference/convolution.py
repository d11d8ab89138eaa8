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
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_REACH = 8.7
_NORMAL_ENDS = np.linspace(-_REACH, _REACH, 19)
# Distances from a kink, in standard deviations of the noise, at which pieces end.
_LADDER = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])


# Relative length of the last bracket around a half-width; its outer end is returned.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_SECOND_GUESS = 0.98
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
    width = spread_of(law)
    reach = abs(x) + _REACH * sd
    points = law.kinks(reach)
    ladder = _LADDER[_LADDER * width < 2 * reach] * width
    ends = np.concatenate([points, np.concatenate([-ladder, ladder])])
    cuts = (x - ends) / sd
    cuts = np.unique(np.concatenate([_NORMAL_ENDS, cuts[np.abs(cuts) < _REACH]]))
    centre, half = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts) / 2
    z = (centre[:, None] + half[:, None] * _NODES).ravel()
    weight = (half[:, None] * _WEIGHTS).ravel() * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
    return float(weight @ law.cdf(-(x - sd * z)))


def half_width(sd: float, law: NoiseLaw | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if law is None:
        return normal * (1 + _ROUNDING)

    def excess(h: float) -> float:
        # Logarithms of tails are nearly straight, which the search below rewards.
        return log(max(2 * tail(h, sd, law), 1e-300) / alpha)

    # Exact for normal noise; heavier tails have their answer a little lower.
    last = hypot(float(law.quantile(np.array([alpha / 2]))[0]), normal)
    before, h = excess(last), _SECOND_GUESS * last
    low, high = (last, inf) if before > 0 else (0.0, last)
    for _ in range(_MOST_STEPS):
        value = excess(h)
        low, high = (max(h, low), high) if value > 0 else (low, min(h, high))
        if high < inf and high - low <= _TOLERANCE * high:
            break
        trial = h - value * (h - last) / (value - before) if value != before else inf
        # Aim a hair beyond the root, so that a good guess closes the bracket from above.
        trial += _TOLERANCE / 4 * h if value > 0 else -_TOLERANCE / 4 * h
        if not low < trial < high:
            trial = (low + high) / 2 if high < inf else 2 * h
        last, before, h = h, value, trial
    return high
