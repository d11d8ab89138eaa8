"""How much wider than a normal number one coordinate of l2-ball noise is at a level, as a factor of variance.

    factor = (q / (sqrt(k + 1) z))^2,  and at least 1

In k dimensions (2 or 3) noise of the l2 ball has a density proportional to exp(-|x|), so that one coordinate
has variance k + 1 and heavier tails than a normal. q is the half-width that a coordinate exceeds with chance
1 - level, and z the normal quantile of the level: a normal whose variance is multiplied by the factor reaches
exactly as far. In: level and k, both public. Out: a number without unit.

The tail is exp(-q) (2 + q) / 2 for k = 3, and the integral of 2 |x| K_1(|x|) / pi beyond q for k = 2, K_1 a
Bessel function. It is used for intervals only; that the noise protects is `mechanisms/ball.proof.md`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import exp, pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import gammaincc, k1, ndtri

from counterveil.numerics.arrays import Floats

# Where the quantile is looked for: exp(-800) is no double.
_FARTHEST = 800.0
# To this it is found.
_PRECISION = 1e-9


@lru_cache(maxsize=64)
def ball_factor(level: float, dimensions: int) -> float:
    """Return by how much one coordinate of l2-ball noise, of 2 or 3, exceeds normal noise at this level, squared.

    In k dimensions a coordinate has variance k + 1.
    """
    beyond = _beyond_of_three if dimensions == 3 else _beyond_of_two
    low = 0.0
    high = _FARTHEST
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return max(1.0, (high / sqrt(dimensions + 1) / -float(ndtri((1 - level) / 2))) ** 2)


@lru_cache(maxsize=64)
def ball_half_width(level: float, dimensions: int) -> float:
    """Return t with P(|X| <= t) = level for one coordinate X of l2-ball noise in k >= 2 dimensions, in its sds.

    X = R U with R ~ Gamma(k, 1) and U = sin(a) one coordinate of a random direction, whose angle a in [0, pi / 2] has
    a density in proportion to cos(a)^(k - 2). So

        P(|X| > t) = int P(R > t / sin(a)) cos(a)^(k - 2) da / int cos(a)^(k - 2) da,

    and the standard deviation of X is sqrt(k + 1).
    """
    nodes, weights = _angle_rule()
    density = weights * np.cos(nodes) ** (dimensions - 2)
    density /= density.sum()

    def beyond(t: float) -> float:
        return float(density @ gammaincc(dimensions, t / np.sin(nodes)))

    low = 0.0
    high = _FARTHEST
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 1 - level else (low, middle)
    return high / sqrt(dimensions + 1)


@cache
def _angle_rule() -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre on [0, pi / 2]: the integrand is smooth."""
    nodes, weights = leggauss(400)
    return pi / 4 * (nodes + 1), pi / 4 * weights


def _beyond_of_three(q: float) -> float:
    """Return how often a coordinate exceeds q in size."""
    return exp(-q) * (2 + q) / 2


def _beyond_of_two(q: float) -> float:
    """Return how often a coordinate exceeds q in size: its density is |x| K1(|x|) / pi."""
    nodes, weights = _bessel_rule()
    x = q + 20 * (nodes + 1)
    return float(2 / pi * 20 * (weights @ (x * np.asarray(k1(x))))) if q < 700 else 0.0


@cache
def _bessel_rule() -> tuple[Floats, Floats]:
    """Return nodes and weights of the integral: finding them takes far longer than using them."""
    return leggauss(80)
