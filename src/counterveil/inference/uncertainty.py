"""The total uncertainty of a released number: sampling error and privacy noise together."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log1p, sqrt

import numpy as np
from scipy.special import chdtri, ndtri

from counterveil.inference.convolution import NoiseDistribution, half_width, tail
from counterveil.inference.inflation import HEADROOM, inflation
from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import public_normals


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """What is known about the error of one estimate; every number in it is public or already released.

    `variance` is the sampling variance as released, so it may lie outside [0, variance_cap]; where
    `variance_noise` is None it was not released and is the cap itself. `extra` is the variance
    of small noise terms that are carried as if they were normal. `bias` bounds an error that no
    averaging removes; intervals are longer by it at both ends.
    """

    noise: NoiseDistribution | None
    variance: float
    variance_cap: float
    variance_noise: NoiseDistribution | None = None
    extra: float = 0.0
    bias: float = 0.0

    @property
    def sampling_sd(self) -> float:
        """Standard deviation of the sampling error, as far as it is known."""
        return sqrt(min(max(self.variance, 0.0), self.variance_cap))

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise; infinite for distributions without one."""
        own = self.noise.variance if self.noise is not None else 0.0
        return sqrt(own + self.extra) if own < inf else inf

    @property
    def total_sd(self) -> float:
        """Standard deviation of both together."""
        return sqrt(self.sampling_sd**2 + self.noise_sd**2)

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part to build a level 1 - alpha interval on."""
        variance = self.variance
        if self.variance_noise is not None:
            noise = self.noise if self.noise is not None else self.variance_noise
            variance += inflation(noise, self.variance_noise, self.variance_cap, alpha)
            variance = min(max(variance, 0.0), HEADROOM * self.variance_cap)
        return sqrt(variance + self.extra)

    def half_width(self, level: float) -> float:
        """Return h such that (estimate - h, estimate + h) covers with probability at least `level`."""
        alpha = 1 - level
        return half_width(self.known_sd(alpha), self.noise, alpha) + self.bias

    def naive_half_width(self, level: float) -> float:
        """Return the half-width that ignores the noise: too short, for comparison only."""
        return half_width(self.sampling_sd, None, 1 - level)

    def p_value(self, distance: float, level: float) -> float:
        """Return P(|error| > |distance|), the variance being inflated as for an interval of `level`."""
        beyond = max(abs(distance) - self.bias, 0.0)
        return min(1.0, 2 * tail(beyond, self.known_sd(1 - level), self.noise))


# Intervals for a function in a finite basis: at each point, and at all points together.


_DRAWS = 4000  # public normal vectors that the width of a band is read off
# Directions that hold less than this part of the variance are left to Scheffé's bound, not drawn.
_NEGLIGIBLE = 1e-6
# Points beyond which the largest deviation is looked for on an evenly spaced part of them.
_MOST_POINTS = 2000


def deviations(features: Floats, covariance: Floats) -> Floats:
    """Return the standard deviation of features @ w at every row, for weights w of this covariance."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->i", features @ covariance, features), 0.0)))


def pointwise(level: float) -> float:
    """Return how many standard deviations an interval at one point takes."""
    return -float(ndtri((1 - level) / 2))


def simultaneous(features: Floats, covariance: Floats, level: float) -> float:
    """Return how many standard deviations hold at all rows at once, with this probability.

    The quantile of the largest standardised deviation over the rows, from a fixed set of normal draws; never
    below that of one point nor above Scheffé's bound for all linear combinations.
    """
    rows = features[:: max(1, -(-len(features) // _MOST_POINTS))]
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > _NEGLIGIBLE * max(float(values[-1]), 0.0)
    root = vectors[:, kept] * np.sqrt(values[kept])
    directions = rows @ root
    size = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    directions = directions[size > 0] / size[size > 0, None]
    one = pointwise(level)
    if not len(directions):
        return one
    largest = np.abs(public_normals(_DRAWS, directions.shape[1], 1) @ directions.T).max(axis=1)
    scheffe = float(np.sqrt(chdtri(int(kept.sum()), 1 - level)))
    return min(max(one, float(np.quantile(largest, level))), scheffe)


# Intervals that hold for several contrasts at once. Proof: simultaneous.proof.md.


# Proof: simultaneous.proof.md


def level_of_each(level: float, count: int) -> float:
    """Return the level at which each of `count` contrasts must hold for all to hold together (Šidák)."""
    # Rounded to one, a level would ask for everything: the largest double below it is as near as levels get.
    return min(float(level ** (1.0 / count)), 1.0 - 2.0**-53)


def adjusted_p(p: float, count: int) -> float:
    """Return the p-value of one of `count` contrasts, adjusted for looking at all of them (Šidák)."""
    # 1 - (1 - p)^count without losing the digits of a small p.
    return 1.0 if p >= 1 else -expm1(count * log1p(-p))
