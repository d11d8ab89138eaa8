"""Pairs of similar rows of one arm, from which the variance of a weighted sum is estimated.

Half the squared difference of a pair's outcomes estimates their variance, and errs upwards by half the
squared difference of their means. Which means depends on what is held fixed:

- `score_pairs` puts neighbours on one score together. What then varies within a pair is everything but the
  score, and so the variance includes what chance imbalance of the covariates, given the score, does to
  an estimate that balances the score alone.
- `covariate_pairs` puts rows together that are alike in all covariates. It leaves the variance of outcomes
  around their mean given the covariates: right for estimates that balance all of them.

Every row is in one pair; where an arm (or a cell) has an odd number of rows, one row is in two. Results
depend on the arguments alone, and time grows as n log n.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

Rows = NDArray[np.intp]

# Rows of one cell, among which pairs are sought by trying all.
CELL = 32
# Rows of a cell whose sums of squares decide where it is cut.
_SAMPLE = 256
# Rows that are copied at once.
_BLOCK = 512


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
    from counterveil.numerics import arm_loops as pairing_cells
    from counterveil.numerics.arrays import run

    columns = features.shape[1]
    flat = _written_by_rows(features).ravel()
    firsts, seconds = [], []
    for one in np.unique(arm):
        rows = np.flatnonzero(arm == one).astype(np.int64)
        stack = np.zeros(256, np.int64)
        starts = np.zeros(len(rows) + 1, np.int64)
        values = np.zeros(len(rows))
        cells = run(pairing_cells.cut, (flat, columns, CELL, _SAMPLE), (rows, values, stack, starts))
        pairs = np.zeros(len(rows) + cells, np.int64)
        near, distance, free = np.zeros(CELL * columns), np.zeros(CELL * CELL), np.zeros(CELL, np.int64)
        used = run(
            pairing_cells.pair_up,
            (flat, columns, rows, starts[: cells + 1]),
            (pairs, near, distance, free),
        )
        firsts.append(pairs[0:used:2])
        seconds.append(pairs[1:used:2])
    return np.concatenate(firsts).astype(np.intp), np.concatenate(seconds).astype(np.intp)


def _written_by_rows(features: NDArray[np.floating]) -> Floats:
    """Return the same numbers, those of a row side by side; to be read only."""
    if features.flags.c_contiguous:
        return features.astype(np.float64, copy=False)
    found = np.empty(features.shape)
    # Whole columns at a time would go through all of the memory once a column.
    for first in range(0, len(found), _BLOCK):
        found[first : first + _BLOCK] = features[first : first + _BLOCK]
    return found


def _consecutive(rows: Rows) -> tuple[Rows, Rows]:
    first, second = rows[0:-1:2], rows[1::2]
    if len(rows) % 2:
        first, second = np.append(first, rows[-2]), np.append(second, rows[-1])
    return first, second
