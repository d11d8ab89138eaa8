"""One arm of a weighting problem: its rows of the feature matrix, which is kept column by column.

Rows that follow each other are read where they are, scattered ones are copied once. Features may be kept in
float32; sums are taken in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels import column_products
from counterveil.kernels.compilation import locked
from counterveil.kernels.thin_products import Kind

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
