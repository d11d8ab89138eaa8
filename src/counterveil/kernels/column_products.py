"""Products of tall matrices kept column by column with vectors and with themselves, on one thread.

`columns` is (p, n), one contiguous line for each column of an (n, p) matrix, in single or double precision; the
rows `start` to `stop` of that matrix count. Sums are in double precision.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import is_compiled
from counterveil.kernels.thin_products import Gram, Kind

Floats = NDArray[np.float64]
Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are turned into another precision at once: they stay in a core's cache.
_BLOCK = 1 << 16
# Rows and columns beside a sum of products, for the loops work on four at a time.
ROOM = 3


def scores(columns: Columns, start: int, stop: int, direction: NDArray[P]) -> NDArray[P]:
    """Return the rows' products with a direction (p,), in its precision, of shape (stop - start,)."""
    from counterveil.kernels.column_loops import add_scores

    found = np.zeros(stop - start, direction.dtype)
    if is_compiled(add_scores):
        add_scores(columns, start, stop, direction, found)
        return found
    return np.asarray(direction @ columns[:, start:stop].astype(direction.dtype, copy=False))


def totals(columns: Columns, start: int, stop: int, weights: NDArray[np.floating]) -> Floats:
    """Return the sum of the rows times their weights (stop - start,), of shape (p,).

    Where the weights are in single precision a thousand products are added up in it before they go to the total.
    """
    from counterveil.kernels.column_loops import add_totals

    found = np.zeros(len(columns))
    if is_compiled(add_totals):
        add_totals(columns, start, stop, weights, found)
        return found
    return np.asarray(columns[:, start:stop].astype(np.float64, copy=False) @ weights)


def products(columns: Columns, start: int, stop: int, kind: Kind = np.float64) -> Floats:
    """Return the sum of the rows' products with themselves, (p, p).

    In single precision a few hundred products are added up before they go to the total, in half the time: for
    steps that later ones correct.
    """
    width, step = len(columns), max(_BLOCK // max(len(columns), 1), 1)
    total = np.zeros((width + ROOM, width + ROOM))
    if columns.dtype == kind:
        add_products(total, columns, start, stop)
    else:
        for first in range(start, stop, step):
            block: Columns = columns[:, first : min(first + step, stop)].astype(kind)
            add_products(total, block, 0, block.shape[1])
    whole = total[:width, :width]
    return np.tril(whole) + np.tril(whole, -1).T


def add_products(total: Floats, columns: Columns, start: int, stop: int, sign: float = 1.0) -> None:
    """Add `sign` times those sums to the lower triangle of `total`, which has ROOM more rows and columns.

    What stands in these, and above the diagonal, does not count.
    """
    from counterveil.kernels import column_loops

    width = len(columns)
    if is_compiled(column_loops.add_products):
        column_loops.add_products(columns, start, stop, sign, total)
    else:
        found = Gram(width)
        found.add(columns[:, start:stop].T)
        total[:width, :width] += sign * found.whole()
