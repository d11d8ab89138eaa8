"""Cluster-robust standard error of a weighted sum of outcomes, as a vector's length; released with noise.

    u_g = sum over rows i of cluster g, in arms a, of f_ga c_i (y_i - M_a),    error = sqrt(sum_g u_g^2),

with outcomes y_i as parts of their range, public coefficients c_i with a positive total in one arm and a
negative one in the other, M_a the mean of arm a's outcomes weighted by ``|c_i|``, and f_ga public factors
that make E u_g^2 right for independent outcomes of one variance. With equal weights this is CR2 of the
regression on treatment [2]_; for clusters in general see [1]_.

In: private outcomes; coefficients, arms and clusters are public. Out: the sum of c_i y_i and its standard
error (raised by a public factor that allows for bias), in units of the outcome, each with noise.

Why it is right: u is linear in the outcomes, so by the triangle inequality one outcome moves the length by no
more than it moves u (`largest_change`), whatever its cluster's size; the sum moves by max ``|c_i|`` ranges.

Proof: `rows/linear/clustered_error.proof.md`. Factors are rounded to 2^-20; the bounds are those of the
rounded ones, so that privacy does not depend on the rounding.

References
----------
.. [1] Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models.
   Biometrika 73, 13-22.
.. [2] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with
   multi-stage samples. Survey Methodology 28, 169-181.
"""

# Proof: clustered_error.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.linear.sensitivity import ClusteredEstimate
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, Released

# Factors are whole multiples of 2**-FACTOR_BITS.
FACTOR_BITS = 20
# Products of units and outcomes are below 2**53: their lower and upper halves are summed apart, exactly in doubles.
_HALF_BITS = 26
# Bounds that are computed in doubles are raised by this part.
_ROUNDING = 1e-9
# Squares of residuals that are less than this part of squares are rounding: the row is its arm's mean alone.
_NO_RESIDUAL = 1e-12


@dataclass(frozen=True, slots=True)
class ClusterForm:
    """Public numbers of a weighted sum by cluster and arm; arrays are (clusters, 2), the control arm first.

    `cell` is each row's place among cluster times arm. `units` are the coefficients in steps of 2**-bits;
    `signed` and `sizes` are their sums and those of their sizes, `squares` and `turned` those of c^2 and of c
    |c|, as coefficients. `factors` are in steps of 2**-FACTOR_BITS.
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
        totals = self._sums(self.units, outcome)
        weighted = self._sums(np.abs(self.units), outcome)
        arms = [int(size) for size in self.sizes.sum(axis=0)]
        means = [sum(column) for column in zip(*weighted, strict=True)]
        squares = 0
        for total, signed, factor in zip(totals, self.signed.tolist(), self.factors.tolist(), strict=True):
            # Over the common denominator of both arms' means.
            remaining = [total[a] * arms[a] - signed[a] * means[a] for a in (0, 1)]
            squares += (factor[0] * remaining[0] * arms[1] + factor[1] * remaining[1] * arms[0]) ** 2
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
        sums = [(int(above) << _HALF_BITS) + int(below) for above, below in zip(high, low, strict=True)]
        return [sums[first : first + 2] for first in range(0, cells, 2)]

    @property
    def largest_change(self) -> float:
        """The longest vector by which one outcome moves the residual totals, for a move by one range; rounded up."""
        factor = self.factors.ravel() / 2.0**FACTOR_BITS
        share = self.parts.ravel()
        spread = ((self.factors / 2.0**FACTOR_BITS) ** 2 * self.parts**2).sum(axis=0)
        coefficient = np.ldexp(self.units.astype(np.float64), -self.bits)
        changes = factor[self.cell] ** 2 * (1 - 2 * np.sign(coefficient) * share[self.cell])
        squared = coefficient**2 * np.maximum(changes + spread[self.cell & 1], 0.0)
        return float(np.sqrt(squared.max(initial=0.0))) * (1 + _ROUNDING)

    @property
    def cap(self) -> float:
        """The largest standard error of independent clusters of outcomes in [0, 1], however they depend within."""
        sizes = np.ldexp(self.sizes.sum(axis=1).astype(np.float64), -self.bits)
        return float(np.sqrt(sizes @ sizes)) / 2


def cluster_form(form: LinearForm, cluster: NDArray[np.intp], treated: NDArray[np.bool_]) -> ClusterForm:
    """Return the public numbers of a linear form by cluster and arm; an arm within one cluster has no factor."""
    # Clusters none of whose rows are left do not count.
    present, cluster_index = np.unique(cluster, return_inverse=True)
    count = len(present)
    cell = 2 * cluster_index + treated
    coefficient = np.ldexp(form.units.astype(np.float64), -form.bits)

    def summed(values: NDArray[np.int64] | Floats) -> Floats:
        sums: Floats = np.bincount(cell, values.astype(np.float64), 2 * count).astype(np.float64)
        return sums.reshape(count, 2)

    # Units are below 2**30: sums of up to 2**23 of them in doubles are exact, as are those of their halves.
    signed, sizes = (summed(values).astype(np.int64) for values in (form.units, np.abs(form.units)))
    squares = summed(coefficient**2)
    turned = summed(coefficient * np.abs(coefficient))
    mean = signed / np.maximum(sizes.sum(axis=0), 1)
    squared_residuals = squares - 2 * mean * turned + mean**2 * squares.sum(axis=0)
    varies = squared_residuals > _NO_RESIDUAL * squares
    ratio = np.sqrt(np.divide(squares, squared_residuals, out=np.ones_like(squared_residuals), where=varies))
    factors = np.rint(np.ldexp(ratio, FACTOR_BITS)).astype(np.int64)
    return ClusterForm(
        cell=cell,
        units=form.units,
        bits=form.bits,
        signed=signed,
        sizes=sizes,
        squares=squares,
        turned=turned,
        factors=factors,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredOutcomes:
    """The weighted sum of the outcomes of rows in clusters, and its standard error.

    Attributes
    ----------
    rows : PublicRows
        Whose outcomes are summed, in the order of the coefficients.
    form : LinearForm
        The coefficients, exact.
    clusters : ClusterForm
        What clusters make of them.
    factor : Fraction
        By how much the standard error is raised to allow for bias.
    """

    rows: PublicRows
    form: LinearForm
    clusters: ClusterForm
    factor: Fraction

    @classmethod
    def of(cls, rows: PublicRows, coefficients: Floats, factor: Fraction) -> ClusteredOutcomes:
        """Return the sum with these (n,) coefficients."""
        assert rows.cluster is not None
        form = linear_form(coefficients)
        return cls(rows, form, cluster_form(form, rows.cluster, rows.treated), factor)

    @property
    def bounds(self) -> ClusteredEstimate:
        """How far one outcome moves the sum and its standard error."""
        low, high = self.rows.study.outcome_range
        change = Fraction(self.clusters.largest_change) + self.clusters.rounding
        return ClusteredEstimate(
            width=high - low,
            largest=self.form.largest,
            change=change,
            cap_of_range=Fraction(self.clusters.cap),
            factor=self.factor,
        )

    def release(
        self, gate: Gate, *, with_error: bool, names: tuple[str, str]
    ) -> tuple[Released, Released | None]:
        """Return the released sum and, where the plan pays for it, its standard error."""
        bounds = self.bounds
        table = private_table(self.rows)
        value = self.form.total(table.outcome) / OUTCOME_STEPS
        released = gate.release(names[0], value * bounds.width, bounds.estimate)
        if not with_error:
            return released, None
        length = self.clusters.length(table.outcome, OUTCOME_STEPS.bit_length() - 1)
        return released, gate.release(names[1], length * bounds.width * bounds.factor, bounds.error)
