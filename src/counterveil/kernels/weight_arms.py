"""One arm of a weighting problem: its rows of the feature matrix, read in blocks.

The arm never copies the feature matrix: a block of rows is gathered, used and dropped, so memory
beyond the matrix itself is a few vectors of the arm's length. Features may be kept in float32;
every product is taken in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

# Rows gathered at a time: a block of 30 columns stays within a core's second-level cache.
_BLOCK = 4096
# Multiplications of a product below which the linear algebra library keeps to one thread. Larger ones of
# our shape are not faster on two, and much slower when another process holds the second core.
_ONE_THREAD = 1 << 18
_FEWEST_ROWS = 32


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
            gram[:-1, :-1] += _product(block)
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
    for start in range(0, len(rows), _BLOCK):
        span = slice(start, start + _BLOCK)
        yield span, np.take(features, rows[span], axis=0).astype(np.float64, copy=False)


def _product(block: Matrix) -> Matrix:
    """Return block' block as a sum of products each small enough for one thread."""
    width = block.shape[1]
    rows = min(_ONE_THREAD // max(width, 1) ** 2, _BLOCK)
    if rows < _FEWEST_ROWS:
        return np.asarray(block.T @ block)
    whole = len(block) // rows * rows
    parts = block[:whole].reshape(-1, rows, width)
    rest = block[whole:]
    return np.asarray(np.matmul(parts.transpose(0, 2, 1), parts).sum(axis=0) + rest.T @ rest)
