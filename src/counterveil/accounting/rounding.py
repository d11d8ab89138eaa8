"""Rational square roots and grids, rounded in a stated direction.

Budgets are exact; where a number is irrational or its digits would grow without end, it is
replaced by a rational on the side that costs the spender.
"""

from __future__ import annotations

import math
from fractions import Fraction

GRID_BITS = 64
_GRID = 1 << GRID_BITS
# Sums of human-written budgets stay exact below this denominator; above it they are rounded up.
_LONGEST_DENOMINATOR = 10**60


def sqrt_down(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 below it."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return Fraction(math.isqrt(value.numerator * _GRID * _GRID // value.denominator), _GRID)


def sqrt_up(value: Fraction) -> Fraction:
    """Return the root of `value >= 0`: exact where rational, else the next multiple of 2**-64 above it."""
    below = sqrt_down(value)
    return below if below * below == value else below + Fraction(1, _GRID)


def square_up(value: Fraction) -> Fraction:
    """Return `value` squared, rounded up to a multiple of 2**-128 so that running sums stay short."""
    grid = _GRID * _GRID
    return Fraction(math.ceil(value * value * grid), grid)


def shorten_up(value: Fraction) -> Fraction:
    """Return `value` itself while its denominator is short, else the next multiple of 10**-60 above it."""
    if value.denominator <= _LONGEST_DENOMINATOR:
        return value
    return Fraction(math.ceil(value * _LONGEST_DENOMINATOR), _LONGEST_DENOMINATOR)
