"""Exact sums of bounded terms of rows, in whole steps: rounding and counts that several releases share.

A term of a row is a part of its bound in [-1, 1]. It is truncated towards zero to steps of 2^-20
(`whole_steps`; no number becomes 0), so that sums are whole numbers and exact whatever the order of rows.
Also here: sums by arm of a term times a direction, and counts of values between edges (`counts_between`), in
people.

In: blocks of terms that depend on one row and on public or released numbers alone. Out: whole numbers, not
yet noisy, which callers pass on to a release.

Why it matters: whole numbers below 2^53 add exactly in double precision (4096 products of numbers up to 2^20
do), so that the sensitivity of the released sum is that of exact arithmetic; truncation towards zero keeps
each term inside its bound. Proofs: the pages of the sums, for example
`rows/moments/orthogonal_score.proof.md`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import sums

Sums = tuple[NDArray[Any], ...]  # of whole numbers
Block = tuple[Floats, Floats, Floats]  # u (rows, m), treatment 0 or 1 or the place of an arm, outcome

# Terms of a row are taken in steps of 2**-TERM_BITS of their bound.
TERM_BITS = 20
_ONE = 1 << TERM_BITS


def sums_by_arm(rho: Floats, arm: NDArray[Any], arms: int, direction: Floats) -> NDArray[np.int64]:
    """Return the sums of rho times a direction over the rows of every arm, one arm after another.

    Both are whole numbers up to 2**20, so that sums of 4096 products stay below 2**53: doubles add them exactly.
    """
    by_arm = np.where(arm == np.arange(arms)[:, None], rho, 0.0) if arms > 1 else rho[None]
    return sums(direction, by_arm).ravel().astype(np.int64)


def whole_steps(terms: Floats) -> NDArray[np.int64]:
    """Return terms in whole steps, inside [-1, 1] whatever was computed; what is no number counts as 0.

    Terms are given as parts of their bound.
    """
    return np.asarray(np.trunc(np.clip(np.nan_to_num(terms), -1.0, 1.0) * _ONE).astype(np.int64))


def counts_between(
    edges: Floats, values: Iterable[Floats], side: Literal["left", "right"] = "right"
) -> NDArray[np.int64]:
    """Return how many values lie below the first edge, between every two, and from the last upwards.

    A value on an edge lies above it, or below it where the `side` is "left".
    """
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for block in values:
        total += np.bincount(np.searchsorted(edges, np.nan_to_num(block), side), minlength=len(total))
    return total
