"""How many private outcomes lie in each cell of a public or released partition of their range.

In: outcomes in half ranges around the middle of their declared range, in [-1, 1], and the edges of the cells
in the same unit. Out: one noisy count for each cell, in people; outcomes beyond the outermost edges count in
the outermost cells. Noise is Laplace's or, where delta pays for it, Gaussian.

Why it is right: a row is in one cell, so that one record that is replaced moves two counts by one each: by 2
in the sum of absolute changes and sqrt(2) in Euclidean length. Proof: `rows/histogram.proof.md`.
"""

from __future__ import annotations

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.rows.counts import release_counts
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate, ReleasedVector


def release_outcome_counts(
    gate: Gate, name: str, records: Records, edges: Floats, pure: bool
) -> ReleasedVector:
    """Return how many outcomes lie between every two edges, in units of half the range around its middle."""
    return release_counts(gate, name, lambda: records.run(outcome_counts, edges, covariates=False)[0], pure)


def outcome_counts(records: TableRecords, edges: Floats) -> Sums:
    """Return the counts of one table; outcomes outside count in the outermost cells."""
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for block in records.parts():
        counts += np.histogram(np.clip(block.y, edges[0], edges[-1]), edges)[0]
    return (counts,)
