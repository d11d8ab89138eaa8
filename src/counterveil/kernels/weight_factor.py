"""Solving small symmetric positive systems without waking the linear algebra library's threads.

For a hundred unknowns a library's solver starts threads that cost more than they save, and many times
more when another process holds the second core. In tiles every product stays below its threshold.
"""

from __future__ import annotations

import numpy as np

from counterveil.kernels.weight_arms import Matrix

_TILE = 32


def solve_positive(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return matrix^-1 sides for a symmetric positive definite (w, w) matrix and (w, k) sides.

    Block elimination: with the leading tile D and the columns C below it, the rest becomes
    rest - C D^-1 C', whose leading tile is the next pivot.
    """
    rest, answer = matrix.copy(), sides.copy()
    width = len(rest)
    pivots = []
    for start in range(0, width, _TILE):
        tile, after = slice(start, start + _TILE), slice(start + _TILE, width)
        inverse = np.linalg.inv(rest[tile, tile])
        ratio = rest[after, tile] @ inverse
        for left in range(start + _TILE, width, _TILE):
            column = slice(left, left + _TILE)
            rest[left:, column] -= ratio[left - start - _TILE :] @ rest[column, tile].T
        answer[after] -= ratio @ answer[tile]
        pivots.append((tile, after, inverse, ratio))
    for tile, after, inverse, ratio in reversed(pivots):
        answer[tile] = inverse @ answer[tile] - ratio.T @ answer[after]
    return answer
