"""Products of tall, thin matrices, a few rows at a time.

A linear algebra library starts threads for such products that cost more than they save, and many times
more when another process holds the second core. In blocks below its threshold it stays with one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Multiplications a block: just below where threads are started.
_WORK = 200_000
_FEWEST_ROWS = 8


def gram(matrix: NDArray[np.floating]) -> Floats:
    """Return matrix' matrix, (p, p), for an (n, p) matrix, in double precision."""
    n, width = matrix.shape
    total = np.zeros((width, width))
    step = _rows(width * width)
    for start in range(0, n, step):
        block = matrix[start : start + step].astype(np.float64, copy=False)
        total += block.T @ block
    return total


def times(matrix: NDArray[np.floating], small: Floats) -> Floats:
    """Return matrix small, (n, q), for an (n, p) matrix and a (p, q) one, in double precision."""
    n, width = matrix.shape
    result = np.empty((n, small.shape[1]))
    step = _rows(width * small.shape[1])
    for start in range(0, n, step):
        np.matmul(matrix[start : start + step], small, out=result[start : start + step])
    return result


def _rows(work: int) -> int:
    return max(_FEWEST_ROWS, _WORK // max(work, 1))
