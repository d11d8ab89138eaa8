"""Laplace noise: pure epsilon for one number of known sensitivity. Proof: laplace.proof.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb, arb_series
from numpy.typing import ArrayLike, NDArray

from counterveil.errors import refusal
from counterveil.mechanisms.noise import (
    BitSource,
    Grid,
    Peaked,
    PureNoise,
    Reals,
    positive_sensitivity,
)
from counterveil.privacy import LaplaceEvent, Number


@dataclass(frozen=True, slots=True)
class LaplaceDistribution(Peaked):
    """Density exp(-|x|) / 2."""

    @property
    def variance(self) -> float:
        """The variance."""
        return 2.0

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball of -ln u."""
        return -u.log()

    def size_density(self, x: arb_series) -> arb_series:
        """Return exp(-x) as a power series."""
        return (-x).exp()

    def log_density(self, x: Reals) -> Reals:
        """Return the log density at x."""
        return np.asarray(-np.abs(x) - np.log(2.0))

    def cdf(self, x: Reals) -> Reals:
        """Return P(X <= x)."""
        tail = 0.5 * np.exp(-np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    def upper_quantile(self, u: Reals) -> Reals:
        """Return the x >= 0 with P(|X| > x) = u."""
        with np.errstate(divide="ignore"):
            return -np.log(u)


class Laplace(PureNoise):
    """Laplace noise: epsilon-DP for one number of known sensitivity.

    Density epsilon / (2 s) exp(-epsilon |x| / s), s the sensitivity; standard deviation sqrt(2) s / epsilon.

    Parameters
    ----------
    sensitivity : number
        Largest change of the number when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the number when one person's data change.
    epsilon : Fraction
        Privacy loss of one release.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101).

    Notes
    -----
    Proof: ``mechanisms/laplace.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import Laplace
    >>> noise = Laplace(sensitivity=1, epsilon=2)
    >>> noise.variance
    0.5
    """

    __slots__ = ()
    name: ClassVar[str] = "laplace"

    @property
    def unit(self) -> LaplaceDistribution:
        """The distribution of scale one."""
        return LaplaceDistribution()

    @property
    def scale(self) -> Fraction:
        """The scale, sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs."""
        return LaplaceEvent(self.epsilon)


# Proof: laplace_pair.proof.md

# Newton steps on the log of the tail, at most, and the relative change at which they end.
_STEPS, _ENOUGH = 60, 1e-14


@dataclass(frozen=True, slots=True)
class LaplacePair:
    """The sum of two Laplace draws, for published forms that draw twice; epsilon-DP by the wider draw.

    Noise b X + a Y with b = sensitivity / epsilon, a <= b and X, Y of density exp(-|x|) / 2.

    Parameters
    ----------
    sensitivity : number
        Largest change of the number when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    narrow : number
        a, the scale of the narrower draw: above 0 and at most sensitivity / epsilon.

    Attributes
    ----------
    wide : Laplace
        The wider draw.
    narrow : Fraction
        Scale of the narrower draw.

    Raises
    ------
    CounterveilError
        Parameters that are not positive (CV-P100, CV-P101), or a `narrow` above the wider scale (CV-P201).

    Notes
    -----
    Proof: ``mechanisms/laplace_pair.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import LaplacePair
    >>> LaplacePair(sensitivity=1, epsilon=1, narrow=1).variance
    4.0
    """

    name: ClassVar[str] = "laplace_pair"
    wide: Laplace
    narrow: Fraction

    def __init__(self, sensitivity: Number, epsilon: Number, narrow: Number) -> None:
        object.__setattr__(self, "wide", Laplace(sensitivity, epsilon))
        object.__setattr__(self, "narrow", positive_sensitivity(narrow))
        if self.narrow > self.wide.scale:
            raise refusal("CV-P201", scale=float(self.wide.scale), narrow=float(self.narrow))

    @property
    def sensitivity(self) -> Fraction:
        """Largest change of the number when one person's data change."""
        return self.wide.sensitivity

    @property
    def scale(self) -> Fraction:
        """The larger scale, sensitivity / epsilon."""
        return self.wide.scale

    @property
    def event(self) -> LaplaceEvent:
        """What one release costs: that of the draw with the larger scale."""
        return self.wide.event

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return 2.0 * (float(self.scale) ** 2 + float(self.narrow) ** 2)

    def log_density(self, x: ArrayLike) -> Reals:
        """Return the log density of the noise at x.

        Parameters
        ----------
        x : array-like
            Points, in units of the released number.

        Returns
        -------
        ndarray
            Log densities, of the shape of the points.
        """
        b, a = self._scales()
        size = np.abs(np.asarray(x, np.float64))
        return np.asarray(np.log1p(size * self._mean_decay(size) / b) - size / b - np.log(2 * (a + b)))

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(noise <= x).

        Parameters
        ----------
        x : array-like
            Points, in units of the released number.

        Returns
        -------
        ndarray
            Probabilities, of the shape of `x`.
        """
        x = np.asarray(x, np.float64)
        tail = np.exp(self._log_tail(np.abs(x)))
        return np.where(x < 0, tail, 1 - tail)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(noise <= x) = p.

        Parameters
        ----------
        p : array-like
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles, in units of the released number.
        """
        p = np.asarray(p, np.float64)
        with np.errstate(divide="ignore"):
            goal = np.log(np.minimum(p, 1 - p))
        # The log tail is concave and falls: after one step Newton is beyond the root and closes in from there.
        known = np.isfinite(goal)
        wanted = np.where(known, goal, -1.0)
        x = np.zeros_like(wanted)
        for _ in range(_STEPS):
            log_tail = self._log_tail(x)
            step = (log_tail - wanted) / np.exp(self.log_density(x) - log_tail)
            x = np.maximum(x + step, 0.0)
            if np.all(np.abs(step) <= _ENOUGH * x):
                break
        x = np.where(known, x, np.inf)
        return np.where(p < 0.5, -x, x)

    def breakpoints(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - there is but one
        """Return the points of an interval where the density is not smooth.

        Parameters
        ----------
        low, high : float
            Ends of the interval, in units of the released number.
        most : int
            The largest number of points to list.

        Returns
        -------
        ndarray
            0, where the third derivative jumps, if the interval holds it.
        """
        return np.zeros(1 if low <= 0 <= high else 0)

    def release_all(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> list[Fraction]:
        """Return the grid points nearest to values plus noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The numbers to release, with independent noise.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        list of Fraction
            The released numbers.
        """
        wide = self.wide.release_all(values, grid, source)
        second = self._second(len(values), grid, source)
        return [one + int(other) * grid.step for one, other in zip(wide, second, strict=True)]

    def draw(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return noise to add to values that are whole numbers of steps, in grid steps; exact draws.

        Parameters
        ----------
        count : int
            Number of draws.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        ndarray
            Whole numbers of steps.

        Raises
        ------
        CounterveilError
            A negative `count` (CV-P108).
        """
        return self.wide.draw(count, grid, source) + self._second(count, grid, source)

    def to_dict(self) -> dict[str, str]:
        """Return the mechanism as exact text; `mechanism_from_dict` reads it back.

        Returns
        -------
        dict of str to str
            Name of the mechanism and its parameters.
        """
        return self.wide.to_dict() | {"mechanism": self.name, "narrow": str(self.narrow)}

    def _second(self, count: int, grid: Grid, source: BitSource) -> NDArray[np.int64] | NDArray[np.object_]:
        return Laplace(self.narrow, 1).draw(count, grid, source)

    def _scales(self) -> tuple[float, float]:
        return float(self.scale), float(self.narrow)

    def _mean_decay(self, size: Reals) -> Reals:
        """Return (1 - e^-z)/z at z = size (1/a - 1/b), which is 1 at z = 0: equal scales need no case."""
        b, a = self._scales()
        z = size * (float(1 / self.narrow - 1 / self.scale) if b > a else 0.0)
        return np.where(z > 0, -np.expm1(-z) / np.where(z > 0, z, 1.0), 1.0)

    def _log_tail(self, size: Reals) -> Reals:
        """Return ln P(noise > size) for size >= 0."""
        b, a = self._scales()
        return np.asarray(
            np.log1p(size * a * self._mean_decay(size) / (b * (a + b))) - size / b - np.log(2.0)
        )
