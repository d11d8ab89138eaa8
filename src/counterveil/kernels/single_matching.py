"""One-to-one matching within strata, in row order: who is matched with whom, and the published variance of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def match_in_order(stratum: Integers, treated: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return every row's partner (-1 where its stratum lacks the other arm) and how often it is a partner.

    The j-th row of an arm is matched with row (j mod size) of the other arm of its stratum.
    """
    _, place = np.unique(stratum, return_inverse=True)
    cell = 2 * place + treated
    sizes = np.bincount(cell, minlength=2 * (int(place.max(initial=-1)) + 1))
    order = np.argsort(cell, kind="stable")
    start = np.cumsum(sizes) - sizes
    rank = np.empty(len(cell), dtype=np.int64)
    rank[order] = np.arange(len(cell)) - start[cell[order]]
    other = cell ^ 1
    there = sizes[other]
    position = start[other] + rank % np.maximum(there, 1)
    partner = np.where(there > 0, order[np.minimum(position, len(cell) - 1)], -1)
    uses = np.bincount(partner[partner >= 0], minlength=len(cell))
    return partner, uses


def published_variance(outcome: Integers, partner: Integers, uses: Integers) -> Floats:
    """Return the sum of (1 + L)^2 (y - y of the partner)^2 over matched rows, L a row's uses; a double."""
    matched = partner >= 0
    gap = (outcome[matched] - outcome[partner[matched]]).astype(np.float64)
    return np.asarray(((1.0 + uses[matched]) ** 2 * gap**2).sum())
