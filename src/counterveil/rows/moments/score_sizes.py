"""Noisy counts of doubly robust scores of private records by their size, from which the clip is chosen.

A score of a row follows from that row and released lines and weights (`score_sums`), in units of the released
scale of the outcome. In come rows (u, arm, v) and public edges of |score|, out come noisy counts in people
and the standard deviation of one count's noise. Scores of the means of arms are counted by arm: their cells
follow one another, arm by arm.

Why it is right: a row is in one cell, so that one record that is replaced moves two counts by one each, by 2
in the sum of absolute changes and sqrt(2) in Euclidean length. Proof: `rows/histogram.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.scaled_rows import ScaledRows, over_scaled
from counterveil.rows.moments.score_sums import ArmScore, OwnScore
from counterveil.rows.moments.scores import Block, Sums, counts_between
from counterveil.rows.records import Records
from counterveil.session import Gate


def score_sizes(row_blocks: Iterable[Block], score: ArmScore | OwnScore, edges: Floats) -> Sums:
    """Return how many scores lie between edges of their size; rows of a score of their own arm are counted by arm."""
    arms = len(score.units) if isinstance(score, OwnScore) else 1
    total = np.zeros((arms, len(edges) + 1), dtype=np.int64)
    for u, t, y in row_blocks:
        sizes = np.abs(score.of(u, t, y))
        total += [counts_between(edges, [sizes[t == arm] if arms > 1 else sizes]) for arm in range(arms)]
    return (total.ravel(),)


def release_sizes(
    gate: Gate, records: Records, rows: ScaledRows, score: ArmScore | OwnScore, edges: Floats, pure: bool
) -> tuple[Floats, float]:
    """Return how many scores lie between edges of their size, perhaps arm by arm, and the noise of one count.

    One record leaves a cell and enters another.
    """
    released = release_counts(
        gate, "sizes", lambda: records.run(over_scaled, score_sizes, rows, score, edges)[0], pure
    )
    return released.floats(), sqrt(released.variance)
