"""Exact sums of bounded terms of rows, in whole steps.

A term of a row is a part of its bound in [-1, 1], truncated towards zero to whole steps, so that sums are
exact whatever the order of rows. All parameters are public or were released before; a row's terms depend on
that row alone.
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
