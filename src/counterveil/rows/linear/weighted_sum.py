"""Weighted sums of outcomes with public coefficients: exact, whatever the order of rows.

    S = sum_i c_i y_i,    c_i = units_i / 2^bits,    y_i whole steps of the outcome in {0, ..., 2^24}.

In: public coefficients in floating point, private outcomes in whole steps of their declared range. Out: S in
steps, as an exact fraction without noise, which is added where S is released; and max ``|c_i|``, sum c_i^2.

Why it is right: coefficients are truncated towards zero to whole numbers of about nine digits, so that all
products and sums are sums of whole numbers and no rounding depends on private values. One outcome that moves
by its whole range moves S by at most max ``|c_i|`` ranges, with the truncated c.

Proof: `rows/linear/linear_estimate.proof.md`. `COEFFICIENT_BITS` keeps products within 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers

# Coefficients stay below 2**COEFFICIENT_BITS steps, so that products with each other or with outcomes
# (below 2**25) fit into int64.
COEFFICIENT_BITS = 29
# Rows a pass: bounds the memory of the products, and the sums of their halves stay below 2**63.
_PASS = 1 << 20


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Coefficients c_i = units[i] / 2**bits, exact; one entry a row."""

    units: Integers
    bits: int

    @property
    def largest(self) -> Fraction:
        """Largest |c_i|."""
        return Fraction(int(np.abs(self.units).max(initial=0))) / Fraction(2) ** self.bits

    @property
    def squares(self) -> Fraction:
        """Sum of c_i squared."""
        return Fraction(exact_dot(self.units, self.units)) / Fraction(4) ** self.bits

    def total(self, outcome: Integers) -> Fraction:
        """Return sum of c_i y_i, exact for integers y_i in [0, 2**24]."""
        return Fraction(exact_dot(self.units, outcome)) / Fraction(2) ** self.bits


def linear_form(coefficients: NDArray[np.float64]) -> LinearForm:
    """Return the coefficients truncated towards zero to about nine digits of the largest one."""
    largest = float(np.abs(coefficients).max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    bits = COEFFICIENT_BITS - exponent
    return LinearForm(np.trunc(np.ldexp(coefficients, bits)).astype(np.int64), bits)


def exact_dot(first: Integers, second: Integers) -> int:
    """Return the sum of products as a Python integer; all entries below 2**30 in size."""
    total = 0
    for start in range(0, len(first), _PASS):
        product = first[start : start + _PASS] * second[start : start + _PASS]
        # High and low halves are summed apart, so that no sum overflows.
        total += (int((product >> 32).sum()) << 32) + int((product & 0xFFFFFFFF).sum())
    return total
