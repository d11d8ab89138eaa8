"""Counts of rows in public cells, released with noise: one record leaves a cell and enters another.

Proof: `histogram.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up
from counterveil.session import Gate, ReleasedVector

# Largest sum of absolute changes of the counts, and largest Euclidean length of their change.
COUNTS_L1 = Fraction(2)
COUNTS_L2 = sqrt_up(Fraction(2))


def release_counts(gate: Gate, name: str, counts: Iterable[int], pure: bool) -> ReleasedVector:
    """Return noisy counts: Laplace noise on each where `pure`, else the noise of a vector."""
    values = [Fraction(int(count)) for count in counts]
    if pure:
        return gate.release_cells(name, values, COUNTS_L1)
    return gate.release_vector(name, values, COUNTS_L2)
