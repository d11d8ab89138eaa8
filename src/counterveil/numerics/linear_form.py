"""Weighted sums of integer outcomes, exact, and the paired estimate of their variance.

The standard error of a weighted sum whose rows come in clusters: exact, as the length of a vector.

The sum is one of c_i y_i, positive totals in one arm and negative ones in the other. With M_a the mean of the arm's
outcomes, weighted by |c_i|, cluster g has the residual total u_g = sum over its rows of f_ga c_i (y_i - M_a), and the
standard error is the Euclidean length of u. The factors f_ga make E u_g^2 right for independent outcomes of one
variance. With equal weights this is CR2 of the regression on treatment, with its degrees of freedom (Bell and McCaffrey
2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers

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


# Factors are whole multiples of 2**-FACTOR_BITS.
FACTOR_BITS = 20
# Products of units and outcomes are below 2**53: their lower and upper halves are summed apart, exactly in doubles.
_HALF_BITS = 26
# Bounds that are computed in doubles are raised by this part.
_ROUNDING = 1e-9
# Degrees of freedom are the least over these correlations of outcomes within a cluster.
_CORRELATIONS = (0.0, 0.3)
# Beyond this many clusters each counts as independent of the arm's mean, which takes off one or two degrees.
_MANY = 400


@dataclass(frozen=True, slots=True)
class ClusterForm:
    """Public numbers of a weighted sum by cluster and arm; arrays are (clusters, 2), the control arm first.

    `cell` is each row's place among cluster times arm. `units` are the coefficients in steps of 2**-bits; `signed` and
    `sizes` are their sums and those of their sizes, `squares` and `turned` those of c^2 and of c |c|, as coefficients.
    `factors` are in steps of 2**-FACTOR_BITS.
    """

    cell: NDArray[np.intp]
    units: Integers
    bits: int
    signed: Integers
    sizes: Integers
    squares: Floats
    turned: Floats
    factors: Integers

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return len(self.signed)

    @property
    def clusters_by_arm(self) -> tuple[int, int]:
        """The number of clusters with rows that count in the treated arm, and in the other."""
        control, treated = (self.sizes > 0).sum(axis=0)
        return int(treated), int(control)

    @property
    def parts(self) -> Floats:
        """The part of each arm's weights that its clusters hold, signed."""
        return np.asarray(self.signed / self.sizes.sum(axis=0))

    def length(self, outcome: Integers, steps_bits: int) -> Fraction:
        """Return the standard error for integer outcomes in [0, 2**steps_bits], in units of the whole range.

        Rounded down by less than `rounding`.
        """
        totals, weighted = self._sums(self.units, outcome), self._sums(np.abs(self.units), outcome)
        arms = [int(size) for size in self.sizes.sum(axis=0)]
        means = [sum(column) for column in zip(*weighted, strict=True)]
        squares = 0
        for own, signed, factor in zip(totals, self.signed.tolist(), self.factors.tolist(), strict=True):
            # Over the common denominator of both arms' means.
            left = [own[a] * arms[a] - signed[a] * means[a] for a in (0, 1)]
            squares += (factor[0] * left[0] * arms[1] + factor[1] * left[1] * arms[0]) ** 2
        return Fraction(isqrt(squares), 2**steps_bits) / self._denominator()

    @property
    def rounding(self) -> Fraction:
        """More than the length is rounded down by, in units of the range."""
        return 1 / self._denominator()

    def _denominator(self) -> Fraction:
        arms = self.sizes.sum(axis=0)
        return Fraction(int(arms[0]) * int(arms[1])) * Fraction(2) ** (self.bits + FACTOR_BITS)

    def _sums(self, units: Integers, outcome: Integers) -> list[list[int]]:
        """Return the sums of products by cluster and arm, as Python integers."""
        product = units * outcome
        cells = 2 * self.clusters
        low = np.bincount(self.cell, product & ((1 << _HALF_BITS) - 1), cells)
        high = np.bincount(self.cell, product >> _HALF_BITS, cells)
        found = [(int(above) << _HALF_BITS) + int(below) for above, below in zip(high, low, strict=True)]
        return [found[place : place + 2] for place in range(0, cells, 2)]

    @property
    def largest_change(self) -> float:
        """The longest vector by which one outcome moves the residual totals, for a move by one range; rounded up."""
        factor, part = self.factors.ravel() / 2.0**FACTOR_BITS, self.parts.ravel()
        spread = ((self.factors / 2.0**FACTOR_BITS) ** 2 * self.parts**2).sum(axis=0)
        coefficient = np.ldexp(self.units.astype(np.float64), -self.bits)
        own = factor[self.cell] ** 2 * (1 - 2 * np.sign(coefficient) * part[self.cell])
        squared = coefficient**2 * np.maximum(own + spread[self.cell & 1], 0.0)
        return float(np.sqrt(squared.max(initial=0.0))) * (1 + _ROUNDING)

    @property
    def cap(self) -> float:
        """The largest standard error of independent clusters of outcomes in [0, 1], however they depend within."""
        reach = np.ldexp(self.sizes.sum(axis=1).astype(np.float64), -self.bits)
        return float(np.sqrt(reach @ reach)) / 2

    def typical(self, correlation: float) -> float:
        """Return the standard error for outcomes of variance one and this correlation within clusters."""
        own = np.ldexp(self.signed.sum(axis=1).astype(np.float64), -self.bits)
        return float(np.sqrt((1 - correlation) * self.squares.sum() + correlation * (own @ own)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the squared length (Satterthwaite), the least over likely correlations."""
        return min(self._freedom(correlation) for correlation in _CORRELATIONS)

    def _freedom(self, correlation: float) -> float:
        """Return (trace W)^2 / trace W^2, W the covariance of the residual totals up to a constant."""
        factor = self.factors / 2.0**FACTOR_BITS
        total = np.ldexp(self.sizes.astype(np.float64), -self.bits)
        signed = np.ldexp(self.signed.astype(np.float64), -self.bits)
        own = (factor**2 * self.squares).sum(axis=1) * (1 - correlation)
        own += correlation * (factor * signed).sum(axis=1) ** 2
        if self.clusters > _MANY:
            return float(own.sum() ** 2 / (own @ own))
        part, scale = factor * self.parts, factor
        apart = np.diag((scale**2 * self.squares).sum(axis=1))
        for a in (0, 1):
            turned = scale[:, a] * self.turned[:, a]
            shared = np.outer(part[:, a], turned)
            apart += np.outer(part[:, a], part[:, a]) * self.squares[:, a].sum() - shared - shared.T
        together = np.diag((scale * signed).sum(axis=1)) - part @ total.T
        both = (1 - correlation) * apart + correlation * (together @ together.T)
        return float(np.trace(both) ** 2 / (both * both).sum())


def cluster_form(form: LinearForm, cluster: NDArray[np.intp], treated: NDArray[np.bool_]) -> ClusterForm:
    """Return the public numbers of a linear form by cluster and arm; an arm within one cluster has no factor."""
    # Clusters none of whose rows are left do not count.
    present, place = np.unique(cluster, return_inverse=True)
    count, cell = len(present), 2 * place + treated
    coefficient = np.ldexp(form.units.astype(np.float64), -form.bits)

    def summed(values: NDArray[np.int64] | Floats) -> Floats:
        found: Floats = np.bincount(cell, values.astype(np.float64), 2 * count).astype(np.float64)
        return found.reshape(count, 2)

    # Units are below 2**30: sums of up to 2**23 of them in doubles are exact, as are those of their halves.
    signed, sizes = (summed(values).astype(np.int64) for values in (form.units, np.abs(form.units)))
    squares, turned = summed(coefficient**2), summed(coefficient * np.abs(coefficient))
    part = signed / np.maximum(sizes.sum(axis=0), 1)
    left = squares - 2 * part * turned + part**2 * squares.sum(axis=0)
    ratio = np.sqrt(np.divide(squares, left, out=np.ones_like(left), where=left > 1e-12 * squares))
    factors = np.rint(np.ldexp(ratio, FACTOR_BITS)).astype(np.int64)
    return ClusterForm(cell, form.units, form.bits, signed, sizes, squares, turned, factors)
