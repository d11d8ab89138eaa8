"""How much wider noise from the l2 ball is than normal noise of the same variance."""

from __future__ import annotations

from functools import lru_cache
from math import exp, pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import k1, ndtri


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
    nodes, weights = leggauss(80)
    x = q + 20 * (nodes + 1)
    return float(2 / pi * 20 * (weights @ (x * np.asarray(k1(x))))) if q < 700 else 0.0
