"""Ranges and labels of columns that nobody described: a histogram on a public grid, and labels that many rows have.

Proof: `histogram.proof.md` for ranges; `mechanisms/stable_histogram.proof.md` for labels.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil, log

import numpy as np

from counterveil.data.cells import EXACT_DOUBLES, Coded, Column, double_of, meaning_of
from counterveil.data.domains import Label, gaps, plain_number
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.counts import COUNTS_L1, release_counts
from counterveil.session import Gate, StableHistogram

# Bounds that people would write: 1, 2 and 5 times a power of ten, from a millionth to five thousand million.
EDGES = tuple(Fraction(digit) * Fraction(10) ** power for power in range(-6, 10) for digit in (1, 2, 5))
_SIZES = np.array([float(edge) for edge in EDGES])
_SIDE = len(EDGES) + 1  # cells of one sign: those below each edge, and one beyond the last
# Negative numbers from the largest size to the smallest, zero, positive ones, and cells that hold no number.
CELLS = 2 * _SIDE + 2
# Chance that noise alone makes an empty cell look occupied, in any of the cells of a column.
_MISTAKE = 0.05
# Chance that a cell or a label with as many rows as are said to be needed is not found.
MISSED = 0.05
_LONGEST_LABEL = 200


def rows_of_range(epsilon: Fraction) -> int:
    """Return how many rows a cell must hold to be found with probability 1 - MISSED: so many at each end of a range.

    Laplace noise of scale b = COUNTS_L1 / epsilon is below -b ln(1 / (2 MISSED)) with probability MISSED.
    """
    return ceil(float(COUNTS_L1 / epsilon) * _range_logs())


def epsilon_of_range(rows: int) -> float:
    """Return the least epsilon at which both ends of a range can be found in so many rows: half of them at each."""
    return float(COUNTS_L1) * _range_logs() / (rows / 2)


def _range_logs() -> float:
    return log(CELLS / (2 * _MISTAKE)) + log(1 / (2 * MISSED))


def rows_of_label(epsilon: Fraction, delta: Fraction) -> int:
    """Return how many rows must have a label for it to be found with probability 1 - MISSED."""
    found = StableHistogram(epsilon, delta)
    return ceil(found.threshold + found.scale * log(1 / (2 * MISSED)))


def epsilon_of_label(rows: int, delta: Fraction) -> float:
    """Return the least epsilon at which two labels can be found in so many rows: half of them have each."""
    unit = StableHistogram(Fraction(1), delta)
    return (unit.threshold - 1 + unit.scale * log(1 / (2 * MISSED))) / max(rows / 2 - 2, 1)


def range_counts(column: Column) -> Integers:
    """Return how many rows fall into each cell of the public grid; every row falls into one."""
    values = _doubles(column)
    size = np.searchsorted(_SIZES, np.abs(values), "left")
    place = np.where(values > 0, _SIDE + 1 + size, np.where(values < 0, _SIDE - 1 - size, _SIDE))
    place = np.where(np.isnan(values), CELLS - 1, place)
    return np.bincount(place, minlength=CELLS).astype(np.int64)


def release_range(gate: Gate, name: str, column: Column) -> list[float]:
    """Return the noisy counts of the cells."""
    found = release_counts(gate, name, range_counts(column).tolist(), pure=True)
    return [float(value) for value in found.values]


def range_of(counts: list[float], epsilon: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the least range of the grid that holds every cell which noise alone hardly fills; None without one.

    Numbers outside are few, and are clamped to the nearer bound. Computed from released counts.
    """
    least = float(COUNTS_L1 / epsilon) * log(CELLS / (2 * _MISTAKE))
    held = [place for place, count in enumerate(counts[: CELLS - 1]) if count > least]
    if not held:
        return None
    low = _cell(held[0])[0]
    high = _cell(held[-1])[1]
    # Cells near zero are narrow and hold few rows: a range that nearly reaches zero begins, or ends, there.
    low, high = Fraction(0) if 0 < low < high / 20 else low, Fraction(0) if low / 20 < high < 0 else high
    return (low, high) if low < high else None


def _cell(place: int) -> tuple[Fraction, Fraction]:
    """Return the ends of a cell; what lies beyond the largest edge counts as at that edge."""
    if place == _SIDE:
        return Fraction(0), Fraction(0)
    size = place - _SIDE - 1 if place > _SIDE else _SIDE - 1 - place
    inner = EDGES[size - 1] if size else Fraction(0)
    outer = EDGES[min(size, len(EDGES) - 1)]
    return (inner, outer) if place > _SIDE else (-outer, -inner)


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

    Numbers from 2^53 on have none: one cell that makes whole numbers doubles makes several of them one. Nor have long
    texts.
    """
    missing = gaps(column)
    held = column.keep(~missing)
    values = held.codes if isinstance(held, Coded) else held.values
    kinds, counts = np.unique(values, return_counts=True)
    found: Counter[Label] = Counter()
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        label = _label(held.cells[kind] if isinstance(held, Coded) else kind)
        if label is not None:
            found[label] += count
    return dict(found)


def _label(cell: object) -> Label | None:
    meaning = meaning_of(cell)
    if isinstance(meaning, float):
        return plain_number(Fraction(repr(meaning))) if abs(meaning) < EXACT_DOUBLES else None
    return meaning if meaning is not None and len(meaning) <= _LONGEST_LABEL else None


def release_labels(gate: Gate, name: str, column: Column) -> list[tuple[Label, int]]:
    """Return the labels that many rows have with their noisy counts, the most frequent first."""
    found = gate.release_labels(name, label_counts(column))
    # In an order that what is released decides.
    return sorted(found.items(), key=lambda pair: (-pair[1], str(pair[0])))
