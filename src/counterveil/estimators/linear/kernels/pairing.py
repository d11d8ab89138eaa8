"""Pairs of similar rows of one arm, from which the variance of a weighted sum of outcomes is estimated.

    V = sum over pairs p = (i, j) of w_p (y_i - y_j)^2 / 2,

with public pairs and weights w_p, in squared units of the outcome: half the squared difference of a pair's
outcomes estimates their variance, and errs upwards by half the squared difference of their means (neighbours
within an arm, as in Abadie and Imbens 2006). Which means depends on what is held fixed:

- `score_pairs` puts neighbours on one score together. What then varies within a pair is everything but the
  score, and so the variance includes what chance imbalance of the covariates, given the score, does to an
  estimate that balances the score alone.
- `covariate_pairs` puts rows together that are alike in all covariates. It leaves the variance of outcomes
  around their mean given the covariates: right for estimates that balance all of them.

In: arms and scores or features of public rows. Out: row numbers (first, second), one pair an entry. Every row
is in one pair; where an arm (or a cell) has an odd number of rows, one row is in two. No outcome is read
here, and how far one outcome moves V is proved in `rows/linear/linear_estimate.proof.md`. Results depend on
the arguments alone, and time grows as n log n.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import frexp

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

Rows = NDArray[np.intp]
Singles = NDArray[np.float32]

# Rows of one cell, among which pairs are sought by trying all.
CELL = 32
# Most rows of a cell whose sums of squares decide where it is cut.
_SAMPLE = 512
# Rows that are copied at once, numbers that are worked on at once, and rows of an arm whose copies are held together.
_BLOCK = 512
_NUMBERS = 1 << 17
_HELD = 1 << 16
# Most bits of features in whole steps: single precision holds them, and double precision the square of a sum of
# _SAMPLE of them.
_STEP_BITS = 17


def score_pairs(arm: NDArray[np.integer] | NDArray[np.bool_], score: Floats) -> tuple[Rows, Rows]:
    """Return the rows (first, second) of pairs of neighbours in the order of `score`, within each arm.

    `arm` and `score` have one entry a row; each arm has at least two rows. Equal scores keep the order of
    rows; the last row of an odd arm is paired with the one before it as well.
    """
    order = np.argsort(score, kind="stable")
    return consecutive_pairs([order[arm[order] == one] for one in np.unique(arm)])


def consecutive_pairs(arms: Iterable[NDArray[np.integer]]) -> tuple[Rows, Rows]:
    """Return the rows (first, second) of pairs that follow each other in each arm's list of rows, two or more.

    The last row of an odd list is paired with the one before it as well.
    """
    pairs = [_consecutive(rows.astype(np.intp, copy=False)) for rows in arms]
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def covariate_pairs(
    arm: NDArray[np.integer] | NDArray[np.bool_], features: NDArray[np.floating]
) -> tuple[Rows, Rows]:
    """Return the rows (first, second) of pairs that are close in all columns of `features`, within each arm.

    Columns of (n, p) features count by their variance: scale them to what they should weigh. Each arm is cut
    at medians, along the column with the largest sum of squares, into cells of at most `CELL` rows; in a cell
    the closest two rows are paired, then the closest two of the rest, and so on.
    """
    pairs = list[Rows]()
    # Without columns all rows are alike.
    features = features if features.shape[1] else np.zeros((len(features), 1))
    largest = max(float(features.max(initial=0.0)), -float(features.min(initial=0.0)))
    bits = min(_STEP_BITS, (51 - features.shape[1].bit_length()) // 2)
    factor = 2.0 ** (bits - frexp(largest)[1])
    for code in np.unique(arm):
        for rows in _parts(features, np.flatnonzero(arm == code), factor):
            rounded_rows = _in_steps(features, rows, factor)
            for cells in _cells(rounded_rows, np.arange(len(rows))):
                for some in _together(cells, cells.shape[1] * (cells.shape[1] + rounded_rows.shape[1])):
                    pairs.append(rows[_closest(rounded_rows, some).reshape(2, -1)])
            del rounded_rows
    first, second = np.concatenate(pairs, axis=1)
    return first, second


def _parts(features: NDArray[np.floating], rows: Rows, factor: float) -> Iterator[Rows]:
    """Yield the rows in parts of few enough to copy, which are cut as cells are."""
    if len(rows) <= _HELD:
        yield rows
        return
    few = _in_steps(features, rows[:: -(-len(rows) // _SAMPLE)], factor)
    widest = _in_steps(features[:, _widest(few, np.arange(len(few))[None])], rows, factor)
    for half in _halved(widest, np.arange(len(rows))[None]):
        yield from _parts(features, rows[half[0]], factor)


def _in_steps(features: NDArray[np.floating], rows: Rows, factor: float) -> Singles:
    """Return the same numbers of some rows in whole steps, those of a row side by side.

    Squared distances and sums of a cell's squares stay below 2**53: they are exact, whatever order they are added in.
    """
    rounded = np.empty((len(rows), features.shape[1]), np.float32)
    # Whole columns at a time would go through all of the memory once a column.
    for first in range(0, len(rows), _BLOCK):
        block = features[rows[first : first + _BLOCK]]
        rounded[first : first + _BLOCK] = np.rint(block.astype(np.float64) * factor)
    return rounded


def _cells(whole: Singles, rows: Rows) -> list[Rows]:
    """Return the rows in cells, (cells, size), for each size that occurs; rows of a cell ascend."""
    cells = [rows[None]]
    while max(cell.shape[1] for cell in cells) > CELL:
        halves: dict[int, list[Rows]] = {}
        for cell in cells:
            for half in _halved(whole, cell) if cell.shape[1] > CELL else (cell,):
                halves.setdefault(half.shape[1], []).append(half)
        cells = [np.concatenate(parts) for parts in halves.values()]
    return cells


def _halved(rows: Singles, cells: Rows) -> tuple[Rows, Rows]:
    """Return the lower and the upper half of each cell, (cells, size), by (value, row) in its widest column."""
    half = cells.shape[1] // 2
    values = rows[cells, _widest(rows, cells)[:, None]]
    middle = np.partition(values, half - 1, axis=1)[:, half - 1 : half]
    low = values < middle
    level = values == middle
    low |= level & (level.cumsum(axis=1) <= half - low.sum(axis=1, keepdims=True))
    return cells[low].reshape(-1, half), cells[~low].reshape(-1, cells.shape[1] - half)


def _widest(rows: Singles, cells: Rows) -> Rows:
    """Return for each cell the column with the largest variance over every few of its rows."""
    few = cells[:, :: -(-cells.shape[1] // _SAMPLE)]
    answer = []
    for some in _together(few, few.shape[1] * rows.shape[1]):
        x = rows[some].astype(np.float64)
        total = x.sum(axis=1)
        answer.append((few.shape[1] * np.einsum("cij,cij->cj", x, x) - total * total).argmax(axis=1))
    return np.concatenate(answer)


def _closest(rows: Singles, cells: Rows) -> Rows:
    """Return the rows (2, cells, pairs) of pairs: the closest two of a cell, the closest two of the rest, and so on.

    One row that is left over joins the row nearest to it, which then is in two pairs.
    """
    count, size = cells.shape
    x = rows[cells].astype(np.float64)
    squares = np.einsum("cij,cij->ci", x, x)
    apart = squares[:, :, None] + squares[:, None] - 2.0 * (x @ x.swapaxes(1, 2))
    apart[:, range(size), range(size)] = np.inf
    remaining = apart.copy()
    every = np.arange(count)
    pairs = np.empty((2, (size + 1) // 2, count), np.intp)
    for pair in pairs[:, : size // 2].swapaxes(0, 1):
        pair[:] = np.divmod(remaining.reshape(count, -1).argmin(axis=1), size)
        for taken in pair:
            remaining[every, taken] = remaining[every, :, taken] = np.inf
    if size % 2:
        last = size * (size - 1) // 2 - pairs[:, :-1].sum(axis=(0, 1))
        pairs[:, -1] = last, apart[every, last].argmin(axis=1)
    return np.take_along_axis(cells[None], pairs.swapaxes(1, 2), axis=2)


def _together(cells: Rows, numbers: int) -> Iterator[Rows]:
    """Yield some cells at a time, of so many numbers each: together they stay in a core's cache."""
    step = max(1, _NUMBERS // max(numbers, 1))
    return (cells[first : first + step] for first in range(0, len(cells), step))


def _consecutive(rows: Rows) -> tuple[Rows, Rows]:
    first = rows[0:-1:2]
    second = rows[1::2]
    if len(rows) % 2:
        first = np.append(first, rows[-2])
        second = np.append(second, rows[-1])
    return first, second
