"""The middle of a regression's sandwich, for errors of unequal variance: counts of lengths, and a mean.

Standard errors that allow unequal error variances (Eicker, Huber, White) are A^-1 M A^-1 / n, with A the
second moments of the regressors and M the mean of q^2 x x' e^2. Given the released coefficients of a
regression, a row is

    w = q T x e,    x regressors,  e the residual of the response,  q the row's weight,

with T a matrix that makes the regressors uncorrelated, so that the mean of w w' is T M T'. Released are
counts of private rows by |w|^2 between edges, then the mean of w w' of rows shortened to a length R that
the counts give. In: working rows without units (standardised columns, outcomes in scaled half ranges); out:
counts in people, and a noisy matrix in the units of w with its noise.

Why it is right: a row is in one cell, so that it moves two counts by one; with |w|^2 <= R replacing a row
moves the upper triangle of the mean, off the diagonal times the root of two, by at most sqrt(2) R / n.
Everything that makes w was released before; the edges and R divide precision and privacy does not depend on
them.
Proof: `rows/moments/robust_moments.proof.md`.
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
