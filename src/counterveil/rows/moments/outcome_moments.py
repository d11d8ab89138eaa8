"""Moments of public columns with private outcomes, of outcomes alone, and counts of residuals by size.

A regression in which only the outcome y is private, in half ranges around the middle of its declared range.
Of a public row u of uncorrelated columns, its public weight q = min(1, L / |u|^2), so that q |u|^2 <= L,
coefficients b and a clip C (half ranges) that were released before,

    rho = clip((y - b'u) / C, -1, 1),

released with noise are, one after the other, the means over n rows of

    (y, k y^2),    counts of |y - b'u| between edges,    (q u rho / sqrt(L), k q rho^2),    k = 1.665.

The first locates outcomes, the counts show where to clip residuals, the last corrects b and gives the
residual variance. Moments and lengths of public rows are exact: they read no outcome.

Why it is right: the vectors sqrt(q) u / sqrt(L) have length at most one and rho lies in [-1, 1], so that both
pairs of means move by at most 2 / n in Euclidean length where an outcome changes; at k = 1.665 squares come
free. A row moves two counts by one. Proof: `rows/moments/outcome_moments.proof.md`.
"""

# Proof: outcome_moments.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import WholeSum, exact_gram, grid_bits, steps
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.regression_columns import Columns, combined, squared
from counterveil.rows.moments.regression_moments import column_sums
from counterveil.rows.moments.residual_products import ResidualProducts, release_residual_products
from counterveil.rows.moments.scores import TERM_BITS, counts_between
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT, record_moments
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate, ReleasedVector

_BITS = 16  # steps of public columns, in their moments
# Squared lengths of public rows are told apart this finely.
EDGES = np.geomspace(1.0, 1e6, 400)


@dataclass(frozen=True, slots=True)
class OutcomeRows:
    """How public columns become uncorrelated rows u of bounded length, and residuals of outcomes.

    f = (1, columns, products) in [-1, 1], u = mix f, weighted down to a squared length of `length`.

    Attributes
    ----------
    columns : Columns
        The public columns, then the outcome.
    mix : ndarray of float64, (size, size)
        Public.
    length : float
        The longest squared length, public.
    prediction : ndarray of float64, (size,)
        Released: coefficients of u that are taken off the outcome.
    clip : float
        Released: where residuals are clipped, in units of half the outcome's range.
    """

    columns: Columns
    mix: Floats
    length: float
    prediction: Floats
    clip: float

    def unweighted(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield u (size, rows) before it is weighted and the residual of the outcome, a block at a time."""
        for f, outcome in self._features(records):
            u = np.empty((len(self.mix), f.shape[1]))
            for entry, weights in zip(u, self.mix, strict=True):
                combined(f, weights, entry)
            yield u, outcome - combined(u, self.prediction)

    def residuals(self, records: TableRecords) -> Iterator[Floats]:
        """Yield the residual of the outcome alone, up to rounding."""
        slopes = combined(self.mix, self.prediction)
        return (outcome - combined(f, slopes) for f, outcome in self._features(records))

    def _features(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        for block in records.parts():
            x = self.columns.block(block).T
            yield (
                np.vstack((np.ones(x.shape[1]), x[:-1], *(x[i] * x[j] for i, j in self.columns.products))),
                x[-1],
            )

    def working(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield (u, the residual of the outcome), clipped but not weighted, and the weights, a block at a time."""
        for u, residual in self.unweighted(records):
            yield np.vstack((u, np.clip(residual, -self.clip, self.clip))), self.roots(u) ** 2

    def roots(self, u: Floats) -> Floats:
        """Return the square roots of the rows' weights."""
        return np.asarray(np.sqrt(np.minimum(1.0, self.length / squared(u))))


def mean_public_products(records: Records, rows: OutcomeRows) -> Floats:
    """Return the exact mean of u u' over weighted public rows; it reads public columns alone."""
    (total,) = records.run(public_products, rows)
    unit = records.count * 4 ** rows_bits(rows)
    return np.array([[float(Fraction(int(value), unit)) for value in line] for line in total])


def public_products(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return the sum of u u' over weighted public rows, in steps of 4**-_BITS."""
    return (exact_gram(((u * rows.roots(u)).T for u, _ in rows.unweighted(records)), rows_bits(rows)),)


def rows_bits(rows: OutcomeRows) -> int:
    """Return the grid of the public rows."""
    return grid_bits(sqrt(min(rows.length, float(EDGES[-1]))))


def count_public_lengths(records: Records, rows: OutcomeRows) -> Integers:
    """Return how many public rows have their squared length in each cell of `EDGES`; it reads public columns alone."""
    (counts,) = records.run(public_lengths, rows)
    return counts.astype(np.int64)


def public_lengths(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return how many public rows have their squared length in each cell."""
    return (counts_between(EDGES, (squared(u) for u, _ in rows.unweighted(records)), "left"),)


def release_outcome_location(gate: Gate, records: Records, columns: Columns) -> tuple[Floats, float]:
    """Return the released means of y and of 1.665 y^2, and the standard deviation of their noise."""
    n = records.count
    first, second = (sums[-1] for sums in records.run(column_sums, columns))
    step = Fraction(1, n << TERM_BITS)
    values = [first * step, SQUARE_WEIGHT * second * step / 2**TERM_BITS]
    released = gate.release_vector("centre", values, record_moments(n, 1, Fraction(0)))
    return released.floats(), sqrt(released.variance)


def release_residual_counts(
    gate: Gate, name: str, records: Records, rows: OutcomeRows, edges: Floats, pure: bool
) -> ReleasedVector:
    """Return the noisy counts of residuals by size, between edges in units of half the outcome's range."""
    (counts,) = records.run(residual_counts, rows, edges)
    return release_counts(gate, name, counts, pure)


def residual_counts(records: TableRecords, rows: OutcomeRows, edges: Floats) -> Sums:
    """Return how many residuals have their size in each cell."""
    return (counts_between(edges, (np.abs(residual) for residual in rows.residuals(records)), "left"),)


def release_weighted_residuals(
    gate: Gate, name: str, records: Records, rows: OutcomeRows
) -> ResidualProducts:
    """Return the released moments of u with the residual of the outcome, and of its square; both are weighted."""
    sums = partial(records.run, residual_products, rows)
    return release_residual_products(
        gate, name, records.count, sums=sums, clip=rows.clip, max_norm=sqrt(rows.length)
    )


def residual_products(records: TableRecords, rows: OutcomeRows) -> Sums:
    """Return sums of u rho and of rho^2 in parts of their bounds, in steps of 4**-TERM_BITS; both are weighted."""
    total = WholeSum()
    square = WholeSum()
    max_norm = sqrt(rows.length)
    for u, residual in rows.unweighted(records):
        roots = rows.roots(u)
        rho = steps(np.clip(residual / rows.clip, -1.0, 1.0) * roots, TERM_BITS).astype(np.int64)
        direction = steps(u * roots / max_norm, TERM_BITS).astype(np.int64)
        total.add((direction * rho).sum(axis=1))
        square.add(np.array([(rho * rho).sum()]))
    return total.whole(), square.whole()
