"""How long standardised rows are: a noisy histogram of |z|^2 / p, p being the number of features.

z are the features of a private record in standard deviations: less released centres and over released scales
(`Standard`). Out come the noisy counts of records between the `EDGES`, in people; later releases are
shortened to a length that they suggest. With standardised features |z|^2 / p is near one.

Why it is right: a row is in one cell, so that one record that is replaced moves two counts by one each.
Proof: `rows/histogram.proof.md`. The edges decide how finely a length can be chosen; privacy does not depend
on them.
"""

from __future__ import annotations

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.products import Standard, squared_lengths
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.scores import counts_between
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate, ReleasedVector

# Edges of the histogram of |z|^2 / (number of features); one cell lies above the last.
EDGES = np.array([0.8, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0])


def release_length_counts(gate: Gate, records: Records, standard: Standard, pure: bool) -> ReleasedVector:
    """Return how many rows have |z|^2 / p in each cell between the `EDGES`, released under the name "norms"."""
    return release_counts(gate, "norms", lambda: records.run(length_counts, standard)[0], pure)


def length_counts(records: TableRecords, standard: Standard) -> Sums:
    """Return the counts of one table."""
    size = records.features.size
    lengths = (squared_lengths(standard.coordinates(block.x)) / size for block in records.parts())
    return (counts_between(EDGES, lengths, "left"),)
