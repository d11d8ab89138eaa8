"""Penalised logistic regression of treatment on public covariates, reading columns a block of rows at a time.

For columns x (d, n) with values in [-1, 1] and arms t (n,) the objective is

    mean over rows of log(1 + exp(m_i)) - t_i m_i, plus (penalty / 2) |b|^2,    m_i = b . (x_i, 1),

the logistic likelihood with a ridge, with gradient and Hessian; weights b (d+1,) have the constant last. It
is strictly convex for a positive penalty, so that the weights are unique, and Newton's steps find them. Most
of the way to the least goes in single precision, which costs no accuracy where the last steps are taken in
double precision.

In: public columns and arms. Out: weights, and probabilities of treatment (propensity scores). No outcome is
read and nothing is released: where outcomes alone are private this costs no privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Kind
from counterveil.numerics.propensity import approach, warm_start

FeatureRows = NDArray[np.float32]
# How far single precision goes: the gradient's tolerance there.
_ROUGH = 5e-5


class ColumnLogistic:
    """The objective for columns (d, n) and the arms (n,), with values in [-1, 1]; gradients are found in `kind`."""

    def __init__(
        self, columns: FeatureRows, treated: NDArray[np.bool_], penalty: float, kind: Kind = np.float64
    ) -> None:
        self.columns = columns
        self.treated = treated
        self.penalty = penalty
        self.kind = kind
        # The weights of the last gradient, and the probabilities there.
        self.last: tuple[Floats, NDArray[np.floating]] | None = None

    def chances(self, weights: Floats) -> NDArray[np.floating]:
        """Return the (n,) probabilities of treatment."""
        if self.last is None or not np.array_equal(self.last[0], weights):
            self.gradient(weights)
        assert self.last is not None  # the gradient leaves it
        return self.last[1]

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient (d+1,)."""
        rows = len(self.treated)
        total = np.zeros(len(weights))
        rounded: NDArray[np.floating] = weights.astype(self.kind)
        chance: NDArray[np.floating] = np.empty(rows, self.kind)
        for span, block in column_products.blocks(self.columns, 0, rows, self.kind):
            expit(rounded[:-1] @ block + rounded[-1], out=chance[span])
            residual = chance[span] - self.treated[span]
            total[:-1] += block @ residual
            total[-1] += residual.sum()
        self.last = (weights, chance)
        return total / rows + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian (d+1, d+1)."""
        chance = self.chances(weights)
        width = len(self.columns)
        curvature = chance * (1.0 - chance)
        hessian = np.empty((width + 1, width + 1))
        if weights[:-1].any():
            hessian[:-1, :-1] = weighted_products(self.columns, curvature, np.float32)
        else:
            products = column_products.products(self.columns, 0, len(chance), np.float32)
            hessian[:-1, :-1] = float(curvature[0]) * products
        hessian[-1, :-1] = hessian[:-1, -1] = column_products.totals(self.columns, 0, len(chance), curvature)
        hessian[-1, -1] = curvature.sum()
        hessian /= len(chance)
        hessian[np.diag_indices(width + 1)] += self.penalty
        return hessian

    def rough(self) -> ColumnLogistic:
        """Return the objective itself: `chances` goes most of the way in single precision."""
        return self

    def sample(self) -> ColumnLogistic:
        """Return the objective itself: a third of the rows costs as much in further steps."""
        return self

    def thinned(self, stride: int) -> ColumnLogistic:
        """Return the objective of every stride-th row."""
        columns = np.ascontiguousarray(self.columns[:, ::stride])
        treated = self.treated[::stride].copy()
        return ColumnLogistic(columns, treated, self.penalty, self.kind)


def single_precision_weights(objective: ColumnLogistic) -> Floats:
    """Return the weights as far as single precision shows them."""
    # Without slopes the best constant is about the logit of the share treated.
    rows = len(objective.treated)
    treated = np.count_nonzero(objective.treated)
    constant_only = np.append(np.zeros(len(objective.columns)), logit((treated + 0.5) / (rows + 1)))
    start = warm_start(
        rows, lambda stride: single_precision_weights(objective.thinned(stride)), constant_only
    )
    return approach(objective, start, _ROUGH).weights


def weighted_products(columns: FeatureRows, weights: NDArray[np.floating], kind: Kind = np.float64) -> Floats:
    """Return the sum over rows of their weight (n,) times their products with themselves, (d, d)."""
    total = np.zeros((len(columns), len(columns)))
    roots = np.sqrt(weights).astype(kind, copy=False)
    for rows, block in column_products.blocks(columns, 0, len(weights), columns.dtype):
        scaled = block * roots[rows]
        total += scaled @ scaled.T
    return total
