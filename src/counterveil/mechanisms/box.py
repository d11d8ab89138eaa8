"""Box noise: pure epsilon for numbers that may all move at once, each within its own bound. Proof: box.proof.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from counterveil.mechanisms.ball import VectorNoise, check_length, gamma, settled
from counterveil.mechanisms.noise import Reals
from counterveil.mechanisms.source import (
    WORD_BITS,
    BitSource,
    Grid,
    SignedUniform,
    exact_ball,
    special,
)

# Halvings of the range in which a quantile is looked for; the range ends where tails are below 1e-300.
_HALVINGS, _FAR = 80, 750.0


@dataclass(frozen=True, slots=True, init=False)
class Box(VectorNoise):
    """Noise of density proportional to exp(-epsilon max |z_j| / sensitivity), for changes of at most that in each.

    `cdf`, `quantile` and `kinks` are those of one coordinate.
    """

    @property
    def name(self) -> str:
        """The name of the mechanism in records."""
        return "box"

    @property
    def variance(self) -> float:
        """The variance of one coordinate, (d + 1)(d + 2)/3 scale^2."""
        return (self.dimension + 1) * (self.dimension + 2) / 3 * float(self.scale) ** 2

    def log_density(self, z: ArrayLike) -> Reals:
        """Return the log density at vectors z, whose last axis has `dimension` entries."""
        d, scale = self.dimension, float(self.scale)
        largest = np.abs(np.asarray(z, dtype=np.float64)).max(axis=-1)
        return np.asarray(-largest / scale - d * math.log(2 * scale) - math.lgamma(d + 1))

    def cdf(self, x: ArrayLike) -> Reals:
        """Return P(one coordinate <= x)."""
        x = np.asarray(x, dtype=np.float64) / float(self.scale)
        tail = self._tail(np.abs(x)) / 2
        return np.where(x < 0, tail, 1.0 - tail)

    def quantile(self, p: ArrayLike) -> Reals:
        """Return the x with P(one coordinate <= x) = p."""
        p = np.asarray(p, dtype=np.float64)
        wanted = 2 * np.minimum(p, 1 - p)
        low, high = np.zeros_like(wanted), np.full_like(wanted, _FAR + 20.0 * self.dimension)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            beyond = self._tail(middle) > wanted
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        size = np.where(wanted >= 1.0, 0.0, high) * float(self.scale)
        return np.where(p < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Reals:  # noqa: ARG002 - there is but one
        """Return the peak, the one point where the density of a coordinate is not smooth."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _tail(self, x: Reals) -> Reals:
        """Return P(|one coordinate| > x) at scale one: Q(d + 1, x) - x Q(d, x) / d, Q of the Gamma distribution."""
        d = self.dimension
        found = special("gammaincc", d + 1.0, x) - x * special("gammaincc", float(d), x) / d
        return np.clip(found, 0.0, 1.0)

    def release(self, values: Sequence[Fraction], grid: Grid, source: BitSource) -> tuple[Fraction, ...]:
        """Return the grid points nearest to values + noise, coordinate by coordinate; an exact draw."""
        check_length(values, self.dimension)
        steps = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in range(len(values) + 1)]
        places = [SignedUniform.of_word(source.bits(WORD_BITS)) for _ in values]

        def noise(ratio: Fraction) -> list[arb]:
            factor = exact_ball(ratio) * gamma(steps)
            return [-factor * place.ball() if place.negative else factor * place.ball() for place in places]

        return settled(values, self.scale, grid, [*steps, *places], noise, source)
