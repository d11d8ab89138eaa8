"""Probabilities of (sampling error + privacy noise): a normal plus any symmetric distribution.

P(N + X <= x) is the integral of the normal density times the noise's distribution function. It is
taken by Gauss-Legendre pieces that end wherever the noise distribution has a kink and shrink towards the
kinks, so that it is accurate whether the noise is a thousand times wider or narrower than the
sampling error. Time and memory are bounded whatever the two are.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, hypot, inf, isfinite, isnan, log
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
    return _interquartile_range(cast("Hashable", distribution))


@lru_cache(maxsize=256)
def _interquartile_range(distribution: NoiseDistribution) -> float:
    ends = distribution.quantile(np.array([0.25, 0.75]))
    return float(ends[1] - ends[0])


@lru_cache(maxsize=256)
def _lower_quantile(distribution: NoiseDistribution, p: float) -> float:
    return float(distribution.quantile(np.array([p]))[0])


def tail(x: float, sd: float, distribution: NoiseDistribution | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given distribution."""
    if not isfinite(x):
        # An estimate that somebody wrote into a file, or that an unproved form overflowed to.
        return float("nan") if isnan(x) else float(x < 0)
    if distribution is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - distribution.cdf(np.array([x]))[0])
    width = interquartile_range(distribution)
    if sd < _NEGLIGIBLE * width:
        return float(distribution.cdf(np.array([_FAR * sd - x]))[0]) + _BEYOND_FAR
    return _tail_and_density(x, sd, distribution, width)[0]


def _tail_and_density(
    x: float, sd: float, distribution: NoiseDistribution, width: float
) -> tuple[float, float]:
    """Return P(N + X > x) and the density of N + X at x, for a positive standard deviation.

    `width` is the interquartile range of the noise.
    """
    kinks = _kinks_near(x, sd, distribution)
    z, weight = _pieces(x, sd, width, np.zeros(1) if kinks is None else kinks)
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
    width = interquartile_range(distribution)
    if sd < _NEGLIGIBLE * width:
        # |N + X| is beyond h only where |X| is beyond h - FAR sd or |N| beyond FAR sd.
        own = -float(distribution.quantile(np.array([max(alpha / 2 - _BEYOND_FAR, alpha / 4)]))[0])
        return (own + _FAR * sd) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(_lower_quantile(cast("Hashable", distribution), alpha / 2), normal)
    low, high = 0.0, inf
    for _ in range(_MOST_STEPS):
        beyond, density = _tail_and_density(h, sd, distribution, width)
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


# Noise whose scale is itself known only up to noise: X exp(-L) beside a released scale S exp(L).
#
# A smooth-sensitivity mechanism draws S X with S private. What is released about S is S' = S exp(L), L being
# Laplace noise on the logarithm. In units of S' the error is X exp(-L), a distribution without unknown numbers: an
# interval made from its quantiles covers as often as it says, whatever S is.


_NODES_scale, _WEIGHTS_scale = leggauss(6)
# Pieces of the Laplace distribution, in its own scale: beyond 36 it holds less than 1e-15.
_PIECES = np.concatenate([np.linspace(0.0, 6.0, 13), [8.0, 11.0, 15.0, 20.0, 27.0, 36.0]])
# The distribution function is tabulated at these logarithms of |x| / interquartile range.
_LOGS = np.arange(-14.0, 70.0, 0.04)
_LEAST_TAIL = 1e-300


@dataclass(frozen=True, slots=True)
class UnsureScale:
    """The distribution of scale * X * exp(-L), X of `distribution` and L Laplace with scale `log_scale`; symmetric.

    `origin` is a text that says where X comes from, for those who write the distribution down.
    """

    distribution: NoiseDistribution
    scale: float
    log_scale: float
    origin: str = ""

    @property
    def variance(self) -> float:
        """The variance; infinite where the scale is too unsure for one, or X has none."""
        if self.log_scale >= 0.5:
            return inf
        return self.scale**2 * self.distribution.variance / (1 - 4 * self.log_scale**2)

    def cdf(self, x: Floats) -> Floats:
        """Return P(scale X exp(-L) <= x)."""
        unit, logs = self._table()
        size = np.abs(np.asarray(x, np.float64)) / (self.scale * unit)
        with np.errstate(divide="ignore"):
            tail = 0.5 * np.exp(np.interp(np.log(size), _LOGS, logs, left=0.0))
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(scale X exp(-L) <= x) = p."""
        unit, logs = self._table()
        chance = np.asarray(p, np.float64)
        aim = np.log(np.maximum(2 * np.minimum(chance, 1 - chance), _LEAST_TAIL))
        # Tails fall with |x|: reversed, they are ascending as interpolation wants them.
        size = np.exp(np.interp(aim, logs[::-1], _LOGS[::-1])) * unit * self.scale
        size = np.where(aim >= logs[0], 0.0, size)
        return np.where(chance < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _table(self) -> tuple[float, Floats]:
        return _table(cast("Hashable", self.distribution), self.log_scale)


@lru_cache(maxsize=64)
def _table(distribution: NoiseDistribution, log_scale: float) -> tuple[float, Floats]:
    """Return a typical length of X and the logarithms of P(|X exp(-L)| > x) at the tabulated points."""
    unit = interquartile_range(distribution)
    changes, weights = _laplace_nodes(log_scale)
    points = np.exp(_LOGS[:, None] + changes) * unit
    tails = 2 * distribution.cdf(-points.ravel()).reshape(points.shape) @ weights
    return unit, np.minimum.accumulate(np.log(np.maximum(tails, _LEAST_TAIL)))


def _laplace_nodes(log_scale: float) -> tuple[Floats, Floats]:
    """Return points and weights that integrate against a Laplace distribution of this scale."""
    half, centre = np.diff(_PIECES) / 2, (_PIECES[1:] + _PIECES[:-1]) / 2
    points = (centre[:, None] + half[:, None] * _NODES_scale).ravel()
    weights = (half[:, None] * _WEIGHTS_scale).ravel() * np.exp(-points) / 2
    weights /= 2 * weights.sum()
    return np.concatenate([-points, points]) * log_scale, np.concatenate([weights, weights])


def tail_point(distribution: NoiseDistribution, log_scale: float, alpha: float) -> float:
    """Return the x with P(|X exp(-L)| > x) = alpha, without a table: for comparing designs."""
    changes, weights = _laplace_nodes(log_scale)
    low, high = log(interquartile_range(distribution)) - 20.0, log(interquartile_range(distribution)) + 60.0
    for _ in range(40):
        middle = (low + high) / 2
        missed = float(2 * distribution.cdf(-np.exp(middle + changes)) @ weights)
        low, high = (middle, high) if missed > alpha else (low, middle)
    return exp(high)


@lru_cache(maxsize=256)
def variance_allowance(log_scale: float, alpha: float) -> float:
    """Return the factor by which a variance known up to exp(2L) is enlarged to keep the level 1 - alpha.

    With sd the true standard deviation and sd exp(L) the known one, P(|N| > z sqrt(factor) exp(L)) = alpha.
    """
    changes, weights = _laplace_nodes(log_scale)
    z = float(-ndtri(alpha / 2))
    low, high = 0.0, 1.0

    def missed(root: float) -> float:
        return float(2 * ndtr(-z * root * np.exp(changes)) @ weights)

    while missed(high) > alpha:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > alpha else (low, middle)
    return high**2
