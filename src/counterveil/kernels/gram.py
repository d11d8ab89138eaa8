"""Sums of products of row vectors on a grid, exact: W'W and U'v in integers."""

from __future__ import annotations

from collections.abc import Iterable
from math import frexp

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.thin_products import gram

Floats = NDArray[np.float64]

# Whole steps stay below 2**_STEP_BITS: 2**12 products of two of them add up below 2**53, exactly in doubles.
_STEP_BITS = 20
# Finer grids gain nothing beside the noise.
_FINEST = 16


def grid_bits(largest: float) -> int:
    """Return the finest grid 2**-bits on which numbers up to `largest` keep below 2**20 steps."""
    return min(_FINEST, _STEP_BITS - frexp(largest)[1])


def steps(values: Floats, bits: int) -> Floats:
    """Return the values in whole steps of 2**-bits, truncated towards zero: no number grows."""
    # In place: pages of a second array this size cost more than the arithmetic.
    found: Floats = values * 2.0**bits
    return np.trunc(found, out=found)


def exact_gram(row_blocks: Iterable[Floats], bits: int) -> list[list[int]]:
    """Return the sum over rows of w w' in units of 4**-bits; every block has at most 4096 rows."""
    total: NDArray[np.object_] | int = 0
    for block in row_blocks:
        # Whole numbers below 2**53 throughout, so that doubles add them exactly in any order.
        total = total + gram(steps(block, bits)).astype(np.int64).astype(object)
    return [[int(entry) for entry in row] for row in np.atleast_2d(np.asarray(total, dtype=object))]
