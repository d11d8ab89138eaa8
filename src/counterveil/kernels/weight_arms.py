"""One arm of a weighting problem: its rows of the feature matrix, read in blocks.

A large arm never copies the feature matrix: a block of rows is gathered, used and dropped, so memory
beyond the matrix itself is a few vectors of the arm's length. A small arm is copied once, which saves
the gathering. Features may be kept in float32; every product is taken in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.thin_products import Gram

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

# Numbers gathered at a time: they stay within a core's second-level cache, and the linear algebra library
# keeps products of this size with a vector to one thread.
_BLOCK = 1 << 17
# Arms of at most this many numbers are copied (8 MB).
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class ArmRows:
    """The rows of one arm: `features` is the whole (n, p) matrix, `rows` (m,) picks the arm's rows, in order.

    `totals` (p,) are the sums of their features, `products` (p, p) those of the features' products.
    """

    features: NDArray[np.floating]
    rows: Rows
    totals: Vector
    products: Matrix

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows) -> ArmRows:
        """Return the arm of the given rows, in increasing order, with its own copy of them if they are few."""
        if len(rows) * features.shape[1] <= _SMALL:
            features, rows = (
                np.take(features, rows, axis=0).astype(np.float64, copy=False),
                np.arange(len(rows)),
            )
        totals, products = np.zeros(features.shape[1]), Gram(features.shape[1])
        for _, block in _blocks(features, rows):
            totals += np.ones(len(block)) @ block
            products.add(block)
        return cls(features, rows, totals, products.whole())


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
        return len(self.held.rows)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.target)

    def scores(self, direction: Vector) -> Vector:
        """Return F @ direction over the arm's rows, shape (m,)."""
        scores = np.zeros(self.size)
        if not direction.any():
            return scores
        for span, block in _blocks(self.held.features, self.held.rows):
            scores[span] = block @ direction
        return scores

    def totals(self, weights: Vector) -> Vector:
        """Return F' weights, the weighted feature totals of the arm, shape (p,)."""
        if weights.min() == weights.max():
            return float(weights[0]) * self.held.totals
        return weighted_totals(self.held.features, self.held.rows, weights)

    def gram(self, chosen: Rows) -> Matrix:
        """Return Z'Z over the arm's positions `chosen`, with Z = [F, -1], shape (p+1, p+1)."""
        rows = self.held.rows[chosen]
        totals, products = np.zeros(self.width), Gram(self.width)
        for _, block in _blocks(self.held.features, rows):
            totals += np.ones(len(block)) @ block
            products.add(block)
        return _bordered(products.whole(), -totals, len(rows))

    def whole_gram(self) -> Matrix:
        """Return the same over all of the arm's rows."""
        return _bordered(self.held.products, -self.held.totals, self.size)

    def border(self, chosen: Rows) -> Vector:
        """Return Z'1 over the arm's positions `chosen`, with Z = [F, -1], shape (p+1,)."""
        border = np.empty(self.width + 1)
        border[:-1] = weighted_totals(self.held.features, self.held.rows[chosen], np.ones(len(chosen)))
        border[-1] = -len(chosen)
        return border


def _bordered(inner: Matrix, border: Vector, corner: float) -> Matrix:
    """Return a (p, p) matrix with one more row and column."""
    width = len(inner)
    whole = np.empty((width + 1, width + 1))
    whole[:-1, :-1], whole[-1, :-1], whole[:-1, -1], whole[-1, -1] = inner, border, border, corner
    return whole


def weighted_totals(features: NDArray[np.floating], rows: Rows, weights: Vector) -> Vector:
    """Return F[rows]' weights, shape (p,)."""
    totals = np.zeros(features.shape[1])
    for span, block in _blocks(features, rows):
        totals += weights[span] @ block
    return totals


def _blocks(features: NDArray[np.floating], rows: Rows) -> Iterator[tuple[slice, Matrix]]:
    step = max(_BLOCK // max(features.shape[1], 1), 1)
    for start in range(0, len(rows), step):
        span = slice(start, start + step)
        # Rows are increasing and distinct: as many as the matrix has are all of them.
        block = features[span] if len(rows) == len(features) else np.take(features, rows[span], axis=0)
        yield span, block.astype(np.float64, copy=False)
