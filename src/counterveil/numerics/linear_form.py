"""Weighted sums of integer outcomes, exact, and the paired estimate of their variance."""

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


@dataclass(frozen=True, slots=True)
class PairedVariance:
    """Pairs of rows of one arm, and a weight for each: V = sum of weight * (difference)^2 / 2.

    `first`, `second`: rows of each pair. `units`: weights in steps of 2**-bits, non-negative.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    units: Integers
    bits: int

    def largest_row(self, rows: int) -> Fraction:
        """Return the largest sum of weights over the pairs that one row is part of."""
        sums = np.zeros(rows, dtype=np.int64)
        np.add.at(sums, self.first, self.units)
        np.add.at(sums, self.second, self.units)
        return Fraction(int(sums.max(initial=0))) / Fraction(2) ** self.bits

    def value(self, outcome: Integers, steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared.

        The square of a difference is truncated to `steps_bits` bits: a function of the pair with values
        in [0, 1], so that the bound on what one row can move is unchanged.
        """
        difference = outcome[self.first] - outcome[self.second]
        square = (difference * difference) >> steps_bits
        return Fraction(exact_dot(self.units, square)) / Fraction(2) ** (self.bits + steps_bits + 1)


def paired_variance(
    coefficients: NDArray[np.float64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> PairedVariance:
    """Return the paired variance of sum c_i y_i: each pair stands for the variances of its two rows.

    A row that is part of m pairs gives each of them a share 1/m of its squared coefficient.
    """
    count = np.zeros(len(coefficients))
    np.add.at(count, first, 1.0)
    np.add.at(count, second, 1.0)
    share = coefficients**2 / np.maximum(count, 1.0)
    form = linear_form(share[first] + share[second])
    return PairedVariance(first, second, form.units, form.bits)
