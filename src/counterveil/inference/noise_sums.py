"""Sums of independent noises, tabulated on a lattice: `NoiseSum` of two, `WeightedSum` of several.

Each noise X is rounded to the points of a lattice with masses

    m_k = P((k - 1/2) step < X <= (k + 1/2) step),

and the masses of all are convolved by the discrete Fourier transform. The table holds P(sum <= x) at the points up to
zero, half the mass of a point on either side of it; between points it is interpolated. In the tails, where the
distribution function is convex, that errs towards more noise.

The two differ in what is beyond the lattice. A `NoiseSum` reaches as far as either noise does with probability 1e-13
and puts what is beyond on its last point: it serves every level, and the lattice of two noises can be that long. A
`WeightedSum` of many noises with tails of any weight cuts each one, and counts what was cut as infinite noise: tails
err outwards, by 2e-6 altogether.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, log2, sqrt
from typing import cast

import numpy as np

from counterveil.inference.noise_distribution import (
    NoiseDistribution,
    SymmetricNoise,
    interquartile_range,
    lower_quantile,
    standardised,
)
from counterveil.numerics.arrays import Floats

# Lattice points of a sum of two on either side of zero for each noise, a power of 2 within these ends; the sum has
# twice as many.
_LEAST_SIDE = 1 << 11
_MOST_SIDE = 1 << 13
# Points for each interquartile range of the wider noise: half-widths then err outwards, by 0.001 at most.
_POINTS_A_RANGE = 90
# That lattice reaches as far as either noise does with this probability.
_BEYOND_LATTICE = 1e-13
# Ratios of scales whose binary logarithms agree to this part are one.
_SAME_RATIO = 2.0**-40
# Weights whose squares are no numbers any more: what they multiply is nothing beside the rest.
_NOTHING = 1e-150
# Points of the lattice of a weighted sum; half of them lie on either side of zero.
_POINTS = 1 << 17
_HALF = _POINTS // 2
# What all noises of a weighted sum together lose by being cut.
_CUT = 2e-6
# The sum of the cut noises leaves the lattice with less than this probability (Bernstein's inequality).
_WRAPPED = 1e-9


class LatticeSum(SymmetricNoise):
    """A symmetric distribution whose lower tail stands in a table."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> tuple[float, Floats]:
        """Return the lattice step and P(sum <= x) at the points x = -end, ..., -step, 0.

        Returns
        -------
        step : float
            Distance of the points, in units of the estimate.
        below : ndarray of float
            Probabilities, rising to one half.
        """

    def position(self, size: Floats, step: float, end: int) -> Floats:
        """Return where values lie on the lattice, in steps from its end.

        Parameters
        ----------
        size : ndarray of float
            Values, at least 0.
        step : float
            Distance of the points, in units of the estimate.
        end : int
            Steps from the lattice's end to zero.

        Returns
        -------
        ndarray of float
            At most `end`; negative beyond the lattice.
        """
        size *= -1 / step
        size += end
        return size

    def upper_tail(self, size: Floats) -> Floats:
        """Return P(sum > size), interpolated between the points of the lattice.

        Parameters
        ----------
        size : ndarray of float
            Values, at least 0; the array is overwritten.

        Returns
        -------
        ndarray of float
            Probabilities, at most one half, of the shape of `size`.
        """
        step, below = self.table()
        # Arrays are written over: asking for memory would take longer than the work.
        position = self.position(size, step, len(below) - 1)
        np.maximum(position, 0.0, out=position)
        index = np.minimum(position.astype(np.intp), len(below) - 2)
        position -= index
        low = below.take(index)
        index += 1
        tail = below.take(index)
        tail -= low
        tail *= position
        tail += low
        return tail

    def exceeded_with(self, chance: Floats) -> Floats:
        """Return the x with P(sum > x) = chance, at most the lattice's end.

        Parameters
        ----------
        chance : ndarray of float
            Probabilities, in (0, 1/2].

        Returns
        -------
        ndarray of float
            Values, of the shape of `chance`.
        """
        step, below = self.table()
        positions = np.arange(len(below))
        return np.asarray(step * (positions[-1] - np.interp(chance, below, positions)))


@dataclass(frozen=True, slots=True)
class NoiseSum(LatticeSum):
    """The distribution of X + ratio * Y for independent X and Y; itself a noise distribution."""

    first: NoiseDistribution
    second: NoiseDistribution
    ratio: float = 1.0

    @property
    def standard(self) -> tuple[NoiseSum, float]:
        """The sum whose wider part has scale one and comes first, and the scale."""
        laws = [standardised(cast("Hashable", noise)) for noise in (self.first, self.second)]
        (wide, wide_scale, _), (narrow, narrow_scale, _) = sorted(
            (
                (law, scale * factor, scale * factor * largest_value(law))
                for (law, scale), factor in zip(laws, (1.0, self.ratio), strict=True)
            ),
            key=lambda law_scale_end: -law_scale_end[2],
        )
        # Multiples of one sum have one law, whatever the division rounds to.
        steps = round(log2(narrow_scale / wide_scale) / _SAME_RATIO)
        return NoiseSum(wide, narrow, 2.0 ** (steps * _SAME_RATIO)), wide_scale

    @property
    def variance(self) -> float:
        """The sum of both variances."""
        return _sum_of_variances(cast("Hashable", self))

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the breakpoints of the wider noise; those of the other are smoothed at a smaller scale."""
        law, scale = cast("tuple[NoiseSum, float]", standardised(self))
        points = law.first.breakpoints(low / scale, high / scale, most)
        return None if points is None else points * scale

    def table(self) -> tuple[float, Floats]:
        """Return the lattice step and P(sum <= x) at the points x = -end, ..., -step, 0.

        Returns
        -------
        step : float
            Distance of the points, in units of the estimate.
        below : ndarray of float
            Probabilities, rising to one half.
        """
        law, scale = cast("tuple[NoiseSum, float]", standardised(self))
        step, below = _pair_table(cast("Hashable", law.first), cast("Hashable", law.second), law.ratio)
        return step * scale, below


@lru_cache(maxsize=4096)
def _sum_of_variances(noise: NoiseSum) -> float:
    return noise.first.variance + noise.ratio**2 * noise.second.variance


@lru_cache(maxsize=128)
def _pair_table(first: NoiseDistribution, second: NoiseDistribution, ratio: float) -> tuple[float, Floats]:
    """Return the lattice step and P(X + ratio * Y <= x) at x = -2 side step, ..., -step, 0; X is the wider."""
    largest = largest_value(first)
    wanted = min(_POINTS_A_RANGE * largest / interquartile_range(first), _MOST_SIDE)
    side = max(2 ** ceil(log2(wanted)), _LEAST_SIDE)
    step = largest / side
    laws = ((cast("Hashable", first), step), (cast("Hashable", second), step / ratio))
    spectrum = np.prod([_spectrum_to_end(law, law_step, side) for law, law_step in laws], axis=0)
    below = _lower_tails(np.fft.irfft(spectrum, 4 * side)[2 * side :: -1], beyond=0.0)
    below[0] = 0.0  # nothing is beyond the lattice
    return step, below


@lru_cache(maxsize=8)
def _spectrum_to_end(distribution: NoiseDistribution, step: float, side: int) -> Floats:
    """Return the transform of the masses of one noise, with what is beyond the point `side` on that point."""
    return _spectrum(distribution, step=step, last=side, points=4 * side, rest_on_last=True)


def largest_value(distribution: NoiseDistribution) -> float:
    """Return a value that the noise exceeds in size with probability 1e-13."""
    return -lower_quantile(distribution, _BEYOND_LATTICE / 2)


@dataclass(frozen=True, slots=True)
class WeightedSum(LatticeSum):
    """The distribution of the sum of weight * X over independent X; itself a noise distribution."""

    terms: tuple[tuple[float, NoiseDistribution], ...]

    @property
    def variance(self) -> float:
        """The sum of all variances; infinite where one of them is."""
        return sum(
            (weight**2 * distribution.variance for weight, distribution in self.terms if weight > 0), 0.0
        )

    def position(self, size: Floats, step: float, end: int) -> Floats:
        """Return where values lie on the lattice, in steps from its end.

        Parameters
        ----------
        size : ndarray of float
            Values, at least 0.
        step : float
            Distance of the points, in units of the estimate.
        end : int
            Steps from the lattice's end to zero.

        Returns
        -------
        ndarray of float
            At most `end`; negative beyond the lattice.
        """
        with np.errstate(over="ignore"):  # points beyond every tail
            return np.asarray(end - size / step)

    def breakpoints(self, low: float, high: float, most: int) -> Floats:  # noqa: ARG002 - there is but one
        """Return the peak; sharper breakpoints are smoothed by the other noises."""
        return np.zeros(1 if low <= 0 <= high else 0)

    def table(self) -> tuple[float, Floats]:
        """Return the lattice step and P(sum <= x) at the points x = -end, ..., -step, 0.

        Returns
        -------
        step : float
            Distance of the points, in units of the estimate.
        below : ndarray of float
            Probabilities, rising to one half.
        """
        return _weighted_table(cast("Hashable", self.terms))


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
def _weighted_table(terms: tuple[tuple[float, NoiseDistribution], ...]) -> tuple[float, Floats]:
    """Return the lattice step and P(sum <= x) at x = -HALF step, ..., -step, 0."""
    cut = _CUT / len(terms)
    ends = [weight * float(-distribution.quantile(np.array([cut / 2]))[0]) for weight, distribution in terms]
    step = _half_length(terms, ends) / _HALF
    spectrum = np.ones(_HALF + 1)
    for (weight, distribution), count in Counter(terms).items():
        end = weight * float(-distribution.quantile(np.array([cut / 2]))[0])
        last = min(int(np.ceil(end / step)), _HALF - 1)
        transform = _spectrum(distribution, step=step / weight, last=last, points=_POINTS, rest_on_last=False)
        spectrum *= transform**count
    masses = np.fft.irfft(spectrum, _POINTS)
    return step, _lower_tails(np.append(masses[_HALF:], masses[0]), beyond=_CUT / 2)


def _half_length(terms: tuple[tuple[float, NoiseDistribution], ...], ends: list[float]) -> float:
    """Return a length that the sum of the cut noises exceeds with less than the allowed probability."""
    most = max(ends)
    variance = sum(
        min(w**2 * distribution.variance, end**2) for (w, distribution), end in zip(terms, ends, strict=True)
    )
    exponent = log(2 / _WRAPPED)
    bernstein = most * exponent / 3 + sqrt((most * exponent / 3) ** 2 + 2 * exponent * variance)
    return min(sum(ends), bernstein) * (1 + 2 / _HALF)


def _spectrum(
    distribution: NoiseDistribution, *, step: float, last: int, points: int, rest_on_last: bool
) -> Floats:
    """Return the Fourier transform of the masses of the lattice points 0, 1, ..., last and their mirror images.

    Masses are even around zero, so their transform is real. What is beyond the last point lies on it, or is lost.
    """
    edges = (np.arange(last + 1, dtype=np.float64) + 0.5) * np.float64(step)
    # Lower tails keep their digits.
    tails = distribution.cdf(-edges)
    masses = np.zeros(points)
    masses[0] = 1.0 - 2.0 * float(tails[0])
    masses[1 : last + 1] = tails[:-1] - tails[1:]
    if rest_on_last:
        masses[last] += tails[-1]
    masses[points - last :] = masses[last:0:-1]
    return np.asarray(np.fft.rfft(masses).real)


def _lower_tails(masses: Floats, *, beyond: float) -> Floats:
    """Return P(sum <= x) at the points of the lattice from its far end to zero, where it is one half.

    `masses` are those of the points; rounding of the transform leaves some below 0. Half the mass of a point lies on
    either side of it, and `beyond` the last point.
    """
    masses = np.maximum(masses, 0.0)
    below = np.cumsum(masses)
    below -= masses / 2
    return np.asarray(beyond + below * ((0.5 - beyond) / below[-1]))


@dataclass(frozen=True, slots=True)
class Scaled:
    """The distribution of `factor` times a noise; itself a noise distribution."""

    noise: NoiseDistribution
    factor: float

    @property
    def variance(self) -> float:
        """The variance."""
        return self.factor**2 * self.noise.variance

    def cdf(self, x: Floats) -> Floats:
        """Return P(factor X <= x)."""
        return self.noise.cdf(x / self.factor)

    def quantile(self, p: Floats) -> Floats:
        """Return the smallest x with P(factor X <= x) >= p."""
        return self.factor * self.noise.quantile(p)

    def breakpoints(self, low: float, high: float, most: int) -> Floats | None:
        """Return the points of [low, high] where the density is not smooth; None where they exceed `most`."""
        points = self.noise.breakpoints(low / self.factor, high / self.factor, most)
        return None if points is None else self.factor * points


def sum_of_two(terms: list[tuple[float, NoiseDistribution | None]]) -> NoiseDistribution | None:
    """Return the distribution of the weighted sum of up to two independent noises, None where there is none."""
    noises: list[NoiseDistribution] = [
        noise if abs(weight) == 1.0 else Scaled(noise, abs(weight))
        for weight, noise in terms
        if noise is not None and abs(weight) > _NOTHING
    ]
    if not noises:
        return None
    return noises[0] if len(noises) == 1 else NoiseSum(noises[0], noises[1])
