"""Counts of rows by treatment arm and cell of the outcome: what arms' distribution functions are made of.

    released = N_aj + noise,    N_aj = sum of w_i over the rows of arm a with y_i in (edge_j, edge_(j+1)],

with weights w_i = 1, or public or released weights in [0, 1]; N is in rows, or in parts of the largest
weight. The first cell holds its lower end too. There are two arms, the reference first.

In: private rows, cell edges that are public or were released before, and weights. Out: all 2 J numbers of J
cells with noise (Laplace on each where `pure`, else for the Euclidean length), released at once. The classes
differ in the weights: `CellCounts` has none; `WeightedCellCounts` has public ones of rows whose arm is
public; `PropensityCellCounts` has inverse probabilities of treatment where the arm itself is private.

Why it is right: arm and cell together are a partition of the rows, so that a changed row leaves one number
and enters another, by its weight of at most 1 each time: 2 as a sum, sqrt 2 in length. Weights and edges
that were released before are fixed numbers here.

Proof: `rows/distribution.proof.md`. Weights 1 / e are cut to whole parts of 2^-20 so that sums are exact.
"""

# Proof: distribution.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.data import Study, Table
from counterveil.data.domains import outcome_unit
from counterveil.data.passes import Sums
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.counts import release_counts
from counterveil.rows.weighted_counts import ArmWeights
from counterveil.session import Gate, ReleasedVector

NAME = "counts of outcomes"
# Fractional digits of weights that follow private treatments.
_WEIGHT_BITS = 20


@dataclass(frozen=True, slots=True)
class OutcomeCells:
    """Cells of outcomes, and the pass that counts rows by arm and cell.

    Attributes
    ----------
    starts : tuple of int
        First steps of the cells after the first.
    """

    starts: tuple[int, ...]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.starts) + 1

    @classmethod
    def of(cls, study: Study, edges: Sequence[Fraction]) -> OutcomeCells:
        """Return the pass for these edges; cells hold their upper end, as distribution functions do."""
        low = study.outcome_bounds.lo
        unit = outcome_unit(study.outcome_bounds)
        return cls(tuple(int((edge - low) // unit) + 1 for edge in edges[1:-1]))

    def places(self, block: Table) -> Integers:
        """Return the cell of every row."""
        return np.searchsorted(np.array(self.starts, dtype=np.int64), block.outcome, side="right")

    def __call__(self, block: Table) -> Sums:
        """Return the counts of a block of rows, one array."""
        return (np.bincount(block.arm * self.cells + self.places(block), minlength=2 * self.cells),)


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Number of rows of each arm in each cell.

    Attributes
    ----------
    cells : OutcomeCells
        Public cells, or cells of released edges.
    pure : bool
        Whether the noise is Laplace's.
    """

    cells: OutcomeCells
    pure: bool

    def release(self, gate: Gate) -> ReleasedVector:
        """Return the counts of both arms, the reference first."""

        def counts() -> list[int]:
            (sums,) = gate.rows.batches.run(self.cells)
            return [int(count) for count in sums]

        return release_counts(gate, NAME, counts, self.pure)


@dataclass(frozen=True, slots=True)
class WeightedCellCounts:
    """Sum of public weights of each arm in each cell, the largest weight of an arm being 1.

    Attributes
    ----------
    cells, pure
        Those of `CellCounts`.
    arms : tuple of ArmWeights
        Rows and weights of each arm, the reference first.
    """

    cells: OutcomeCells
    pure: bool
    arms: tuple[ArmWeights, ...]

    def release(self, gate: Gate) -> ReleasedVector:
        """Return the sums of both arms, the reference first."""
        cell = self.cells.places(gate.rows.table)

        def sums() -> list[Fraction]:
            return [total for arm in self.arms for total in arm.sums(cell, self.cells.cells)]

        return release_counts(gate, NAME, sums, self.pure)


@dataclass(frozen=True, slots=True)
class PropensityCellCounts:
    """Sum of weights 1 / e_a / largest of each arm in each cell, where a row's arm is private.

    Propensities are functions of covariates and of released sums, so that a row whose arm changes takes its
    other weight from one count to another, both at most 1.

    Attributes
    ----------
    cells, pure
        Those of `CellCounts`.
    propensities : tuple of ndarray of float
        Every row's probability of the reference, and of treatment.
    largest : float
        Largest inverse of any of them.
    """

    cells: OutcomeCells
    pure: bool
    propensities: tuple[Floats, Floats]
    largest: float

    def release(self, gate: Gate) -> ReleasedVector:
        """Return the sums of both arms, the reference first."""
        return release_counts(gate, NAME, lambda: self.sums(gate.rows.table), self.pure)

    def sums(self, table: Table) -> list[Fraction]:
        """Return the sums exactly, of weights in whole parts of 2^-20."""
        of_control, of_treated = (
            np.floor(2**_WEIGHT_BITS / propensity / self.largest) for propensity in self.propensities
        )
        units = np.where(table.arm == 1, of_treated, of_control)
        cell = self.cells.places(table)
        units = np.minimum(units, 2**_WEIGHT_BITS).astype(np.int64)
        sums = np.zeros(2 * self.cells.cells, dtype=np.int64)
        np.add.at(sums, table.arm * self.cells.cells + cell, units)
        return [Fraction(int(total), 2**_WEIGHT_BITS) for total in sums]
