"""Products of tall, thin matrices, a few rows at a time.

A linear algebra library starts threads for such products that cost more than they save, and many times
more when another process holds the second core. In blocks below its threshold it stays with one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk

Floats = NDArray[np.float64]
Kind = type[np.float32] | type[np.float64]

# Multiplications a block, just below where threads are started: of two matrices, of a matrix with its own
# transpose (of which half are done), of a matrix with a vector.
_WORK, _OWN_WORK, _VECTOR_WORK = 200_000, 430_000, 400_000
_FEWEST_ROWS = 8
# Wider matrices are taken in tiles of columns.
_WIDEST, _TILE = 200, 64


def gram(matrix: NDArray[np.floating]) -> Floats:
    """Return matrix' matrix, (p, p), for an (n, p) matrix, in double precision."""
    width = matrix.shape[1]
    if width > _WIDEST:
        return _gram_in_tiles(matrix)
    total = Gram(width)
    total.add(matrix)
    return total.whole()


class Gram:
    """The sum of matrix' matrix, (p, p), over matrices that are added one after the other; p of any size.

    In single precision it takes half the time: for steps that later ones correct.
    """

    def __init__(self, width: int, kind: Kind = np.float64) -> None:
        self.kind = kind
        self.upper: NDArray[np.floating] = np.zeros((width, width), kind, order="F")

    def add(self, matrix: NDArray[np.floating]) -> None:
        """Add matrix' matrix for an (n, p) matrix."""
        n, width = matrix.shape
        if width > _WIDEST:
            self.upper += np.triu(_gram_in_tiles(matrix))
            return
        step = _rows(width * (width + 1), _OWN_WORK)
        product = dsyrk if self.kind is np.float64 else ssyrk
        for start in range(0, n if width else 0, step):
            block = np.ascontiguousarray(matrix[start : start + step], self.kind)
            # Adds to the upper triangle in place.
            self.upper = product(1.0, block.T, beta=1.0, c=self.upper, overwrite_c=1)

    def whole(self) -> Floats:
        """Return the sum, both triangles of it."""
        # Nothing was ever added below the diagonal.
        whole = self.upper.T + self.upper.astype(np.float64, copy=False)
        whole[np.diag_indices(len(whole))] = self.upper.diagonal()
        return np.asarray(whole)


def times(matrix: NDArray[np.floating], small: Floats) -> Floats:
    """Return matrix small, (n, q), for an (n, p) matrix and a (p, q) one, in double precision."""
    n, width = matrix.shape
    result = np.empty((n, small.shape[1]))
    step = _rows(width * small.shape[1], _WORK)
    for start in range(0, n, step):
        np.matmul(matrix[start : start + step], small, out=result[start : start + step])
    return result


def sums(matrix: NDArray[np.floating], weights: Floats) -> Floats:
    """Return weights matrix, (p,) or (k, p), for an (n, p) matrix and (n,) or (k, n) weights, in double precision."""
    n, width = matrix.shape
    total = np.zeros((*weights.shape[:-1], width))
    step = _rows(width * max(1, weights.size // max(n, 1)), _VECTOR_WORK if weights.ndim == 1 else _WORK)
    for start in range(0, n, step):
        block = matrix[start : start + step].astype(np.float64, copy=False)
        total += weights[..., start : start + step] @ block
    return total


def _gram_in_tiles(matrix: NDArray[np.floating]) -> Floats:
    n, width = matrix.shape
    total = np.empty((width, width))
    step = _rows(_TILE * _TILE, _WORK)
    for left in range(0, width, _TILE):
        a = slice(left, left + _TILE)
        for right in range(left, width, _TILE):
            b = slice(right, right + _TILE)
            tile = np.zeros((len(range(width)[a]), len(range(width)[b])))
            for start in range(0, n, step):
                block = matrix[start : start + step].astype(np.float64, copy=False)
                tile += block[:, a].T @ block[:, b]
            total[a, b], total[b, a] = tile, tile.T
    return total


def _rows(work: int, most: int) -> int:
    return max(_FEWEST_ROWS, most // max(work, 1))
