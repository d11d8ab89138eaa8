"""Products of tall matrices kept column by column with vectors and with themselves.

`columns` is (p, n), one contiguous row for each column of an (n, p) matrix, in single or double precision; the rows
`start` to `stop` of that matrix count. A few rows at a time are multiplied in one precision, and what they give is
added up in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Kind

Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are multiplied at once: they stay in a core's cache. And the fewest rows.
_BLOCK_NUMBERS, _FEWEST_ROWS = 1 << 16, 64


def scores(columns: Columns, start: int, stop: int, direction: NDArray[P]) -> NDArray[P]:
    """Return the rows' products with a direction (p,), in its precision, of shape (stop - start,)."""
    products = np.empty(stop - start, direction.dtype)
    for rows, block in blocks(columns, start, stop, direction.dtype):
        products[rows] = direction @ block
    return products


def totals(columns: Columns, start: int, stop: int, weights: NDArray[np.floating]) -> Floats:
    """Return the sum of the rows times their weights (stop - start,), of shape (p,).

    Where the weights are in single precision a block is added up in it before it goes to the total.
    """
    total = np.zeros(len(columns))
    for rows, block in blocks(columns, start, stop, weights.dtype):
        total += block @ weights[rows]
    return total


def products(columns: Columns, start: int, stop: int, kind: Kind = np.float64) -> Floats:
    """Return the sum of the rows' products with themselves, (p, p).

    In single precision a block is added up before it goes to the total, in half the time: for steps that later ones
    correct.
    """
    total = np.zeros((len(columns), len(columns)))
    for _, block in blocks(columns, start, stop, kind):
        total += block @ block.T
    return total


def blocks(columns: Columns, start: int, stop: int, kind: Any) -> Iterator[tuple[slice, Columns]]:
    """Yield a few rows at a time in this precision: (their places from `start` on, block), the block to be read only.

    A block may be written over by the next.
    """
    step = max(_FEWEST_ROWS, _BLOCK_NUMBERS // max(len(columns), 1))
    buffer = None if columns.dtype == kind else np.empty((len(columns), min(step, stop - start)), kind)
    for first in range(start, stop, step):
        block = columns[:, first : min(first + step, stop)]
        if buffer is not None:
            np.copyto(buffer[:, : block.shape[1]], block)
            block = buffer[:, : block.shape[1]]
        yield slice(first - start, first - start + block.shape[1]), block
