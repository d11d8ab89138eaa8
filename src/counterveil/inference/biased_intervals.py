"""Intervals that hold for every bias up to a bound, where the error is normal (Armstrong and Kolesar 2018).

With `half` the half-width without bias, z the normal quantile of the level and t = bias z / half (the bias in standard
deviations of the error), the half-width is half c / z with c the smallest number such that

    P(|N(t, 1)| > c) <= 1 - level.

It is less than half + bias, since a bias moves only one end.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from counterveil.numerics.arrays import Floats


def biased_half_widths(halves: Floats, biases: Floats, level: float) -> Floats:
    """Return half-widths of intervals that hold for every bias up to these; `halves` are those without bias.

    Errors are normal, or carried as if they were at this level (Armstrong and Kolesar 2018).
    """
    normal = -float(ndtri((1 - level) / 2))
    plain = (biases <= 0) | (halves <= 0) | (normal <= 0)
    if plain.all():
        return np.asarray(halves + np.maximum(biases, 0.0))
    shift = biases * normal / np.where(plain, 1.0, halves)
    low = np.full(len(halves), normal)
    high = normal + shift
    for _ in range(30):  # halvings
        middle = (low + high) / 2
        missed = ndtr(shift - middle) + ndtr(-shift - middle) > 1 - level
        low = np.where(missed, middle, low)
        high = np.where(missed, high, middle)
    return np.where(plain, halves + np.maximum(biases, 0.0), halves * high / normal)


def biased_half_width(half: float, bias: float, level: float) -> float:
    """Return the same of one interval."""
    return float(biased_half_widths(np.array([half]), np.array([bias]), level)[0])
