"""Noisy second moments of all columns of private records, from which linear regressions are solved.

Of n records with columns x in [-1, 1] (half ranges of the declared ranges) and rows u and w of `WorkingRows`,
released are, in this order,

    the means of x_j and of k x_j^2, k = 1.665 (squares of two-valued columns are known),
    counts of rows by |u|^2, and of each numeric response by |u_k|,
    the mean of w w',

where u is x standardised by the released means and squares, and w is u clipped, weighted and truncated so
that |w|^2 <= L + sum over responses of (factor times bound)^2. The counts tell where to clip and shorten. Out
come noisy means and the standard deviation of their noise, without units (half ranges, or standardised
columns).

Why it is right: squares come free with their means at k = 1.665, so that one record moves the first vector by
sqrt(4 f) / n for f columns; it is in one cell of each of h partitions, so that counts move by 2 h in absolute
changes; and the mean of w w', off the diagonal times the root of two, moves by sqrt(2) max |w|^2 / n. What
each step uses was released before.
Proof: `rows/moments/regression_moments.proof.md`. The edges `LENGTHS` (in parts of the expected squared
length) and `WINDOWS` (in standard deviations) decide how finely the clip can be chosen; privacy does not
depend on them.
"""

# Proof: regression_moments.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.products import WholeSum, steps
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.grams import release_products
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.moments.scores import TERM_BITS
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT, record_moments
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate

# Ends of the cells of a row's squared length, in parts of what is expected of it; one cell lies above the last.
LENGTHS = np.array([0.6, 0.8, 1.0, 1.15, 1.3, 1.5, 1.65, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 9.0])
# Ends of the cells of a response's distance from its mean, in standard deviations.
WINDOWS = np.array([2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])


def release_column_moments(gate: Gate, records: Records, columns: Columns) -> tuple[Floats, float]:
    """Return the released means of all columns and of 1.665 x^2 of those of more than two values, and their noise."""
    n = records.count
    two_valued = columns.two_valued
    first, second = records.run(column_sums, columns)
    step = Fraction(1, n << TERM_BITS)
    square = SQUARE_WEIGHT * step / 2**TERM_BITS
    values = [total * step for total in first]
    values += [total * square for total, is_known in zip(second, two_valued, strict=True) if not is_known]
    released = gate.release_vector("centre", values, record_moments(n, columns.counted, Fraction(0)))
    return released.floats(), sqrt(released.variance)


def column_sums(records: TableRecords, columns: Columns) -> Sums:
    """Return sums of columns and of their squares, in steps of 2**-TERM_BITS."""
    first = WholeSum()
    second = WholeSum()
    for block in records.parts():
        x = steps(columns.block(block), TERM_BITS).astype(np.int64)
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
    return first.whole(), second.whole()


@dataclass(frozen=True, slots=True)
class LimitCounts:
    """Noisy counts of rows by squared length, of each response that is a number by size, and the noise's variance.

    Attributes
    ----------
    lengths : ndarray of float64
        By the cells of `LENGTHS`, in parts of the length that is expected.
    windows : ndarray of float64, (responses, cells)
        By the cells of `WINDOWS`.
    watched : ndarray of int
        The places of these responses among the working columns.
    variance : float
        Of the noise of each count.
    """

    lengths: Floats
    windows: Floats
    watched: NDArray[np.intp]
    variance: float


def release_limit_counts(
    gate: Gate, name: str, records: Records, rows: WorkingRows, pure: bool
) -> LimitCounts:
    """Return the noisy counts of rows by length and of responses by size; a row is in one cell of each partition."""
    watched = np.flatnonzero(rows.numbers)
    lengths, windows = records.run(limit_counts, rows)
    values = [Fraction(int(count)) for count in (*lengths, *windows)]
    moved = Fraction(2 * (1 + len(watched)))
    released = release_sums(gate, name, values, pure=pure, l1=moved, l2=sqrt_up(moved))
    noisy = released.floats()
    cells = noisy[len(lengths) :].reshape(len(watched), -1)
    return LimitCounts(noisy[: len(lengths)], cells, watched, released.variance)


def limit_counts(records: TableRecords, rows: WorkingRows) -> Sums:
    """Return how many rows have their length, and each response that is a number its distance, in each cell."""
    watched = np.flatnonzero(rows.numbers)
    lengths = np.zeros(len(LENGTHS) + 1, dtype=np.int64)
    windows = np.zeros((len(watched), len(WINDOWS) + 1), dtype=np.int64)
    for block in records.parts():
        u, z = rows.unweighted(rows.columns.block(block))
        cells = np.searchsorted(LENGTHS * rows.default_length, rows.lengths(u, z))
        lengths += np.bincount(cells, minlength=len(lengths))
        for response, column in enumerate(watched):
            cells = np.searchsorted(WINDOWS, np.abs(u[column]))
            windows[response] += np.bincount(cells, minlength=windows.shape[1])
    return lengths, windows.ravel()


def release_row_moments(gate: Gate, name: str, records: Records, rows: WorkingRows) -> tuple[Floats, float]:
    """Return the released mean of w w' over the weighted working rows w, and its noise off the diagonal."""
    squared_max_norm = rows.squared_max_norm
    max_norm = sqrt(float(squared_max_norm))
    return release_products(
        gate,
        name,
        records,
        rows=weighted_rows,
        arguments=(rows,),
        largest=max_norm,
        squared_max_norm=squared_max_norm,
    )


def weighted_rows(records: TableRecords, rows: WorkingRows) -> Iterator[Floats]:
    """Yield the weighted rows, a block at a time."""
    for block in records.parts():
        yield rows.weighted(rows.columns.block(block))
