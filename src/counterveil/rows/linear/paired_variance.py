"""Variance of a weighted sum of outcomes, estimated from pairs of similar rows; exact and still private.

    V = sum over pairs (i, j) of w_ij (y_i - y_j)^2 / 2,    w_ij = c_i^2 / p_i + c_j^2 / p_j,

with outcomes y in parts of their range, public pairs of rows of one arm, coefficients c_i of the weighted
sum, and p_i the number of pairs that hold row i.

In: private outcomes in whole steps. Out: V in units of the range squared, without noise, which is added where
it is released; and `largest_row`, twice the most that one outcome can move V.

Why it is right: half the squared difference of two independent outcomes of one variance estimates it, and
errs upwards where their means differ, so V estimates sum c_i^2 Var(y_i) or more. One outcome moves only the
terms of its own pairs, each by at most w_ij / 2.

Proof: `rows/linear/linear_estimate.proof.md`. Squares and weights are truncated to whole steps, for which the
bound is computed.
"""

# Proof: linear_estimate.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers
from counterveil.rows.linear.weighted_sum import exact_dot, linear_form


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
