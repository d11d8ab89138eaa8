"""Counts of rows in public cells, released with noise: one record leaves a cell and enters another.

Of two counts one falls and one grows by 1 (or by a public weight up to 1), so that all counts together change by 2
as a sum and by sqrt 2 in Euclidean length, however many cells there are.
"""

# Proof: histogram.proof.md

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up
from counterveil.session import Gate, ReleasedVector

# Largest sum of absolute changes of the counts, and largest Euclidean length of their change.
COUNTS_L1 = Fraction(2)
COUNTS_L2 = sqrt_up(Fraction(2))
# Of rows, or of their public weights up to 1.
Count = int | Fraction


def release_counts(
    gate: Gate, name: str, counts: Iterable[Count] | Callable[[], Iterable[Count]], pure: bool
) -> ReleasedVector:
    """Return noisy counts: Laplace noise on each where `pure`, else the noise of a vector.

    `counts` may be the pass over rows that counts; it is not run where the counts were released before.
    """

    def values() -> list[Fraction]:
        exact = counts() if callable(counts) else counts
        return [count if isinstance(count, Fraction) else Fraction(int(count)) for count in exact]

    return release_sums(gate, name, values=values, pure=pure, l1=COUNTS_L1, l2=COUNTS_L2)


def release_sums(
    gate: Gate,
    name: str,
    values: Sequence[Fraction] | Callable[[], Sequence[Fraction]],
    pure: bool,
    l1: Fraction,
    l2: Fraction,
) -> ReleasedVector:
    """Return numbers with Laplace noise by the sum of their changes where `pure`, else by the length of it."""
    return gate.release_cells(name, values, l1) if pure else gate.release_vector(name, values, l2)
