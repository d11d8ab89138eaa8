"""The middle of a regression's sandwich, for errors of unequal variance: counts of lengths, and a mean.

Given the released coefficients b of a regression, rows are w = q T x e: T makes regressors x uncorrelated, e
is what b leaves of the response, q the weight of a row. Counts of |w|^2 are released, then the mean of w w'
of rows shortened to a length that these counts give.
"""

# Proof: robust_moments.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.grams import release_products
from counterveil.rows.moments.outcome_moments import OutcomeRows
from counterveil.rows.moments.regression_columns import combined, squared
from counterveil.rows.moments.scores import counts_between
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate, ReleasedVector


@dataclass(frozen=True, slots=True)
class Sandwich:
    """How rows of a sandwich are made of working rows; all of it public or released.

    Attributes
    ----------
    rows : WorkingRows or OutcomeRows
        How working rows v and their weights are made.
    turned : ndarray of float64, (p, m)
        What gives the uncorrelated regressors of a working row.
    residual : ndarray of float64, (m,)
        What gives what is left of the response.
    squared_length : float
        The longest |w|^2; longer rows are shortened to it.
    """

    rows: WorkingRows | OutcomeRows
    turned: Floats
    residual: Floats
    squared_length: float = inf

    def blocks(self, records: TableRecords) -> Iterator[Floats]:
        """Yield the rows w (p, rows), none longer than `squared_length` allows."""
        for v, weights in self.rows.working(records):
            w = np.array([combined(v, line) for line in self.turned]) * (weights * combined(v, self.residual))
            if self.squared_length < inf:
                w *= np.sqrt(self.squared_length / np.maximum(squared(w), self.squared_length))
            yield w

    def release_lengths(
        self, gate: Gate, name: str, records: Records, edges: Floats, pure: bool
    ) -> ReleasedVector:
        """Return the noisy counts of rows by their squared length."""
        (counts,) = records.run(sandwich_counts, self, edges)
        return release_counts(gate, name, counts, pure)

    def release_middle(self, gate: Gate, name: str, records: Records) -> tuple[Floats, float]:
        """Return the released mean of w w' and its noise off the diagonal; `squared_length` is finite here."""
        longest = self.squared_length
        return release_products(
            gate,
            name,
            records,
            rows=sandwich_rows,
            arguments=(self,),
            largest=sqrt(longest),
            squared_max_norm=Fraction(longest),
        )


def sandwich_rows(records: TableRecords, sandwich: Sandwich) -> Iterator[Floats]:
    """Yield the shortened rows, a block at a time."""
    for w in sandwich.blocks(records):
        yield w.T


def sandwich_counts(records: TableRecords, sandwich: Sandwich, edges: Floats) -> Sums:
    """Return how many rows have their squared length in each cell."""
    return (counts_between(edges, (squared(w) for w in sandwich.blocks(records)), "left"),)
