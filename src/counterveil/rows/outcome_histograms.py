"""Two noisy histograms that locate outcomes: over their declared range, and by distance from a centre.

    centre:  N_j = rows with an outcome in the j-th of 32 equal cells of the range,
    spread:  N_k = rows with |y - m| in the k-th of 8 intervals (octaves),

where octaves end at 2^-7, 2^-6, ..., 1/2 of the range (the last has no end), and m is a centre in whole steps
of the range (2^24 of them), which is read off the first histogram. Later releases clamp outcomes to an
interval found from both, so that their noise is smaller.

In: private outcomes; for the second histogram, the released centre. Out: counts of rows, with noise.

Why it is right: every row falls into exactly one cell of either partition, by its own outcome and numbers
that are public or were released before. One changed outcome leaves one count and enters another: a change
of 2 as a sum and of sqrt 2 in Euclidean length (`counts.COUNTS_L1`, `counts.COUNTS_L2`).

Proof: `rows/histogram.proof.md`. Privacy does not depend on the numbers 32 and 8 of cells: both bounds hold
for any partition.
"""

# Proof: histogram.proof.md

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from counterveil.data import OUTCOME_STEPS, Backend, Sums, Table
from counterveil.numerics.arrays import Integers
from counterveil.rows.counts import release_counts
from counterveil.rows.outcome_numbers import outcome_of
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, ReleasedVector

# Cells of the range, and octaves of distances: the last octave is the half of the range that is farthest off.
CELLS = 32
OCTAVES = 8
# Ends of the octaves in whole steps; the last has none.
OCTAVE_EDGES = [OUTCOME_STEPS >> k for k in range(OCTAVES - 1, 0, -1)]


@dataclass(frozen=True, slots=True)
class OutcomeHistograms:
    """Two histograms of outcomes, the second around a centre that the first has shown.

    Attributes
    ----------
    pure : bool
        Laplace noise on every count; else Gaussian noise for the Euclidean length of their change.
    which : str
        What is added to the names of the releases in the plan, "centre" and "spread".
    rows : PublicRows, optional
        Whose outcomes are counted, where they were moved by a public rule; by default the rows of the gate.
    outcome : int
        Which of several outcomes, in the order of the study; 0 is the first or only one.
    """

    pure: bool = True
    which: str = ""
    rows: PublicRows | None = None
    outcome: int = 0

    def release_cells(self, gate: Gate) -> ReleasedVector:
        """Return noisy counts of outcomes in 32 equal cells of their range."""
        return self._release(gate, f"centre{self.which}", range_cells)

    def release_octaves(self, gate: Gate, centre: int) -> ReleasedVector:
        """Return noisy counts of outcomes by distance from a centre in steps, which doubles from one to the next."""
        return self._release(gate, f"spread{self.which}", partial(distance_octaves, centre=centre))

    def _release(self, gate: Gate, name: str, count: Callable[[Integers], Integers]) -> ReleasedVector:
        source: Backend = gate.rows.batches if self.rows is None else private_table(self.rows)
        return release_counts(gate, name, partial(_counted, source, count, self.outcome), self.pure)


def range_cells(outcome: Integers) -> Integers:
    """Return how many outcomes lie in each cell of the range."""
    cells = np.minimum(outcome // (OUTCOME_STEPS // CELLS), CELLS - 1)
    return np.bincount(cells, minlength=CELLS)


def distance_octaves(outcome: Integers, centre: int) -> Integers:
    """Return how many outcomes lie in each octave of the distance from a centre in steps."""
    return np.bincount(np.searchsorted(OCTAVE_EDGES, np.abs(outcome - centre)), minlength=OCTAVES)


def _counted(source: Backend, count: Callable[[Integers], Integers], outcome: int) -> list[int]:
    (counts,) = source.run(partial(_block_counts, count=count, outcome=outcome))
    return [int(number) for number in counts]


def _block_counts(block: Table, count: Callable[[Integers], Integers], outcome: int) -> Sums:
    return (count(outcome_of(block, outcome)),)
