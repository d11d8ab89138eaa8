"""Second moments of all columns of private records: centres, counts of long rows, and the matrix of working
rows.

Released are the means of columns x_j and of k x_j^2 (those of two-valued columns are known), then counts of
rows by the squared length of their working row u and of responses by their size, then the mean of w w' over
rows w that are clipped, weighted and truncated so that |w|^2 <= L + sum (a_k b_k)^2.
"""

# Proof: regression_moments.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.products import WholeSum, steps
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.grams import release_products
from counterveil.rows.moments.regression_columns import Columns, combined
from counterveil.rows.moments.scores import TERM_BITS
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT, record_moments
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate

# Ends of the cells of a row's squared length, in parts of what is expected of it; one cell lies above the last.
LENGTHS = np.array([0.6, 0.8, 1.0, 1.15, 1.3, 1.5, 1.65, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 9.0])
# Ends of the cells of a response's distance from its mean, in standard deviations.
WINDOWS = np.array([2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])
# What responses add to the squared length of a row, in parts of what the other columns have; set on the tuning designs
# of `experiments/regressions`.
_RESPONSES = 0.75


@dataclass(frozen=True, slots=True)
class WorkingRows:
    """How a row's columns become a working row u, all of it public or released.

    With z = (x - centre) / scale and products of these, f = (1, z, products), a working row is mix f. Rows whose
    squared length, responses left out, is beyond `length` are weighted down to it.

    Attributes
    ----------
    columns : Columns
        What x holds.
    centre, scale : ndarray of float64, (columns,)
        Released.
    mix : ndarray of float64, (size, size)
        The combinations of f that are taken.
    windows : ndarray of float64, (size,)
        Where responses that are numbers are clipped.
    length : float
        The longest squared length.
    factors : ndarray of float64, (size,)
        What responses are multiplied by.
    """

    columns: Columns
    centre: Floats
    scale: Floats
    mix: Floats
    windows: Floats
    length: float
    factors: Floats

    @classmethod
    def standardised(cls, columns: Columns, centre: Floats, scale: Floats) -> WorkingRows:
        """Return rows that are standardised and nothing else."""
        size = 1 + len(columns.names)
        return cls(columns, centre, scale, np.eye(size), np.full(size, np.inf), np.inf, np.ones(size))

    @property
    def largest_sizes(self) -> Floats:
        """The largest size of every entry of f, by the declared ranges."""
        single = (1 + np.abs(self.centre)) / self.scale
        return np.array([1.0, *single, *(single[i] * single[j] for i, j in self.columns.products)])

    @property
    def explained(self) -> NDArray[np.bool_]:
        """Which working columns are responses or products of two of them: lengths leave these out."""
        single = self.columns.responses
        return np.array([False, *single, *(single[i] and single[j] for i, j in self.columns.products)])

    @property
    def joint(self) -> NDArray[np.bool_]:
        """Which working columns are products of a response and another column."""
        single = self.columns.responses
        return np.array(
            [False] * (1 + len(single)) + [single[i] != single[j] for i, j in self.columns.products]
        )

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Which working columns are responses that are numbers."""
        found = np.zeros(len(self.mix), dtype=np.bool_)
        found[1 : 1 + self.columns.singles] = np.array(self.columns.responses) & ~self.columns.two_valued
        return found

    @property
    def bounds(self) -> Floats:
        """The largest size of every working column that lengths leave out, zero for others; before factors."""
        whole = np.minimum(np.abs(self.mix) @ self.largest_sizes, self.windows)
        return np.where(self.explained, whole, 0.0)

    def unweighted(self, x: Floats) -> tuple[Floats, Floats]:
        """Return (size, rows) working rows of (rows, columns) x, clipped but not weighted, and z (columns, rows)."""
        z = (x.T - self.centre[:, None]) / self.scale[:, None]
        largest = self.largest_sizes[1 : 1 + len(z), None]
        np.clip(z, -largest, largest, out=z)
        f = np.vstack((np.ones(len(x)), z, *(z[i] * z[j] for i, j in self.columns.products)))
        u = np.empty_like(f)
        for place, weights in enumerate(self.mix):
            combined(f, weights, u[place])
        bounded = self.explained
        limits = self.bounds[bounded, None]
        u[bounded] = np.clip(u[bounded], -limits, limits)
        return u, z

    def lengths(self, u: Floats, z: Floats) -> Floats:
        """Return a bound of every row's squared length, the constant included, from columns that are no responses."""
        found = np.zeros(u.shape[1])
        for place in np.flatnonzero(~self.explained & ~self.joint):
            found += u[place] * u[place]
        for i, j, bound in self._pairs():
            found += (bound * z[j if self.columns.responses[i] else i]) ** 2
        return found

    def _pairs(self) -> list[tuple[int, int, float]]:
        """Return the products of a response and another column, with the bound of the response."""
        largest_sizes = self.largest_sizes[1:]
        return [
            (i, j, float(largest_sizes[i if self.columns.responses[i] else j]))
            for i, j in self.columns.products
            if self.columns.responses[i] != self.columns.responses[j]
        ]

    @property
    def default_length(self) -> float:
        """The squared length that is expected of a row with columns of variance one."""
        own = int(np.count_nonzero(~self.explained & ~self.joint))
        return own + sum(bound**2 for _, _, bound in self._pairs())

    @property
    def longest(self) -> float:
        """A bound of the squared length of every row that the declared ranges allow."""
        largest = np.abs(self.mix) @ self.largest_sizes
        single_squares = float(np.sum(largest[~self.explained & ~self.joint] ** 2))
        singles = self.largest_sizes[1:]
        return single_squares + sum(float(singles[i] * singles[j]) ** 2 for i, j, _ in self._pairs())

    def cut(self, windows: Floats, length: float) -> WorkingRows:
        """Return the same with windows and a length, and factors that leave responses their part of it."""
        found = replace(self, windows=windows, length=min(length, self.longest))
        bounds = found.bounds
        most = sqrt(_RESPONSES * found.length / max(int(np.count_nonzero(bounds)), 1))
        return replace(found, factors=most / np.maximum(bounds, most))

    @property
    def squared_max_norm(self) -> Fraction:
        """A bound on the squared length of a weighted row."""
        own = self.factors * self.bounds
        return Fraction(self.length) + sum((Fraction(float(one)) ** 2 for one in own), Fraction(0))

    def _with_weights(self, x: Floats) -> tuple[Floats, Floats]:
        u, z = self.unweighted(x)
        weights = np.minimum(1.0, self.length / self.lengths(u, z))
        return u * self.factors[:, None], weights

    def weighted(self, x: Floats) -> Floats:
        """Return the (rows, size) weighted working rows of (rows, columns) x."""
        u, weights = self._with_weights(x)
        return np.asarray((u * np.sqrt(weights)).T)

    def working(self, records: TableRecords) -> Iterator[tuple[Floats, Floats]]:
        """Yield working rows (size, rows) before they are weighted, and their weights, a block at a time."""
        for block in records.parts():
            yield self._with_weights(self.columns.block(block))

    @property
    def basis(self) -> Floats:
        """The constant and every named column as combinations of working columns, (size, size)."""
        return np.asarray(
            self.columns.basis(self.centre, self.scale) @ np.linalg.inv(self.mix) / self.factors
        )


def release_column_moments(gate: Gate, records: Records, columns: Columns) -> tuple[Floats, float]:
    """Return the released means of all columns and of 1.665 x^2 of those of more than two values, and their noise."""
    n = records.count
    two_valued = columns.two_valued
    first, second = records.run(column_sums, columns)
    step = Fraction(1, n << TERM_BITS)
    square = SQUARE_WEIGHT * step / 2**TERM_BITS
    values = [total * step for total in first]
    values += [total * square for total, two in zip(second, two_valued, strict=True) if not two]
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
        for place, column in enumerate(watched):
            cells = np.searchsorted(WINDOWS, np.abs(u[column]))
            windows[place] += np.bincount(cells, minlength=windows.shape[1])
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
