"""Solving and factoring small symmetric positive systems without waking the linear algebra library's threads.

Beyond a hundred unknowns or so a library's solver starts threads that cost more than they save, and many
times more when another process holds the second core. Halved until it fits, everything stays with one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dtrtri

from counterveil.kernels.thin_products import times
from counterveil.kernels.weight_arms import Matrix

_TILE = 32
# Unknowns up to which the library's own factorisation stays with one thread.
_ONE_THREAD = 120


def solve_positive(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return matrix^-1 sides for a symmetric positive definite (w, w) matrix and (w, k) sides."""
    try:
        if len(matrix) <= _ONE_THREAD:
            factor = cho_factor(matrix, lower=True, check_finite=False)
            return np.asarray(cho_solve(factor, sides, check_finite=False))
        root = inverse_root(matrix)
        return times(root, times(root.T, sides))
    except np.linalg.LinAlgError:
        return _eliminated(matrix, sides)  # positive up to rounding only


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix.

    A large matrix is halved: with the leading half A, the rows B below it and W_A the root of A^-1, let
    R = B W_A; the other half of W is the root of (D - R R')^-1, and W's corner is -W_A R' times that.
    """
    width = len(matrix)
    if width <= _ONE_THREAD:
        lower, _ = cho_factor(matrix, lower=True, check_finite=False)
        inverse, _ = dtrtri(lower, lower=1)
        return np.asarray(np.tril(inverse).T)
    half = width // 2
    root = np.zeros_like(matrix)
    root[:half, :half] = first = inverse_root(matrix[:half, :half])
    ratio = times(matrix[half:, :half], first)
    root[half:, half:] = second = inverse_root(matrix[half:, half:] - times(ratio, ratio.T))
    root[:half, half:] = -times(times(first, ratio.T), second)
    return root


def _eliminated(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return the same by elimination in tiles, which takes matrices that rounding made indefinite.

    With the leading tile D and the columns C below it, the rest becomes rest - C D^-1 C', whose leading
    tile is the next pivot.
    """
    width = len(matrix)
    rest, answer = matrix.copy(), sides.copy()
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
