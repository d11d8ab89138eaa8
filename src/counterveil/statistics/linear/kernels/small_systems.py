"""Solving and factoring small symmetric positive systems without waking the linear algebra library's threads.

Beyond a hundred unknowns or so a library's solver starts threads that cost more than they save, and many
times more when another process holds the second core. Halved until it fits, everything stays with one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import locked, run
from counterveil.numerics.products import Kind, times

# One arm of a weighting problem: its rows of the feature matrix, which is kept column by column.
#
# Rows that follow each other are read where they are, scattered ones are copied once. Features may be kept in
# float32; sums are taken in float64.


Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ArmRows:
    """The rows of one arm: the entries `start` to `stop` of every line of `columns` (p, n), a line for each feature.

    `totals` (p,) are the sums of the rows' features, `products` (p, p) those of the features' products, which
    were found in the precision `kind`.
    """

    columns: NDArray[np.floating]
    start: int
    stop: int
    totals: Vector
    products: Matrix
    kind: Kind

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows, kind: Kind = np.float64) -> ArmRows:
        """Return the arm of some rows, in increasing order, of a (n, p) matrix; `kind` is the precision of products."""
        columns, start, stop = features.T, int(rows[0]), int(rows[-1]) + 1
        if columns.dtype not in (np.float32, np.float64):
            columns = columns.astype(np.float64)
        if stop - start != len(rows) or not columns.flags.c_contiguous:
            columns, start, stop = np.take(columns, rows, axis=1), 0, len(rows)
        # Loops know arrays that may be written to and others as different things: one of both.
        columns, kind = locked(columns), kind if columns.dtype == np.float32 else np.float64
        totals = column_products.totals(columns, start, stop, np.ones(stop - start))
        return cls(columns, start, stop, totals, column_products.products(columns, start, stop, kind), kind)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def exact_products(self) -> Matrix:
        """The products, found in double precision."""
        if self.kind is np.float64:
            return self.products
        return column_products.products(self.columns, self.start, self.stop)

    def scores(self, direction: Vector) -> Vector:
        """Return F @ direction, shape (m,)."""
        return column_products.scores(self.columns, self.start, self.stop, direction)

    def weighted(self, weights: Vector) -> Vector:
        """Return F' weights, shape (p,)."""
        if weights[0] == weights[-1] and (weights == weights[0]).all():
            return float(weights[0]) * self.totals
        return column_products.totals(self.columns, self.start, self.stop, weights)


@dataclass(frozen=True, slots=True)
class Arm:
    """The rows of one arm and what is asked of their weights.

    `reference` (m,) holds the weights to stay close to, `target` (p,) the feature totals to reach.
    """

    held: ArmRows
    reference: Vector
    target: Vector

    @property
    def size(self) -> int:
        """Number of rows of the arm."""
        return self.held.size

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.target)


_TILE = 32
# Unknowns up to which the compiled loops are quick.
_COMPILED = 160


def solve_positive(matrix: Matrix, sides: Matrix) -> Matrix:
    """Return matrix^-1 sides for a symmetric positive definite (w, w) matrix and (w, k) sides."""
    return factored(matrix)(sides)


def factored(matrix: Matrix) -> Callable[[Matrix], Matrix]:
    """Return a function that multiplies (w, k) sides by the inverse of a symmetric positive definite (w, w) matrix.

    Its lower triangle is read.
    """
    try:
        root = lower_root(matrix)
    except np.linalg.LinAlgError:
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        return lambda sides: _eliminated(whole, sides)  # positive up to rounding only
    return lambda sides: np.asarray(dpotrs(root.T, sides, lower=0)[0])


def lower_root(matrix: Matrix) -> Matrix:
    """Return L with L L' = matrix in its lower triangle, for the lower triangle of a positive definite matrix.

    A large matrix is halved: with the leading half A and the rows B below it, L holds the root of A, under
    it B times that root's inverse, transposed, and the root of what is left of the other half.
    """
    from counterveil.numerics.loops import write_root

    width = len(matrix)
    root = np.zeros((width, width))
    if width > _COMPILED:
        half = width // 2
        root[:half, :half] = first = lower_root(matrix[:half, :half])
        root[half:, :half] = below = times(matrix[half:, :half], _inverted(first).T)
        root[half:, half:] = lower_root(matrix[half:, half:] - times(below, below.T))
        return root
    if not run(write_root, (np.ascontiguousarray(matrix),), (root,)):
        raise np.linalg.LinAlgError("not positive")
    return root


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix."""
    return _inverted(lower_root(matrix)).T


def _inverted(root: Matrix) -> Matrix:
    """Return the inverse of a lower triangle; what stands above it does not count."""
    from counterveil.numerics.loops import write_inverse

    width = len(root)
    if width > _COMPILED:
        half = width // 2
        inverse = np.zeros_like(root)
        inverse[:half, :half] = first = _inverted(root[:half, :half])
        inverse[half:, half:] = second = _inverted(root[half:, half:])
        inverse[half:, :half] = -times(second, times(root[half:, :half], first))
        return inverse
    upper = np.zeros((width, width))
    run(write_inverse, (np.ascontiguousarray(root),), (upper,))
    return upper.T


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
