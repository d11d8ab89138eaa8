"""Distributions of noise as inference sees them: symmetric, with a distribution function and its quantiles.

    F(x) = P(X <= x) = 1 - F(-x),    all values in units of the estimate that the noise X was added to.

- `NoiseDistribution`: what a distribution has to offer. Mechanisms make them; `noise_sums` and `noisy_scale`
  make others from these.
- `SymmetricNoise`: both functions of a symmetric distribution, from its upper tail alone.
- `standardised`: most distributions are a multiple of a standard one. What is tabulated for the standard one
  serves all its multiples.
- `NoiseBatch`: many distributions at once, those of one standard distribution in one call.

Distributions are public: they follow from the budget and the sensitivity. Intervals depend on them; privacy
does not, it follows from how noise is drawn (`mechanisms/*.proof.md`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# Breakpoints that an integral is cut at, at most.
_MOST_BREAKPOINTS = 20_000
# Those beyond a value that the noise exceeds with this probability are left out.
_BEYOND = 1e-25


class NoiseDistribution(Protocol):
    """A symmetric noise distribution, as far as inference needs it.

    It is hashable, so that what follows from it can be cached.
    """

    @property
    def variance(self) -> float:
        """Variance of the distribution; may be infinite."""
        ...

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x).

        Parameters
        ----------
        x : ndarray of float
            Values.

        Returns
        -------
        ndarray of float
            Probabilities, of the shape of `x`.
        """
        ...

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(X <= x) >= p.

        Parameters
        ----------
        p : ndarray of float
            Probabilities, in (0, 1).

        Returns
        -------
        ndarray of float
            Values, of the shape of `p`.
        """
        ...

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points where the density is not smooth.

        Parameters
        ----------
        low : float
            Lower end of the range.
        high : float
            Upper end of the range.
        most : int
            Points that are listed at most.

        Returns
        -------
        ndarray of float or None
            The points in [low, high]; None where they are more than `most`.
        """
        ...


class SymmetricNoise(ABC):
    """A symmetric noise distribution that is known by its upper tail."""

    __slots__ = ()

    @abstractmethod
    def upper_tail(self, size: Floats) -> Floats:
        """Return P(X > size).

        Parameters
        ----------
        size : ndarray of float
            Values, at least 0; the array may be overwritten.

        Returns
        -------
        ndarray of float
            Probabilities, at most one half, of the shape of `size`.
        """

    @abstractmethod
    def exceeded_with(self, chance: Floats) -> Floats:
        """Return the x >= 0 with P(X > x) = chance.

        Parameters
        ----------
        chance : ndarray of float
            Probabilities, in (0, 1/2].

        Returns
        -------
        ndarray of float
            Values, of the shape of `chance`.
        """

    def cdf(self, x: Floats) -> Floats:
        """Return P(X <= x).

        Parameters
        ----------
        x : ndarray of float
            Values.

        Returns
        -------
        ndarray of float
            Probabilities, of the shape of `x`.
        """
        tail = self.upper_tail(np.abs(np.asarray(x, np.float64)))
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(X <= x) = p.

        Parameters
        ----------
        p : ndarray of float
            Probabilities, in (0, 1).

        Returns
        -------
        ndarray of float
            Values, of the shape of `p`.
        """
        chance = np.asarray(p, np.float64)
        size = self.exceeded_with(np.minimum(chance, 1 - chance))
        return np.asarray(np.where(chance < 0.5, -size, size))


def interquartile_range(distribution: NoiseDistribution) -> float:
    """Return the interquartile range of the distribution, which exists whatever its variance."""
    return lower_quantile(distribution, 0.75) - lower_quantile(distribution, 0.25)


def lower_quantile(distribution: NoiseDistribution, p: float) -> float:
    """Return the smallest x with P(X <= x) >= p."""
    law, scale = standardised(cast("Hashable", distribution))
    return scale * float(_quantiles(cast("Hashable", law), (p,))[0])


@lru_cache(maxsize=4096)
def standardised(distribution: NoiseDistribution) -> tuple[NoiseDistribution, float]:
    """Return a distribution that this one is a multiple of, and the factor."""
    standard: tuple[NoiseDistribution, float] = getattr(distribution, "standard", (distribution, 1.0))
    return standard


@lru_cache(maxsize=4096)
def _quantiles(distribution: NoiseDistribution, levels: tuple[float, ...]) -> Floats:
    return distribution.quantile(np.array(levels))


class NoiseBatch:
    """Noise distributions one after another; `points[i]` below are numbers for the i-th of them."""

    def __init__(self, noises: Sequence[NoiseDistribution]) -> None:
        pairs = [standardised(cast("Hashable", noise)) for noise in noises]
        index_of: dict[NoiseDistribution, int] = {}
        self.which = np.array([index_of.setdefault(law, len(index_of)) for law, _ in pairs], dtype=np.intp)
        self._laws = list(index_of)
        self._scales = np.array([scale for _, scale in pairs])
        quarters = self.points((0.25, 0.75))
        self.widths = quarters[:, 1] - quarters[:, 0]

    def of(self, rows: NDArray[np.intp]) -> NoiseBatch:
        """Return the noises of these places, in their order."""
        chosen = object.__new__(NoiseBatch)
        chosen._laws = self._laws
        chosen.which = self.which[rows]
        chosen._scales = self._scales[rows]
        chosen.widths = self.widths[rows]
        return chosen

    def cdf(self, points: Floats) -> Floats:
        """Return P(X_i <= points[i])."""
        return self._by_law(points, lambda law, x, scales: law.cdf((x / scales).ravel()).reshape(x.shape))

    def quantile(self, points: Floats) -> Floats:
        """Return the x with P(X_i <= x) = points[i]."""
        return self._by_law(points, lambda law, p, scales: law.quantile(p.ravel()).reshape(p.shape) * scales)

    def breakpoints(self, low: Floats, high: Floats) -> list[Floats | None]:
        """Return the breakpoints of each in [low, high]; None where there are too many to integrate between."""
        ranges = zip(self.which.tolist(), self._scales.tolist(), low.tolist(), high.tolist(), strict=True)
        return [_breakpoints_of(self._laws[law], *ends) for law, *ends in ranges]

    def points(self, levels: tuple[float, ...]) -> Floats:
        """Return for each the x with P(X <= x) = level, for the same levels."""
        by_law = np.array([_quantiles(cast("Hashable", law), levels) for law in self._laws])
        return np.asarray(by_law.reshape(-1, len(levels))[self.which] * self._scales[:, None])

    def _by_law(
        self, points: Floats, evaluate: Callable[[NoiseDistribution, Floats, Floats], Floats]
    ) -> Floats:
        scales = self._scales.reshape(-1, *[1] * (points.ndim - 1))
        if len(self._laws) == 1:
            return np.asarray(evaluate(self._laws[0], points, scales))
        values = np.empty_like(points)
        for index in np.unique(self.which):
            rows = np.flatnonzero(self.which == index)
            values[rows] = evaluate(self._laws[index], points[rows], scales[rows])
        return values


def _breakpoints_of(law: NoiseDistribution, scale: float, low: float, high: float) -> Floats | None:
    """Return the breakpoints of a multiple of a distribution in [low, high], None where there are too many."""
    low = low / scale
    high = high / scale
    end, points = _all_breakpoints(cast("Hashable", law))
    if points is not None:
        return points[points.searchsorted(low) : points.searchsorted(high, "right")] * scale
    points = law.breakpoints(max(low, -end), min(high, end), _MOST_BREAKPOINTS)
    return None if points is None else points * scale


@lru_cache(maxsize=256)
def _all_breakpoints(law: NoiseDistribution) -> tuple[float, Floats | None]:
    """Return how far a distribution reaches, and its breakpoints up to there."""
    end = -lower_quantile(law, _BEYOND)
    return end, law.breakpoints(-end, end, _MOST_BREAKPOINTS)
