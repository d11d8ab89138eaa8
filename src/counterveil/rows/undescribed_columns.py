"""Noisy counts of columns that nobody described: numbers on a public grid, and labels that many rows have.

    range:  N_j = rows whose number lies in cell j of the grid 0, +-1, 2 and 5 times 10^-6, ..., 10^9,
    labels: N_l = rows with label l, shown only where N_l + noise > T.

In: private columns as they stand in the source. Out: the counts N_j with Laplace noise, in rows; and the
labels above T with their noisy counts, the most frequent first. T depends on epsilon and delta alone: with
noise of scale 2 / epsilon it is 1 + (2 / epsilon) ln(1 / (2 delta)), rounded up.

Why it is right: for ranges every row falls into exactly one cell, one of which holds what is no number, so a
replaced row moves the counts by 2 in all. For labels not even their list is public: a label that one row
alone has passes T with a probability of delta at most. Of a person with several rows the first alone counts,
where the study names people.

Proof: `rows/histogram.proof.md` for ranges, `mechanisms/stable_histogram.proof.md` for labels. Privacy does
not depend on `EDGES`, which are bounds that people would write, nor on the longest label of 200 characters.
"""

# Proof: histogram.proof.md

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from counterveil.data.cells import EXACT_DOUBLES, Coded, Column, double_of, meaning_of
from counterveil.data.domains import Label, gaps, plain_number
from counterveil.data.table import without_rows
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.counts import release_counts
from counterveil.session import BaseSession, Gate

# Bounds that people would write: 1, 2 and 5 times a power of ten, from a millionth to five thousand million.
EDGES = tuple(Fraction(digit) * Fraction(10) ** power for power in range(-6, 10) for digit in (1, 2, 5))
_SIZES = np.array([float(edge) for edge in EDGES])
# Cells of one sign: those below each edge, and one beyond the last.
SIDE = len(EDGES) + 1
# Negative numbers from the largest size to the smallest, zero, positive ones, and cells that hold no number.
CELLS = 2 * SIDE + 2
# Texts that are longer are no labels.
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UndescribedColumns:
    """Columns as they stand in the source; what leaves them passes the gate.

    Attributes
    ----------
    rows : int
        The number of rows, public.
    """

    _columns: Mapping[str, Column]

    @property
    def rows(self) -> int:
        """The number of rows, public."""
        return len(next(iter(self._columns.values())))

    def release_range(self, gate: Gate, name: str) -> list[float]:
        """Return the noisy counts of a column's numbers on the public grid."""
        return release_range(gate, name, self._columns[name])

    def release_labels(self, gate: Gate, name: str) -> list[tuple[Label, int]]:
        """Return the labels of a column that many rows have with their noisy counts, the most frequent first."""
        return release_labels(gate, name, self._columns[name])

    __repr__ = without_rows


def undescribed_columns(session: BaseSession, names: tuple[str, ...]) -> UndescribedColumns:
    """Return columns of a session's source; what cannot be read is refused here, before anything is charged."""
    return UndescribedColumns(session.first_rows(names))


def release_range(gate: Gate, name: str, column: Column) -> list[float]:
    """Return the noisy counts of the cells."""
    released = release_counts(gate, name, range_counts(column).tolist(), pure=True)
    return [float(value) for value in released.values]


def release_labels(gate: Gate, name: str, column: Column) -> list[tuple[Label, int]]:
    """Return the labels that many rows have with their noisy counts, the most frequent first."""
    labels = gate.release_labels(name, label_counts(column))
    # In an order that what is released decides.
    return sorted(labels.items(), key=lambda pair: (-pair[1], str(pair[0])))


def range_counts(column: Column) -> Integers:
    """Return how many rows fall into each cell of the public grid; every row falls into one."""
    values = _doubles(column)
    size = np.searchsorted(_SIZES, np.abs(values), "left")
    cell = np.where(values > 0, SIDE + 1 + size, np.where(values < 0, SIDE - 1 - size, SIDE))
    cell = np.where(np.isnan(values), CELLS - 1, cell)
    return np.bincount(cell, minlength=CELLS).astype(np.int64)


def _doubles(column: Column) -> Floats:
    """Return the numbers of a column, NaN where a row holds none."""
    if isinstance(column, Coded):
        parsed = [double_of(cell) for cell in column.cells]
        per_cell = np.array([np.nan if value is None else value for value in parsed], dtype=np.float64)
        return np.asarray(column.take(per_cell, for_missing=np.nan))
    values = column.values.astype(np.float64)
    unknown = column.missing if column.text is None else column.missing | column.text
    return np.where(unknown, np.nan, values)


def label_counts(column: Column) -> dict[Label, int]:
    """Return how many rows have each label that occurs; numbers that are equal are one label.

    Numbers from 2^53 on have none: one cell that makes whole numbers doubles makes several of them one. Nor
    have long texts.
    """
    missing = gaps(column)
    held = column.keep(~missing)
    values = held.codes if isinstance(held, Coded) else held.values
    kinds, counts = np.unique(values, return_counts=True)
    totals: Counter[Label] = Counter()
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        label = _label(held.cells[kind] if isinstance(held, Coded) else kind)
        if label is not None:
            totals[label] += count
    return dict(totals)


def _label(cell: object) -> Label | None:
    meaning = meaning_of(cell)
    if isinstance(meaning, float):
        return plain_number(Fraction(repr(meaning))) if abs(meaning) < EXACT_DOUBLES else None
    return meaning if meaning is not None and len(meaning) <= _LONGEST_LABEL else None
