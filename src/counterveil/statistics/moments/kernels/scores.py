"""Residuals of the two models row by row, their orthogonal score, and exact sums of both.

All parameters are public or were released before; a row's terms depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import WholeSum, projected, steps

Block = tuple[Floats, Floats, Floats]  # u (rows, m), treatment 0 or 1, outcome

# Terms of a row are taken in steps of 2**-TERM_BITS of their bound.
TERM_BITS = 20
_ONE = 1 << TERM_BITS
# A propensity beyond these ends is noise.
LOWEST, _HIGHEST = -1.0, 2.0


@dataclass(frozen=True, slots=True)
class LinearModels:
    """Two linear models on u = (1, z), around the share treated and the mean outcome.

    `treatment` is unshrunk, `shrunk` the same shrunk; `outcome` is for y - effect * t.
    """

    share: float
    mean: float
    treatment: Floats
    shrunk: Floats
    outcome: Floats
    effect: float

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return y - effect t less its model, for every row."""
        found: Floats = y - self.mean - self.effect * (t - self.share) - projected(u, self.outcome)
        return found

    def treatment_residual(self, u: Floats, t: Floats) -> Floats:
        """Return t less its unshrunk model, for every row."""
        found: Floats = t - np.clip(self.share + projected(u, self.treatment), LOWEST, _HIGHEST)
        return found

    def score(self, u: Floats) -> Floats:
        """Return the shrunk propensity of every row, unclipped."""
        found: Floats = self.share + projected(u, self.shrunk)
        return found


@dataclass(frozen=True, slots=True)
class ScoreSums:
    """Sums of r/C, (r/C)^2 and q/Cq, exact, in the units that the names say."""

    score: int  # 2**-TERM_BITS
    square: int  # 4**-TERM_BITS
    information: int  # 2**-TERM_BITS


def score_sums(row_blocks: Iterable[Block], models: LinearModels, clip: float, largest: float) -> ScoreSums:
    """Return the sums of (t-e)(y - effect t - m), clipped to [-clip, clip], and of its companions."""
    totals = [0, 0, 0]
    for u, t, y in row_blocks:
        treatment_residual = models.treatment_residual(u, t)
        r = _whole(treatment_residual * models.residual(u, t, y) / clip)
        q = np.abs(_whole(treatment_residual * treatment_residual / largest))
        terms = (r, r * r, q)
        totals = [total + int(term.sum()) for total, term in zip(totals, terms, strict=True)]
    return ScoreSums(*totals)


def residual_sums(
    row_blocks: Iterable[Block], models: LinearModels, clip: float, reach: float
) -> tuple[list[int], int]:
    """Return the sums of u rho / (reach clip) and of (rho / clip)^2, rho being clipped to [-clip, clip].

    The first are in units of 2**-(2 TERM_BITS), the second of 4**-TERM_BITS; |u| <= reach.
    """
    total, square = WholeSum(), 0
    for u, t, y in row_blocks:
        rho = _whole(models.residual(u, t, y) / clip)
        # |direction| and |rho| are at most 2**20, so that 4096 products stay below 2**53: doubles add them exactly.
        direction = steps(u / reach, TERM_BITS)
        total.add((rho.astype(np.float64) @ direction).astype(np.int64))
        square += int((rho * rho).sum())
    return list(np.atleast_1d(total.whole())), square


def _whole(part: Floats) -> NDArray[np.int64]:
    """Return parts of a bound in whole steps, inside [-1, 1] whatever was computed; what is no number counts as 0."""
    found: NDArray[np.int64] = np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _ONE).astype(np.int64)
    return found


# Exact sums of bounded contributions: parts of [-1, 1], truncated towards zero to whole parts of 2**-GRID_BITS.


GRID_BITS = 24
# Rows a pass: the squares, below 2**48 each, then sum to less than 2**63.
_PASS = 1 << 14


@dataclass(frozen=True, slots=True)
class RowSums:
    """Exact sums of contributions (in 2**-GRID_BITS) and of their squares, and the number treated."""

    total: int
    squares: int
    treated: int
    rows: int


def moments(contributions: Integers, treated: NDArray[np.bool_]) -> RowSums:
    """Return the exact sums over rows."""
    total = squares = 0
    for start in range(0, len(contributions), _PASS):
        part = contributions[start : start + _PASS]
        total += int(part.sum())
        squares += int((part * part).sum())
    return RowSums(total, squares, int(np.count_nonzero(treated)), len(contributions))


# Counts, sums and sums of squares of bounded scores in public cells, exact, a block of rows at a time.


# The cell of every row, its score as a part of its clip, and further terms in [-1, 1], one a column.
CellBlock = tuple[NDArray[np.int64], Floats, tuple[Floats, ...]]


@dataclass(frozen=True, slots=True)
class CellSums:
    """For every cell the number of rows, the sums of r (2**-TERM_BITS) and r^2 (4**-TERM_BITS), and those of the
    further terms (2**-TERM_BITS), a tuple for each.
    """

    counts: tuple[int, ...]
    scores: tuple[int, ...]
    squares: tuple[int, ...]
    further: tuple[tuple[int, ...], ...]


def cell_sums(row_blocks: Iterable[CellBlock], cells: int, further: int = 0) -> CellSums:
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


def counts_between(edges: Floats, values: Iterable[Floats]) -> NDArray[np.int64]:
    """Return how many values lie below the first edge, between every two, and from the last upwards."""
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for block in values:
        total += np.bincount(np.searchsorted(edges, np.nan_to_num(block), "right"), minlength=len(total))
    return total
