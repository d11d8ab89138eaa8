"""Box noise: pure epsilon for numbers that may all move at once, each within its own bound. Proof: box.proof.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from counterveil.mechanisms.ball import VectorNoise, check_length, gamma, nearest_points
from counterveil.mechanisms.noise import (
    WORD_BITS,
    BitSource,
    Grid,
    Reals,
    SignedUniform,
    exact_ball,
    special,
)

# Sizes between which quantiles are looked for: they end where tails are below 1e-300.
_SIZES, _FAR = 4096, 750.0
# Newton steps on the log of the tail from the nearest of them, and the tail below which nothing is told apart.
_STEPS, _LEAST = 6, 1e-300


def _tail(d: int, x: Reals) -> tuple[Reals, Reals]:
    """Return P(|one coordinate| > x) at scale one, Q(d + 1, x) - x Q(d, x) / d, and the Gamma tail Q(d, x)."""
    beyond = special("gammaincc", float(d), x)
    # Q(d + 1, x) is this much more; a second tail of the Gamma distribution takes four times as long.
    more = np.exp(special("xlogy", float(d), x) - x - math.lgamma(d + 1.0))
    return np.clip(beyond * (1 - x / d) + more, 0.0, 1.0), beyond


@lru_cache(maxsize=64)
def _tails(d: int) -> tuple[Reals, Reals]:
    """Return sizes and the logarithms of their tails, which fall."""
    sizes = np.linspace(0.0, _FAR + 20.0 * d, _SIZES)
    return sizes, np.log(np.maximum(_tail(d, sizes)[0], _LEAST))


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Box(VectorNoise):
    """Box noise: epsilon-DP for d numbers that each move by at most the sensitivity, all at once.

    Density proportional to exp(-epsilon max|z_j| / sensitivity); the variance of a coordinate is (d + 1) (d +
    2) / 3 (sensitivity / epsilon)^2. `cdf`, `quantile` and `breakpoints` are those of one coordinate.

    Parameters
    ----------
    sensitivity : number
        Largest change of the vector in the mechanism's norm when one person's data change, above 0.
    epsilon : number
        Privacy loss of one release, above 0.
    dimension : int
        Number of coordinates, from 1 to 10000.

    Attributes
    ----------
    sensitivity : Fraction
        Largest change of the vector in the mechanism's norm.
    epsilon : Fraction
        Privacy loss of one release.
    dimension : int
        Number of coordinates.

    Raises
    ------
    CounterveilError
        A sensitivity or an epsilon that is not positive (CV-P100, CV-P101), or a dimension out of range
        (CV-P105).

    Notes
    -----
    Proof: ``mechanisms/box.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import Box
    >>> Box(sensitivity=1, epsilon=1, dimension=2).variance
    4.0
    """

    name: ClassVar[str] = "box"

    @property
    def variance(self) -> float:
        """The variance of one coordinate, (d + 1)(d + 2)/3 scale^2."""
        return (self.dimension + 1) * (self.dimension + 2) / 3 * float(self.scale) ** 2

    @property
    def standard(self) -> tuple[Box, float]:
        """The noise of scale one, and the scale: noises that share the first are evaluated together."""
        return Box(1, 1, self.dimension), float(self.scale)

    def log_density(self, z: ArrayLike) -> Reals:
        """Return the log density at vectors z.

        Parameters
        ----------
        z : array-like
            Vectors; the last axis has `dimension` entries.

        Returns
        -------
        ndarray
            Log densities, without the last axis.
        """
        d, scale = self.dimension, float(self.scale)
        largest = np.abs(np.asarray(z, dtype=np.float64)).max(axis=-1)
        return np.asarray(-largest / scale - d * math.log(2 * scale) - math.lgamma(d + 1))

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(one coordinate <= x).

        Parameters
        ----------
        x : array-like
            Points, in units of the released number.

        Returns
        -------
        ndarray
            Probabilities, of the shape of `x`.
        """
        x = np.asarray(x, dtype=np.float64) / float(self.scale)
        tail = _tail(self.dimension, np.abs(x))[0] / 2
        return np.where(x < 0, tail, 1.0 - tail)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(one coordinate <= x) = p.

        Parameters
        ----------
        p : array-like
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray
            Quantiles, in units of the released number.
        """
        p = np.asarray(p, dtype=np.float64)
        d, aim = self.dimension, np.log(np.maximum(2 * np.minimum(p, 1 - p), _LEAST))
        sizes, logs = _tails(d)
        # The log of the tail is concave and its slope -Q(d, x) / (d tail): Newton converges from the next smaller size.
        x = sizes[np.searchsorted(-logs, -aim, side="right") - 1]
        for _ in range(_STEPS):
            tail, beyond = _tail(d, x)
            tail = np.maximum(tail, _LEAST)
            x = x + (np.log(tail) - aim) * tail * d / np.maximum(beyond, _LEAST)
        size = np.maximum(x, 0.0) * float(self.scale)
        return np.asarray(np.where(p < 0.5, -size, size))

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
            0, the peak, if the interval holds it.
        """
        return np.zeros(1 if low <= 0 <= high else 0)

    def release(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> tuple[Fraction, ...]:
        """Return the grid points nearest to values plus noise; exact draws.

        Parameters
        ----------
        values : sequence of Fraction
            The numbers to release.
        grid : Grid
            Grid of the released numbers; its step must come from public numbers.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        tuple of Fraction
            The released numbers.

        Raises
        ------
        CounterveilError
            A vector of another length than `dimension` (CV-P111).
        """
        check_length(values, self.dimension)
        steps = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in range(len(values) + 1)]
        places = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]

        def noise(ratio: Fraction) -> list[arb]:
            factor = exact_ball(ratio) * gamma(steps)
            return [-factor * place.ball() if place.negative else factor * place.ball() for place in places]

        return nearest_points(values, self.scale, grid, [*steps, *places], noise, source)
