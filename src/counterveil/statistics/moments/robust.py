"""The middle of a regression's sandwich, for errors of unequal variance (HC1).

Given the released coefficients b of a regression, rows are w = q T x e: T makes regressors x uncorrelated, e is what b
leaves of the response, q the weight of a row. Counts of |w|^2 are released, then the mean of w w' of rows shortened to
a length that these counts give. Proof: `robust_moments.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.inference.moments import NoisyMoments, least_squares
from counterveil.numerics.arrays import Floats
from counterveil.session import Gate
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.orthogonal import release_products
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.regression import (
    CUT,
    SHOWN,
    OutcomeRows,
    RowPlan,
    Rows,
    combined,
    first_few,
)

PAGE = "statistics/moments/robust_moments.proof.md"
# Ends of the cells of |w|^2, in parts of what errors of equal variance give on average.
_EDGES = np.array([2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 160.0, 320.0])
# Sizes of numbers in rows that double precision multiplies without loss of sense.
_LARGEST = 1e60


@dataclass(frozen=True, slots=True)
class Sandwich:
    """How rows of a sandwich are made of working rows; all of it public or released.

    `turned` (p, m) gives the uncorrelated regressors of a working row, `residual` (m,) what is left of the response.
    """

    rows: Rows | OutcomeRows
    turned: Floats
    residual: Floats
    squared_length: float = inf

    def blocks(self, records: TableRecords) -> Iterator[Floats]:
        """Yield the rows w (p, rows), none longer than `squared_length` allows."""
        for v, weights in self.rows.working(records):
            w = np.array([combined(v, own) for own in self.turned]) * (weights * combined(v, self.residual))
            if self.squared_length < inf:
                w *= np.sqrt(self.squared_length / np.maximum(squared(w), self.squared_length))
            yield w


def squared(w: Floats) -> Floats:
    """Return the squared lengths of the columns of w, added up in order."""
    found = np.zeros(w.shape[1])
    for row in w:
        found += row * row
    return found


def sandwich_rows(records: TableRecords, sandwich: Sandwich) -> Iterator[Floats]:
    """Yield the shortened rows, a block at a time."""
    for w in sandwich.blocks(records):
        yield w.T


def sandwich_counts(records: TableRecords, sandwich: Sandwich, edges: Floats) -> Sums:
    """Return how many rows have their squared length in each cell."""
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for w in sandwich.blocks(records):
        counts += np.bincount(np.searchsorted(edges, squared(w)), minlength=len(counts))
    return (counts,)


# Proof: robust_moments.proof.md
def release_sandwich(
    gate: Gate,
    number: int,
    records: Records,
    rows: Rows | OutcomeRows,
    moments: NoisyMoments,
    regressors: Floats,
    response: Floats,
    design: RowPlan,
) -> tuple[Floats, Floats, float]:
    """Return T (p, p), the released mean of w w' (p, p) and its noise off the diagonal."""
    fit = least_squares(moments, regressors, response)
    size, turn, usual = len(regressors), np.zeros((len(regressors),) * 2), 1.0
    if fit.identified:
        values, vectors = np.linalg.eigh(fit.unit * moments.rows)
        turn = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        usual = size * fit.variance
    sandwich = Sandwich(rows, turn @ regressors, fit.residual)
    if not (np.abs(sandwich.turned).max() < _LARGEST and 1 / _LARGEST < usual < _LARGEST):
        turn, usual = np.zeros_like(turn), 1.0
        sandwich = Sandwich(rows, turn @ regressors, np.zeros_like(response))
    edges = _EDGES * usual
    (counts,) = records.run(sandwich_counts, sandwich, edges)
    released = release_counts(gate, f"robust reach {number}", counts, design.pure)
    beside = design.entry_noise * sqrt(records.count)
    shortened = next(share for least, _, share in CUT if beside >= least)
    longest, _ = first_few(
        released.floats(),
        released.variance,
        shortened * records.count,
        SHOWN,
        np.append(edges, 2 * edges[-1]),
    )
    short = Sandwich(rows, sandwich.turned, sandwich.residual, longest)
    bound = Fraction(longest)
    matrix, sd = release_products(
        gate, f"robust {number}", records, sandwich_rows, (short,), sqrt(longest), bound
    )
    return turn, matrix, sd
