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

from counterveil.kernels.thin_products import gram as own_product

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

# Numbers gathered at a time: they stay within a core's second-level cache, and the linear algebra library
# keeps products of this size with a vector to one thread.
_BLOCK = 1 << 17
# Arms of at most this many numbers are copied (8 MB).
_SMALL = 1 << 20


@dataclass(frozen=True, slots=True)
class Arm:
    """The rows of one arm: `features` is the whole (n, p) matrix, `rows` (m,) picks the arm's rows.

    `reference` (m,) holds the weights to stay close to, `target` (p,) the feature totals to reach.
    """

    features: NDArray[np.floating]
    rows: Rows
    reference: Vector
    target: Vector

    @property
    def size(self) -> int:
        """Number of rows of the arm."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @classmethod
    def of(cls, features: NDArray[np.floating], rows: Rows, reference: Vector, target: Vector) -> Arm:
        """Return the arm of the given rows, in increasing order, with its own copy of them if they are few."""
        if len(rows) * features.shape[1] <= _SMALL:
            features, rows = features[rows].astype(np.float64, copy=False), np.arange(len(rows))
        return cls(features, rows, reference, target)

    def scores(self, direction: Vector) -> Vector:
        """Return F @ direction over the arm's rows, shape (m,)."""
        scores = np.empty(self.size)
        for span, block in _blocks(self.features, self.rows):
            scores[span] = block @ direction
        return scores

    def totals(self, weights: Vector) -> Vector:
        """Return F' weights, the weighted feature totals of the arm, shape (p,)."""
        return weighted_totals(self.features, self.rows, weights)

    def gram(self, chosen: Rows) -> Matrix:
        """Return Z'Z over the arm's positions `chosen`, with Z = [F, -1], shape (p+1, p+1)."""
        gram = np.zeros((self.width + 1, self.width + 1))
        for _, block in _blocks(self.features, self.rows[chosen]):
            gram[:-1, :-1] += own_product(block)
            gram[-1, :-1] -= block.sum(axis=0)
        gram[:-1, -1] = gram[-1, :-1]
        gram[-1, -1] = len(chosen)
        return gram

    def border(self, chosen: Rows) -> Vector:
        """Return Z'1 over the arm's positions `chosen`, with Z = [F, -1], shape (p+1,)."""
        border = np.empty(self.width + 1)
        border[:-1] = weighted_totals(self.features, self.rows[chosen], np.ones(len(chosen)))
        border[-1] = -len(chosen)
        return border


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
