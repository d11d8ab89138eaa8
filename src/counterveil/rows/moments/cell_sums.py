"""Exact sums of scores over the rows of public cells, and how far one row moves them.

Every private row falls into one cell (a group, an arm, a bin; by a rule that reads this row alone) and has a
score r and perhaps further terms d_1, d_2, ..., all parts of their clips in [-1, 1]. For each cell

    N = number of rows,    S = sum r,    Q = sum r^2,    D_j = sum d_j

are added up in whole steps of 2^-20, and released are

    (N - 2 S + Q) / 4,    (N - Q) / 2,    (N + 2 S + Q) / 4,    b_j D_j,

with public weights b_j. The caller recovers N, S and Q as sums and differences of the first three.

Why this form: a row adds (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 to the first three, which are not negative and
sum to one. Replacing a row then moves all cells together by at most sqrt(2 + 4 sum b_j^2) in Euclidean length
(Gaussian noise) and 2 + 2 sum b_j in the sum of absolute changes (Laplace noise): `CellTerms`.
Proof: `rows/moments/group_scores.proof.md`. The weights b_j divide precision between scores and further
terms; privacy holds for every choice, since the bounds are computed from them.
"""

# Proof: group_scores.proof.md

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.rows.moments.scores import Sums, whole_steps


@dataclass(frozen=True, slots=True)
class CellTerms:
    """Weights of `further` sums beside a cell's sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4, r in [-1, 1]."""

    further: tuple[Fraction, ...] = ()

    @property
    def euclidean(self) -> Fraction:
        """Largest Euclidean length of a change of all sums over all cells."""
        return sqrt_up(2 + 4 * sum((weight**2 for weight in self.further), Fraction(0)))

    @property
    def absolute(self) -> Fraction:
        """Largest sum of absolute changes of the same numbers."""
        return 2 + 2 * sum(self.further, Fraction(0))


SCORE_TERMS = CellTerms()
# With further sums, of what the models leave of treatment and outcome and of the information; pure noise pays for every
# weight.
MODEL_TERMS = CellTerms((Fraction(1, 5), Fraction(1, 5), Fraction(1, 10)))
PURE_MODEL_TERMS = CellTerms((Fraction(3, 20), Fraction(3, 20), Fraction(1, 10)))


def cell_terms(models: bool, pure: bool) -> CellTerms:
    """Return the terms of a cell and their weights: with models, what they leave is summed too."""
    if not models:
        return SCORE_TERMS
    return PURE_MODEL_TERMS if pure else MODEL_TERMS


def three_terms(
    count: int | Fraction, total: int | Fraction, squares: int | Fraction
) -> tuple[Fraction, Fraction, Fraction]:
    """Return (N - 2 S + Q) / 4, (N - Q) / 2 and (N + 2 S + Q) / 4: how much rows are at -1, at 0 and at 1."""
    low = Fraction(count - 2 * total + squares, 4)
    return low, Fraction(count - squares, 2), Fraction(count + 2 * total + squares, 4)


# The cell of every row, its score as a part of its clip, and further terms in [-1, 1], one a column.
CellBlock = tuple[NDArray[np.int64], Floats, tuple[Floats, ...]]


def cell_sums(row_blocks: Iterable[CellBlock], cells: int, further: int = 0) -> Sums:
    """Return for every cell the number of rows, the sums of r and r^2, and those of the further terms.

    Terms are clipped to [-1, 1] and truncated towards zero, to steps of 2**-TERM_BITS; blocks have at most 4096 rows.
    A term that is not a number counts as zero, so that nothing a row holds can stop the release.
    """
    totals = [[0] * cells for _ in range(3 + further)]
    for codes, scores, others in row_blocks:
        r = whole_steps(scores)
        # 4096 squares of numbers up to 2**20 add up to 2**52 at most: doubles hold them exactly.
        terms = [np.ones(len(codes)), r, r * r, *(whole_steps(term) for term in others)]
        for total, term in zip(totals, terms, strict=True):
            added = np.bincount(codes, weights=term, minlength=cells)
            total[:] = [a + int(b) for a, b in zip(total, added, strict=True)]
    return (np.array(totals, dtype=object),)
