"""Counts of rows in public cells, released with noise: one person moves two counts by at most 1 each.

    released_j = N_j + noise_j,    N_j = rows in cell j (or the sum of their weights, 0 to 1).

In: exact counts N_j, in rows, of a partition into cells that is public or was released before. Out: the
same numbers with noise of known variance. The *gate* is what adds noise and lets each release that the
request's plan has paid for through once.

Why it is right: each row is in exactly one cell. If its private values change, one count falls and one
grows by at most 1, so that all counts together change by at most 2 as a sum of absolute changes (the bound
for Laplace noise, `COUNTS_L1`) and by at most sqrt 2 in Euclidean length (the bound for the noise of a
vector, `COUNTS_L2`, rounded up), however many cells there are.

Proof: `rows/histogram.proof.md`.
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
