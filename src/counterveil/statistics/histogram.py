"""Counts of rows in public cells, released with noise: one record leaves a cell and enters another.

Proof: `histogram.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up
from counterveil.session import Gate, ReleasedVector

# Largest sum of absolute changes of the counts, and largest Euclidean length of their change.
COUNTS_L1 = Fraction(2)
COUNTS_L2 = sqrt_up(Fraction(2))


def release_counts(
    gate: Gate, name: str, counts: Iterable[int] | Callable[[], Iterable[int]], pure: bool
) -> ReleasedVector:
    """Return noisy counts: Laplace noise on each where `pure`, else the noise of a vector.

    `counts` may be the pass over rows that counts; it is not run where the counts were released before.
    """

    def values() -> list[Fraction]:
        return [Fraction(int(count)) for count in (counts() if callable(counts) else counts)]

    if pure:
        return gate.release_cells(name, values, COUNTS_L1)
    return gate.release_vector(name, values, COUNTS_L2)
