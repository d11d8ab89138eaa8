"""Counts, sums and sums of squares of bounded scores in public cells, exact, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.statistics.moments.kernels.scores import TERM_BITS

# The cell of every row, its score as a part of its clip, and further terms in [-1, 1], one a column.
Block = tuple[NDArray[np.int64], Floats, tuple[Floats, ...]]


@dataclass(frozen=True, slots=True)
class CellSums:
    """For every cell the number of rows, the sums of r (2**-TERM_BITS) and r^2 (4**-TERM_BITS), and those of the
    further terms (2**-TERM_BITS), a tuple for each.
    """

    counts: tuple[int, ...]
    scores: tuple[int, ...]
    squares: tuple[int, ...]
    further: tuple[tuple[int, ...], ...]


def cell_sums(row_blocks: Iterable[Block], cells: int, further: int = 0) -> CellSums:
    """Return the sums of terms clipped to [-1, 1] and truncated towards zero; blocks have at most 4096 rows.

    A term that is not a number counts as zero, so that nothing a row holds can stop the release.
    """
    totals = [[0] * cells for _ in range(3 + further)]
    for codes, parts, others in row_blocks:
        r = _whole(parts)
        # 4096 squares of numbers up to 2**20 add up to 2**52 at most: doubles hold them exactly.
        terms = [np.ones(len(codes)), r, r * r, *(_whole(one) for one in others)]
        for total, term in zip(totals, terms, strict=True):
            added = np.bincount(codes, weights=term, minlength=cells)
            total[:] = [a + int(b) for a, b in zip(total, added, strict=True)]
    counts, scores, squares, *rest = map(tuple, totals)
    return CellSums(counts, scores, squares, tuple(rest))


def _whole(parts: Floats) -> Floats:
    found: Floats = np.trunc(np.ldexp(np.clip(np.nan_to_num(parts), -1.0, 1.0), TERM_BITS))
    return found


def counts_between(edges: Floats, values: Iterable[Floats]) -> NDArray[np.int64]:
    """Return how many values lie below the first edge, between every two, and from the last upwards."""
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for block in values:
        total += np.bincount(np.searchsorted(edges, np.nan_to_num(block), "right"), minlength=len(total))
    return total
