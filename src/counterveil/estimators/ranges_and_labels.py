"""Ranges and labels of columns that nobody described, from noisy counts, and how many rows that takes.

A cell of a public grid counts as occupied where its noisy count exceeds

    b ln(K / (2 p)),    b = 2 / epsilon,

with K the cells of the grid and p = 0.05 the chance that Laplace noise of scale b lifts any empty cell so
far. The range is the least one of the grid that holds all occupied cells, in units of the column. A cell with
so many rows and b ln(1 / (2 * 0.05)) more is found with probability 0.95; labels are found likewise above the
threshold of `mechanisms/stable_histogram.proof.md`.

In: released counts, epsilon and delta. Out: ranges, numbers of rows and the least epsilon. All is
post-processing of counts that `rows/histogram.proof.md` bounds; privacy does not depend on the two chances.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log

from counterveil.rows.counts import COUNTS_L1
from counterveil.rows.undescribed_columns import CELLS, EDGES, SIDE
from counterveil.session import StableHistogram

# Chance that noise alone makes an empty cell look occupied, in any of the cells of a column.
_MISTAKE = 0.05
# Chance that a cell or a label with as many rows as are said to be needed is not found.
MISSED = 0.05


def rows_of_range(epsilon: Fraction) -> int:
    """Return how many rows a cell must hold to be found with probability 1 - MISSED.

    So many rows at each end of a range are needed.

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
    mechanism = StableHistogram(epsilon, delta)
    return ceil(mechanism.threshold + mechanism.scale * log(1 / (2 * MISSED)))


def epsilon_of_label(rows: int, delta: Fraction) -> float:
    """Return the least epsilon at which two labels can be found in so many rows: half of them have each."""
    unit = StableHistogram(Fraction(1), delta)
    return (unit.threshold - 1 + unit.scale * log(1 / (2 * MISSED))) / max(rows / 2 - 2, 1)


def range_of(counts: list[float], epsilon: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the least range of the grid that holds every cell which noise alone hardly fills, or None.

    Numbers outside are few, and are clamped to the nearer bound. Computed from released counts.
    """
    least = float(COUNTS_L1 / epsilon) * log(CELLS / (2 * _MISTAKE))
    held = [cell for cell, count in enumerate(counts[: CELLS - 1]) if count > least]
    if not held:
        return None
    low = _cell(held[0])[0]
    high = _cell(held[-1])[1]
    # Cells near zero are narrow and hold few rows: a range that nearly reaches zero begins, or ends, there.
    low, high = Fraction(0) if 0 < low < high / 20 else low, Fraction(0) if low / 20 < high < 0 else high
    return (low, high) if low < high else None


def _cell(cell: int) -> tuple[Fraction, Fraction]:
    """Return the ends of a cell; what lies beyond the largest edge counts as at that edge."""
    if cell == SIDE:
        return Fraction(0), Fraction(0)
    size = cell - SIDE - 1 if cell > SIDE else SIDE - 1 - cell
    inner = EDGES[size - 1] if size else Fraction(0)
    outer = EDGES[min(size, len(EDGES) - 1)]
    return (inner, outer) if cell > SIDE else (-outer, -inner)
