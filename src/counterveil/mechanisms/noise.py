"""A unit distribution times a scale: the numbers that intervals need, and the two ways to draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterveil.mechanisms.fast import TabledDistribution, draw_units, release_values
from counterveil.mechanisms.source import BitSource, Grid
from counterveil.privacy import Event

Reals = NDArray[np.float64]

_LEAST_SCALE = 1e-150  # its square is a double too


class UnitDistribution(TabledDistribution, Protocol):
    """A symmetric distribution of scale one; the float64 methods serve intervals and tests, never a draw."""

    @property
    def variance(self) -> float:
        """The variance; infinite where it does not exist."""
        ...

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        ...

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        ...

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        ...

    def kinks(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of [low, high] where the density is not smooth, sorted; None where they exceed `most`."""
        ...


class Noise(ABC):
    """Additive noise scale * X with X from a unit distribution."""

    __slots__ = ()

    @property
    @abstractmethod
    def unit(self) -> UnitDistribution:
        """The distribution of scale one."""

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """The exact factor of the unit distribution."""

    @property
    def _width(self) -> float:
        """The scale as a double that can be divided by: large epsilons give some smooth noise less than that."""
        return max(float(self.scale), _LEAST_SCALE)

    @property
    def standard(self) -> tuple[Noise, float]:
        """The noise of scale one, and the scale: noises that share the first are evaluated together."""
        return ScaledNoise(self.unit, Fraction(1)), self._width

    @property
    def variance(self) -> float:
        """The variance of the noise; rounding to the grid adds at most step**2 / 4."""
        return self.unit.variance * self._width**2

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the noise at x."""
        scale = self._width
        return self.unit.log_density(_reals(x) / scale) - log(scale)

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(noise <= x)."""
        return self.unit.cdf(_reals(x) / self._width)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(noise <= x) = p."""
        p = _reals(p)
        size = self.unit.upper_quantile(2 * np.minimum(p, 1 - p))
        return np.where(p < 0.5, -size, size) * self._width

    def kinks(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of [low, high] where the density is not smooth, sorted; None where they exceed `most`."""
        scale = self._width
        found = self.unit.kinks(low / scale, high / scale, most)
        return None if found is None else found * scale

    def release(self, value: Fraction, grid: Grid, source: BitSource) -> Fraction:
        """Return the grid point nearest to value + noise; an exact draw."""
        return self.release_all([value], grid, source)[0]

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to values + noise, an exact draw of its own for each."""
        return release_values(self.unit, self.scale, values, grid, source)

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return noise in grid steps, to add to values that are whole numbers of steps below 2**62 in size.

        The array is int64, or holds Python ints in the rare case that a draw needs more than 62 bits.
        """
        return draw_units(self.unit, self.scale, count, grid, source)


@dataclass(frozen=True, slots=True)
class ScaledNoise(Noise):
    """The noise of a smooth-sensitivity mechanism at one scale; its facts are as public as that scale is."""

    distribution: UnitDistribution
    factor: Fraction

    @property
    def unit(self) -> UnitDistribution:
        """The distribution of scale one."""
        return self.distribution

    @property
    def scale(self) -> Fraction:
        """The exact factor of the unit distribution."""
        return self.factor


def _reals(x: ArrayLike) -> Reals:
    return np.asarray(x, dtype=np.float64)


# What the gate uses of a mechanism.


class KnownSensitivityMechanism(Protocol):
    """Additive noise for one number whose sensitivity is public: Laplace, Staircase, Gaussian."""

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """The bound on how much one person can change the number."""
        ...

    @property
    def event(self) -> Event:
        """What one release costs."""
        ...

    @property
    def scale(self) -> Fraction:
        """The exact factor of the unit distribution; public, so grids may be derived from it."""
        ...

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        ...

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the noise at x."""
        ...

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(noise <= x)."""
        ...

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(noise <= x) = p."""
        ...

    def kinks(self, low: float, high: float, most: int) -> Reals | None:
        """Return the points of [low, high] where the density is not smooth, sorted; None where they exceed `most`."""
        ...

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to values + noise, a draw of its own for each."""
        ...

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return noise in grid steps, to add to values that are whole numbers of steps."""
        ...

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text."""
        ...
