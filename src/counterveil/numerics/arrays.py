"""Types of arrays, and square roots of rationals that are never too small or never too large."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]
Ends: TypeAlias = tuple[float, float]  # of an interval


def sqrt_down(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 below it."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(isqrt((value.numerator << 128) // value.denominator), 1 << 64)


def sqrt_up(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 above it."""
    below = sqrt_down(value)
    return below if below * below == value else below + Fraction(1, 1 << 64)
