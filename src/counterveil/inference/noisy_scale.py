"""Noise whose scale is itself known only up to noise: X exp(-L) beside a released scale S exp(L).

A smooth-sensitivity mechanism draws S X with S private. What is released about S is S' = S exp(L), L being Laplace
noise on the logarithm. In units of S' the error is X exp(-L), a distribution without unknown numbers: an interval
made from its quantiles covers as often as it says, whatever S is. Its tail is averaged over L,

    P(|X exp(-L)| > x) = E P(|X| > x exp(L)),

by Gauss-Legendre pieces, and tabulated at logarithms of x. `variance_allowance` is the same for a sampling error
whose standard deviation is known up to exp(L).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, inf, log
from typing import cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr, ndtri

from counterveil.inference.noise_distribution import NoiseDistribution, SymmetricNoise, interquartile_range
from counterveil.numerics.arrays import Floats

_NODES, _WEIGHTS = leggauss(6)
# Pieces of the Laplace distribution, in its own scale: beyond 36 it holds less than 1e-15.
_PIECES = np.concatenate([np.linspace(0.0, 6.0, 13), [8.0, 11.0, 15.0, 20.0, 27.0, 36.0]])
# The distribution function is tabulated at these logarithms of |x| / interquartile range.
_LOGS = np.arange(-14.0, 70.0, 0.04)
_LEAST_TAIL = 1e-300
# Where a tail point is looked for: logarithms of it below and above that of the interquartile range.
_LOGS_BELOW = 20.0
_LOGS_ABOVE = 60.0


@dataclass(frozen=True, slots=True)
class NoiseOfNoisyScale(SymmetricNoise):
    """The distribution of scale * X * exp(-L), X of `distribution` and L Laplace with scale `log_scale`; symmetric.

    `origin` is a text that says where X comes from, for those who write the distribution down.
    """

    distribution: NoiseDistribution
    scale: float
    log_scale: float
    origin: str = ""

    @property
    def variance(self) -> float:
        """The variance; infinite where the scale is too noisy (`log_scale` >= 0.5), or X has none."""
        if self.log_scale >= 0.5:
            return inf
        return self.scale**2 * self.distribution.variance / (1 - 4 * self.log_scale**2)

    def upper_tail(self, size: Floats) -> Floats:
        """Return P(scale X exp(-L) > size).

        Parameters
        ----------
        size : ndarray of float
            Values, at least 0.

        Returns
        -------
        ndarray of float
            Probabilities, at most one half, of the shape of `size`.
        """
        unit, logs = self._table()
        with np.errstate(divide="ignore"):
            at = np.log(size / (self.scale * unit))
        return np.asarray(0.5 * np.exp(np.interp(at, _LOGS, logs, left=0.0)))

    def exceeded_with(self, chance: Floats) -> Floats:
        """Return the x with P(scale X exp(-L) > x) = chance.

        Parameters
        ----------
        chance : ndarray of float
            Probabilities, in (0, 1/2].

        Returns
        -------
        ndarray of float
            Values, of the shape of `chance`.
        """
        unit, logs = self._table()
        aim = np.log(np.maximum(2 * chance, _LEAST_TAIL))
        # Tails fall with |x|: reversed, they are ascending as interpolation wants them.
        size = np.exp(np.interp(aim, logs[::-1], _LOGS[::-1])) * unit * self.scale
        return np.where(aim >= logs[0], 0.0, size)

    def breakpoints(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
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
    half = np.diff(_PIECES) / 2
    centre = (_PIECES[1:] + _PIECES[:-1]) / 2
    points = (centre[:, None] + half[:, None] * _NODES).ravel()
    weights = (half[:, None] * _WEIGHTS).ravel() * np.exp(-points) / 2
    weights /= 2 * weights.sum()
    return np.concatenate([-points, points]) * log_scale, np.concatenate([weights, weights])


def tail_point(distribution: NoiseDistribution, log_scale: float, alpha: float) -> float:
    """Return the x with P(|X exp(-L)| > x) = alpha, without a table: for comparing designs."""
    changes, weights = _laplace_nodes(log_scale)
    low = log(interquartile_range(distribution)) - _LOGS_BELOW
    high = log(interquartile_range(distribution)) + _LOGS_ABOVE
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
    low = 0.0
    high = 1.0

    def missed(root: float) -> float:
        return float(2 * ndtr(-z * root * np.exp(changes)) @ weights)

    while missed(high) > alpha:
        low = high
        high = 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if missed(middle) > alpha else (low, middle)
    return high**2
