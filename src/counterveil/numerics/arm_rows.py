"""The rows of one arm of a feature matrix that is kept column by column, and inverses of small positive matrices.

Rows that follow each other are read where they are, scattered ones are copied once. Features may be kept in
float32; sums are taken in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from counterveil.numerics import columns as column_products
from counterveil.numerics.products import Kind

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class ArmRows:
    """The rows of one arm: the entries `start` to `stop` of every line of `columns` (p, n), a line for each feature.

    `totals` (p,) are the sums of the rows' features, `squares` that of all their squares and `products` (p, p) those of
    the features' products, which alone were found in the precision `kind`.
    """

    columns: NDArray[np.floating]
    start: int
    stop: int
    totals: Vector
    squares: float
    products: Matrix
    kind: Kind

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows, kind: Kind = np.float64) -> ArmRows:
        """Return the arm of some rows, in increasing order, of a (n, p) matrix; `kind` is the precision of products."""
        columns = features.T
        start = int(rows[0])
        stop = int(rows[-1]) + 1
        if columns.dtype not in (np.float32, np.float64):
            columns = columns.astype(np.float64)
        if stop - start != len(rows) or not columns.flags.c_contiguous:
            columns = np.take(columns, rows, axis=1)
            start = 0
            stop = len(rows)
        kind = kind if columns.dtype == np.float32 else np.float64
        totals = np.zeros(len(columns))
        squares = 0.0
        for _, block in column_products.blocks(columns, start, stop, np.float64):
            totals += block.sum(axis=1)
            squares += float(np.einsum("ij,ij->", block, block))
        products = column_products.products(columns, start, stop, kind)
        return cls(columns, start, stop, totals, squares, products, kind)

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

    def scores(self, direction: Vector, kind: Kind = np.float64) -> NDArray[np.floating]:
        """Return F @ direction, shape (m,), found in the precision `kind`."""
        return column_products.scores(self.columns, self.start, self.stop, direction.astype(kind, copy=False))

    def weighted(self, weights: NDArray[np.floating]) -> Vector:
        """Return F' weights, shape (p,), found in the precision of the weights."""
        if weights[0] == weights[-1] and (weights == weights[0]).all():
            return float(weights[0]) * self.totals
        return column_products.totals(self.columns, self.start, self.stop, weights)


@dataclass(frozen=True, slots=True)
class ArmBalancing:
    """The rows of one arm and what is asked of their weights.

    `reference` (m,) holds the weights to stay close to, `target` (p,) the feature totals to reach.
    """

    rows: ArmRows
    reference: Vector
    target: Vector

    @property
    def size(self) -> int:
        """Number of rows of the arm."""
        return self.rows.size

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.target)


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
        full = np.tril(matrix) + np.tril(matrix, -1).T
        return lambda sides: np.asarray(
            np.linalg.solve(full, sides), np.float64
        )  # positive up to rounding only
    return lambda sides: np.asarray(dpotrs(root, sides, lower=1)[0])


def lower_root(matrix: Matrix) -> Matrix:
    """Return the lower triangle L with L L' = matrix, for the lower triangle of a positive definite matrix."""
    root, fault = dpotrf(matrix, lower=1, clean=1)
    if fault:
        raise np.linalg.LinAlgError("not positive")
    return np.asarray(root)


def inverse_root(matrix: Matrix) -> Matrix:
    """Return an upper triangular W with W W' = matrix^-1, for a symmetric positive definite matrix."""
    return np.asarray(dtrtri(lower_root(matrix), lower=1)[0]).T
