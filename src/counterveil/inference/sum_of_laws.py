"""The law of the sum of two independent symmetric noises, tabulated on a lattice.

Both noises are rounded to a lattice, which moves their sum by at most one lattice step, and their masses
are convolved. Between the lattice's points the distribution function is interpolated; in the tails, where it
is convex, that errs towards more noise.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from counterveil.inference.convolution import Floats, NoiseLaw

# Lattice points on either side of zero, for each noise; the sum has twice as many.
_SIDE = 1 << 13
# The lattice reaches as far as either noise does with this probability; what is beyond is put at its ends.
_BEYOND = 1e-13


@dataclass(frozen=True, slots=True)
class SumOfLaws:
    """The law of X + Y for independent X and Y; itself a law of noise."""

    first: NoiseLaw
    second: NoiseLaw

    @property
    def variance(self) -> float:
        """The sum of both variances."""
        return self.first.variance + self.second.variance

    def cdf(self, x: Floats) -> Floats:
        """Return P(X + Y <= x)."""
        step, below = self._table()
        place = -np.abs(np.asarray(x, np.float64)) / step + 2 * _SIDE
        inside = np.clip(place, 0.0, 2 * _SIDE)
        left = np.minimum(inside.astype(np.intp), 2 * _SIDE - 1)
        tail = below[left] + (inside - left) * (below[left + 1] - below[left])
        tail = np.where(place < 0, 0.0, tail)
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(X + Y <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        size = step * (2 * _SIDE - np.interp(np.minimum(chance, 1 - chance), below, np.arange(2 * _SIDE + 1)))
        return np.where(chance < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Floats | None:
        """Return the kinks of the wider noise; those of the other are smoothed at a smaller scale."""
        wider = self.first if self.first.variance >= self.second.variance else self.second
        return wider.kinks(low, high, most)

    def _table(self) -> tuple[float, Floats]:
        return _table(cast(Hashable, self.first), cast(Hashable, self.second))


@lru_cache(maxsize=64)
def _table(first: NoiseLaw, second: NoiseLaw) -> tuple[float, Floats]:
    """Return the lattice step and P(X + Y <= x) at x = -2 SIDE step, ..., -step, 0."""
    ends = [float(-law.quantile(np.array([_BEYOND / 2]))[0]) for law in (first, second)]
    step = max(ends) / _SIDE
    length = 8 * _SIDE  # a power of two beyond the 4 SIDE + 1 points of the sum, so that nothing wraps round
    spectrum = np.fft.rfft(_masses(first, step), length) * np.fft.rfft(_masses(second, step), length)
    masses = np.fft.irfft(spectrum, length)
    # Half the mass of a point lies on either side of it.
    masses = np.maximum(masses[: 2 * _SIDE + 1], 0.0)
    below = np.cumsum(masses) - masses / 2
    return step, below * (0.5 / below[-1])


def _masses(law: NoiseLaw, step: float) -> Floats:
    """Return the probabilities of the lattice points -SIDE, ..., SIDE when the noise is rounded to them."""
    edges = (np.arange(_SIDE + 1, dtype=np.float64) + 0.5) * np.float64(step)
    # Lower tails keep their digits; the upper half follows by symmetry.
    tails = law.cdf(-edges)
    half = np.append(tails[:-1] - tails[1:], tails[-1])  # from point 1 outwards, the rest at the end
    half[-2] += half[-1]
    outwards = half[:-1]
    return np.concatenate([outwards[::-1], [1.0 - 2.0 * float(tails[0])], outwards])
