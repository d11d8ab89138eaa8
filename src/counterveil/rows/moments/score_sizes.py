"""How large doubly robust scores are: a histogram of their sizes, and a bound that no score exceeds."""

# Proof: longest_score.proof.md

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.linear_models import ArmLines
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


# Proof: longest_score.proof.md
def longest_score(score: ArmScore, rows: ScaledRows) -> float:
    """Return a bound of the size of every score, from released lines and weights and the limits of rows and outcomes.

    A row of arm a has the score people_a (tau'u - effect) +- alpha_a'u (v - beta_a'u).
    """
    control, treated = score.lines.values
    gain = treated - control
    gain[0] -= score.effect
    residuals = longest_weighted(score.lines, score.weights, rows)
    return float(max(rows.farthest_line(gain) * np.array(score.people) + residuals))


# Proof: longest_score.proof.md
def longest_weighted(lines: ArmLines, weights: Floats, rows: ScaledRows) -> Floats:
    """Return for every arm a bound of the size of its weighted residuals alpha_a'u (v - beta_a'u)."""
    pairs = zip(weights, lines.values, strict=True)
    return np.array(
        [
            rows.farthest_line(weight) * (rows.farthest_outcome + rows.farthest_line(line))
            for weight, line in pairs
        ]
    )
