"""Logistic regression on columns of single precision, for a score that need not be exact.

The objective is that of `propensity`: (1/n) sum log-loss + (penalty/2)|w|^2, a constant included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import Floats, locked
from counterveil.numerics.newton import approach, warm_start

Lines = NDArray[np.float32]

# Rows that are multiplied together: with a hundred columns or so they stay in a core's cache.
_TOGETHER = 1024


class ColumnLogistic:
    """The objective for columns (d, n) and the arms (n,), with values in [-1, 1]."""

    def __init__(self, columns: Lines, treated: NDArray[np.bool_], penalty: float) -> None:
        # Loops know arrays that may be written to and others as different things: one of both.
        self.columns, self.treated, self.penalty = locked(columns), locked(treated), penalty
        self.rows = len(treated)
        # The weights of the last gradient, and the probabilities there.
        self.last: tuple[Floats, Lines] | None = None

    def chances(self, weights: Floats) -> Lines:
        """Return the (n,) probabilities of treatment."""
        if self.last is None or not np.array_equal(self.last[0], weights):
            self.gradient(weights)
        assert self.last is not None  # the gradient leaves it
        return self.last[1]

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient (d+1,)."""
        from counterveil.numerics.loops import add_gradient

        total, chance, narrow = (
            np.zeros(len(weights)),
            np.empty(self.rows, np.float32),
            weights.astype(np.float32),
        )
        add_gradient(self.columns, self.treated, narrow, chance, total)
        self.last = (weights, chance)
        return total / self.rows + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian (d+1, d+1)."""
        chance, width = self.chances(weights), len(self.columns)
        curvature = chance * (1.0 - chance)
        hessian = np.empty((width + 1, width + 1))
        if weights[:-1].any():
            hessian[:-1, :-1] = weighted_products(self.columns, curvature)
        else:
            products = column_products.products(self.columns, 0, len(chance), np.float32)
            hessian[:-1, :-1] = float(curvature[0]) * products
        hessian[-1, :-1] = hessian[:-1, -1] = column_products.totals(self.columns, 0, len(chance), curvature)
        hessian[-1, -1] = curvature.sum()
        hessian /= len(chance)
        hessian[np.diag_indices(width + 1)] += self.penalty
        return hessian

    def rough(self) -> ColumnLogistic:
        """Return the objective itself: it is rough."""
        return self

    def sample(self) -> ColumnLogistic:
        """Return the objective itself: a third of the rows costs as much in further steps."""
        return self

    def thinned(self, stride: int) -> ColumnLogistic:
        """Return the objective of every stride-th row."""
        columns, treated = np.ascontiguousarray(self.columns[:, ::stride]), self.treated[::stride].copy()
        return ColumnLogistic(columns, treated, self.penalty)


def chances(columns: Lines, treated: NDArray[np.bool_], penalty: float, tolerance: float) -> Lines:
    """Return the (n,) probabilities of treatment, fitted to a gradient of that norm, or as near as a quick approach."""
    objective = ColumnLogistic(columns, treated, penalty)
    return objective.chances(_weights(objective, tolerance))


def _weights(objective: ColumnLogistic, tolerance: float) -> Floats:
    # Without slopes the best constant is about the logit of the share treated.
    rows, treated = len(objective.treated), np.count_nonzero(objective.treated)
    level = np.append(np.zeros(len(objective.columns)), logit((treated + 0.5) / (rows + 1)))
    start = warm_start(rows, lambda stride: _weights(objective.thinned(stride), tolerance), level)
    return approach(objective, start, tolerance).weights


def weighted_products(columns: Lines, weights: NDArray[np.floating]) -> Floats:
    """Return the sum over rows of their weight (n,) times their products with themselves, (d, d)."""
    width, roots = len(columns), np.sqrt(weights).astype(np.float32, copy=False)
    total = np.zeros((width + column_products.BUFFER, width + column_products.BUFFER))
    buffer = np.empty((width, min(_TOGETHER, len(weights))), np.float32)
    for rows in spans(len(weights)):
        block = buffer[:, : rows.stop - rows.start]
        np.multiply(columns[:, rows], roots[rows], out=block)
        column_products.add_products(total, np.ascontiguousarray(block), 0, block.shape[1])
    whole = np.tril(total[:width, :width])
    return whole + np.tril(whole, -1).T


def spans(rows: int) -> Iterator[slice]:
    """Yield the rows that are multiplied together."""
    return (slice(start, min(start + _TOGETHER, rows)) for start in range(0, rows, _TOGETHER))
