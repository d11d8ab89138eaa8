"""The distribution of the sum of two independent symmetric noises, on a lattice, and how wide noise from a ball is.

Both noises are rounded to a lattice, which moves their sum by at most one lattice step, and their masses
are convolved. Between the lattice's points the distribution function is interpolated; in the tails, where it
is convex, that errs towards more noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import exp, log, pi, sqrt
from typing import cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import k1, ndtri

from counterveil.inference.convolution import NoiseDistribution
from counterveil.numerics.arrays import Floats

# Lattice points on either side of zero, for each noise; the sum has twice as many.
_SIDE = 1 << 13
# The lattice reaches as far as either noise does with this probability; what is beyond is put at its ends.
_BEYOND = 1e-13


@dataclass(frozen=True, slots=True)
class NoiseSum:
    """The distribution of X + Y for independent X and Y; itself a noise distribution."""

    first: NoiseDistribution
    second: NoiseDistribution

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
        return _table(cast("Hashable", self.first), cast("Hashable", self.second))


@lru_cache(maxsize=64)
def _table(first: NoiseDistribution, second: NoiseDistribution) -> tuple[float, Floats]:
    """Return the lattice step and P(X + Y <= x) at x = -2 SIDE step, ..., -step, 0."""
    ends = [float(-distribution.quantile(np.array([_BEYOND / 2]))[0]) for distribution in (first, second)]
    step = max(ends) / _SIDE
    length = 8 * _SIDE  # a power of two beyond the 4 SIDE + 1 points of the sum, so that nothing wraps round
    spectrum = np.fft.rfft(_masses(first, step), length) * np.fft.rfft(_masses(second, step), length)
    masses = np.fft.irfft(spectrum, length)
    # Half the mass of a point lies on either side of it.
    masses = np.maximum(masses[: 2 * _SIDE + 1], 0.0)
    below = np.cumsum(masses) - masses / 2
    return step, below * (0.5 / below[-1])


def _masses(distribution: NoiseDistribution, step: float) -> Floats:
    """Return the probabilities of the lattice points -SIDE, ..., SIDE when the noise is rounded to them."""
    edges = (np.arange(_SIDE + 1, dtype=np.float64) + 0.5) * np.float64(step)
    # Lower tails keep their digits; the upper half follows by symmetry.
    tails = distribution.cdf(-edges)
    half = np.append(tails[:-1] - tails[1:], tails[-1])  # from point 1 outwards, the rest at the end
    half[-2] += half[-1]
    outwards = half[:-1]
    return np.concatenate([outwards[::-1], [1.0 - 2.0 * float(tails[0])], outwards])


# The distribution of a weighted sum of independent symmetric noises, tabulated on a lattice.
#
# Each noise is cut where it goes beyond a reach that it exceeds with a tiny probability; that probability is
# counted as noise of infinite size, so that tails err outwards. What is left is rounded to a lattice and
# convolved by the discrete Fourier transform.


# Points of the lattice; half of them lie on either side of zero.
_POINTS = 1 << 17
_HALF = _POINTS // 2
# What all noises together lose by being cut.
_CUT = 2e-6
# The sum of the cut noises leaves the lattice with less than this probability (Bernstein's inequality).
_WRAPPED = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """The distribution of the sum of weight * X over independent X; itself a noise distribution."""

    terms: tuple[tuple[float, NoiseDistribution], ...]

    @property
    def variance(self) -> float:
        """The sum of all variances; infinite where one of them is."""
        return sum(
            (weight**2 * distribution.variance for weight, distribution in self.terms if weight > 0), 0.0
        )

    def cdf(self, x: Floats) -> Floats:
        """Return P(sum <= x)."""
        step, below = self._table()
        size = np.abs(np.asarray(x, np.float64)) / step
        tail = np.interp(_HALF - size, np.arange(_HALF + 1), below)
        return np.where(np.asarray(x) < 0, tail, 1.0 - tail)

    def quantile(self, p: Floats) -> Floats:
        """Return the x with P(sum <= x) = p, at most the lattice's end in size."""
        step, below = self._table()
        chance = np.asarray(p, np.float64)
        size = step * (_HALF - np.interp(np.minimum(chance, 1 - chance), below, np.arange(_HALF + 1)))
        return np.where(chance < 0.5, -size, size)

    def kinks(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak; sharper kinks are smoothed by the other noises."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def _table(self) -> tuple[float, Floats]:
        return _table_sum(cast("Hashable", self.terms))


def weighted_sum(weights: Floats, distributions: list[NoiseDistribution | None]) -> NoiseDistribution | None:
    """Return the distribution of the weighted sum, None where there is no noise; weights of zero are left out."""
    terms = [
        (float(w), distribution)
        for w, distribution in zip(weights, distributions, strict=True)
        if w > 0 and distribution is not None
    ]
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    return WeightedSum(tuple(terms)) if terms else None


@lru_cache(maxsize=64)
def _table_sum(terms: tuple[tuple[float, NoiseDistribution], ...]) -> tuple[float, Floats]:
    """Return the lattice step and P(sum <= x) at x = -HALF step, ..., -step, 0."""
    cut = _CUT / len(terms)
    reaches = [
        weight * float(-distribution.quantile(np.array([cut / 2]))[0]) for weight, distribution in terms
    ]
    step = _half_length(terms, reaches) / _HALF
    spectrum = np.ones(_HALF + 1)
    for (weight, distribution), count in Counter(terms).items():
        reach = weight * float(-distribution.quantile(np.array([cut / 2]))[0])
        # The masses are even around zero, so their transform is real.
        spectrum *= np.fft.rfft(_masses_sum(weight, distribution, step, reach)).real ** count
    masses = np.maximum(np.fft.irfft(spectrum, _POINTS), 0.0)
    lower = np.append(masses[_HALF:], masses[0])  # from the far end up to zero
    below = np.cumsum(lower) - lower / 2
    # What was cut lies beyond every point, half of it on this side.
    return step, _CUT / 2 + below * ((0.5 - _CUT / 2) / below[-1])


def _half_length(terms: tuple[tuple[float, NoiseDistribution], ...], reaches: list[float]) -> float:
    """Return a length that the sum of the cut noises exceeds with less than the allowed probability."""
    most = max(reaches)
    variance = sum(
        min(w**2 * distribution.variance, reach**2)
        for (w, distribution), reach in zip(terms, reaches, strict=True)
    )
    exponent = log(2 / _WRAPPED)
    bernstein = most * exponent / 3 + sqrt((most * exponent / 3) ** 2 + 2 * exponent * variance)
    return min(sum(reaches), bernstein) * (1 + 2 / _HALF)


def _masses_sum(weight: float, distribution: NoiseDistribution, step: float, reach: float) -> Floats:
    """Return the probabilities of the lattice points 0, 1, ..., HALF, -HALF + 1, ..., -1, in that order."""
    last = min(int(np.ceil(reach / step)), _HALF - 1)
    edges = (np.arange(last + 1, dtype=np.float64) + 0.5) * (step / weight)
    tails = distribution.cdf(-edges)
    outwards = tails[:-1] - tails[1:]  # points 1, ..., last
    masses = np.zeros(_POINTS)
    masses[0] = 1.0 - 2.0 * float(tails[0])
    masses[1 : last + 1] = outwards
    masses[_POINTS - last :] = outwards[::-1]
    return masses


@lru_cache(maxsize=64)
def ball_factor(level: float, dimensions: int) -> float:
    """Return by how much one coordinate of l2-ball noise, of 2 or 3, exceeds normal noise at this level, squared.

    In k dimensions a coordinate has variance k + 1.
    """
    beyond = _beyond_of_three if dimensions == 3 else _beyond_of_two
    low, high = 0.0, 800.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return max(1.0, (high / sqrt(dimensions + 1) / -float(ndtri((1 - level) / 2))) ** 2)


def _beyond_of_three(q: float) -> float:
    """Return how often a coordinate exceeds q in size."""
    return exp(-q) * (2 + q) / 2


def _beyond_of_two(q: float) -> float:
    """Return how often a coordinate exceeds q in size: its density is |x| K1(|x|) / pi."""
    nodes, weights = _nodes()
    x = q + 20 * (nodes + 1)
    return float(2 / pi * 20 * (weights @ (x * np.asarray(k1(x))))) if q < 700 else 0.0


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return nodes and weights of the integral: finding them takes far longer than using them."""
    return leggauss(80)
