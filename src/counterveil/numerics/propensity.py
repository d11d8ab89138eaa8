"""Propensity scores by penalised logistic regression, for two arms or several.

The objective, the solver and the proof that its tolerance is always met are in `newton`. A constant
column is appended to X and penalised like the others: an intercept without penalty moves without
bound when one row changes. Rows are read in blocks (for several arms small data are copied once, with
that column), so that beside X and the scores only a fixed amount of memory is used, and time is linear
in the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.mirrored_rows import MirroredRows
from counterveil.numerics.newton import (
    LARGEST_BLOCK,
    SMALLEST_BLOCK,
    Minimum,
    checked_tolerance,
    minimise,
    warm_start,
)
from counterveil.numerics.products import Gram, Kind, gram

Matrix = NDArray[np.floating] | MirroredRows

# Numbers of a block: its products with a vector stay under the size at which linear algebra libraries start
# threads, which for matrices this thin cost more than they gain, and it stays in a core's cache.
_BLOCK = 1 << 17
# Up to this many numbers they are not started at all.
_ONE_THREAD = 400_000
# Numbers up to which the rows are copied (8 MB).
_SMALL = 1 << 20
# Rows a column from which a third of them show the curvature.
_MANY = 8
# One over the penalty, for each column, up to which single precision shows the curvature.
_SINGLE = 1 << 20


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted propensity model.

    `weights`: (d+1,) for two arms, (K-1, d+1) for K arms, the intercept last. `scores`: (n,)
    probability of treatment, or (n, K) probabilities of the arms. `gradient_norm`: of the objective at
    the weights, at most half the tolerance asked for. `steps`: steps taken on all rows.
    """

    weights: Floats
    scores: Floats
    gradient_norm: float
    steps: int


def fit_propensity(
    X: Matrix, treated: NDArray[np.bool_], penalty: float, tolerance: float | None = None
) -> Fit:
    """Return the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 and its scores.

    X is (n, d) with features of order one, `treated` (n,) of booleans. `tolerance` bounds the norm of
    the true gradient at the weights; by default 1e-9 sqrt(d+1).
    """
    _check(X, len(treated))
    tolerance = checked_tolerance(len(X), X.shape[1] + 1, 2, penalty, tolerance)
    objective = _Binary(X, np.asarray(treated, np.bool_), penalty)
    found = _two_arms(objective, tolerance)
    return Fit(found.weights, objective.scores(found.weights), found.gradient_norm, found.steps)


def fit_multinomial(
    X: NDArray[np.floating],
    arm: NDArray[np.integer],
    arms: int,
    penalty: float,
    tolerance: float | None = None,
) -> Fit:
    """Return the same for K = `arms` arms numbered 0..K-1, arm 0 being the reference with logit zero."""
    _check(X, len(arm))
    if arms < 2:
        raise _refusal("at least two arms", f"arms={arms}")
    columns = X.shape[1] + 1
    tolerance = checked_tolerance(len(X), columns, arms, penalty, tolerance)
    found = _several_arms(X, np.asarray(arm, np.intp), arms, penalty, tolerance)
    weights = found.weights.reshape(arms - 1, columns)
    return Fit(weights, multinomial_scores(X, weights), found.gradient_norm, found.steps)


def logistic_scores(X: Matrix, weights: Floats) -> Floats:
    """Return the (n,) probabilities of treatment 1/(1 + exp(-(X w + b))), weights = (w, b)."""
    scores = np.empty(len(X))
    for rows, block in _plain(X):
        scores[rows] = _probability(block, weights)
    return scores


def multinomial_scores(X: NDArray[np.floating], weights: Floats) -> Floats:
    """Return the (n, K) probabilities of the arms under (K-1, d+1) weights, arm 0 first."""
    scores = np.empty((len(X), len(weights) + 1))
    for rows, block in _Rows(X):
        scores[rows] = _softmax(block @ weights.T)[0]
    return scores


class _Binary:
    """The objective of two arms, by products in double or single precision; the constant column is not written out."""

    def __init__(
        self,
        X: Matrix,
        treated: NDArray[np.bool_],
        penalty: float,
        kind: Kind = np.float64,
    ) -> None:
        self.X, self.treated, self.penalty, self.kind = X, treated, penalty, kind
        self.indicator: NDArray[np.floating] = treated.astype(kind)
        # The weights of the last gradient and the scores there, of small data in double precision.
        self.last: tuple[Floats, Floats] | None = None

    def rough(self) -> _Binary:
        # Far below such a penalty, rounding leaves the Hessian positive.
        single = self.penalty * _SINGLE >= self.X.shape[1] + 1 and self.X.size <= _SMALL
        if not single:
            return self
        return _Binary(self.X.astype(np.float32), self.treated, self.penalty, np.float32)

    def sample(self) -> _Binary:
        return self.thinned(_sampled(self.X))

    def thinned(self, stride: int) -> _Binary:
        """Return the objective of every stride-th row."""
        rows = self.X.thinned(stride) if isinstance(self.X, MirroredRows) else self.X[::stride]
        return _Binary(rows, self.treated[::stride], self.penalty, self.kind)

    def scores(self, weights: Floats) -> Floats:
        if self.last is not None and np.array_equal(self.last[0], weights):
            return self.last[1]
        return logistic_scores(self.X, weights)

    def value(self, weights: Floats) -> float:
        loss = 0.0
        for rows, block in _plain(self.X):
            logit = block @ weights[:-1] + weights[-1]
            # log(1 + e^z) - z t is log(1 + e^-z) for the treated and log(1 + e^z) for the others.
            loss += float(np.logaddexp(0.0, np.where(self.treated[rows], -logit, logit)).sum())
        return loss / len(self.X) + self.penalty / 2 * float(weights @ weights)

    def gradient(self, weights: Floats) -> Floats:
        total = np.zeros(len(weights))
        narrow: NDArray[np.floating] = weights.astype(self.kind, copy=False)
        # What is rounded to single precision need not be added up in short blocks.
        most = _ONE_THREAD if self.kind is np.float32 else None
        kept = np.empty(len(self.X)) if most is None and self.X.size <= _SMALL else None
        self.last = None if kept is None else (weights, kept)
        for rows, block in _plain(self.X, self.kind, most):
            residual = _probability(block, narrow)
            if kept is not None:
                kept[rows] = residual
            residual -= self.indicator[rows]
            total[:-1] += residual @ block
            total[-1] += np.add.reduce(residual)
        return total / len(self.X) + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        inner = Gram(len(weights), self.kind)
        narrow: NDArray[np.floating] = weights.astype(self.kind, copy=False)
        for _, block in _plain(self.X, self.kind):
            probability = _probability(block, narrow)
            root = np.sqrt(probability * (1 - probability))
            scaled = np.empty((len(block), len(weights)), self.kind)
            np.multiply(block, root[:, None], out=scaled[:, :-1])
            scaled[:, -1] = root
            inner.add(scaled)
        return _penalised(inner.whole() / len(self.X), self.penalty)

    def logit_range(self, direction: Floats) -> float:
        slopes, constant = direction[:-1], direction[-1]
        return max(float(np.abs(block @ slopes + constant).max()) for _, block in _plain(self.X))


def _sampled(X: Matrix) -> int:
    """Return the stride at which rows show the curvature roughly: one where they are few for the columns."""
    return 3 if len(X) >= _MANY * X.shape[1] else 1


def _penalised(hessian: Floats, penalty: float) -> Floats:
    """Return the Hessian of the mean loss with that of the penalty added to it, in place."""
    hessian.reshape(-1)[:: len(hessian) + 1] += penalty
    return hessian


def _probability(block: NDArray[np.floating], weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probabilities of treatment of a block's rows."""
    if not weights.any():
        return np.full(len(block), 0.5, weights.dtype)
    logit = block @ weights[:-1]
    logit += weights[-1]
    return np.asarray(expit(logit, out=logit))


class _Multinomial:
    """The objective of several arms; weights are flattened, one arm after the other."""

    def __init__(self, X: NDArray[np.floating], arm: NDArray[np.intp], arms: int, penalty: float) -> None:
        self.rows, self.arm, self.free, self.penalty = _Rows(X), arm, arms - 1, penalty

    def value(self, weights: Floats) -> float:
        loss, by_arm = 0.0, weights.reshape(self.free, -1)
        for rows, block in self.rows:
            _, log_total, logit = _softmax(block @ by_arm.T)
            loss += float((log_total - logit[np.arange(len(block)), self.arm[rows]]).sum())
        return loss / len(self.rows.X) + self.penalty / 2 * float(weights @ weights)

    def gradient(self, weights: Floats) -> Floats:
        by_arm = weights.reshape(self.free, -1)
        total = np.zeros_like(by_arm)
        for rows, block in self.rows:
            probability, _, _ = _softmax(block @ by_arm.T)
            total += self._residual(probability, rows).T @ block
        return total.ravel() / len(self.rows.X) + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        by_arm = weights.reshape(self.free, -1)
        hessian = np.zeros(by_arm.shape + by_arm.shape)
        for _, block in self.rows:
            _add_curvature(hessian, _softmax(block @ by_arm.T)[0][:, 1:], block)
        return _penalised(hessian.reshape(len(weights), -1) / len(self.rows.X), self.penalty)

    def rough(self) -> _Multinomial:
        return self

    def sample(self) -> _Multinomial:
        stride = _sampled(self.rows.X)
        return _Multinomial(self.rows.X[::stride], self.arm[::stride], self.free + 1, self.penalty)

    def _residual(self, probability: Floats, rows: slice) -> Floats:
        """Return probability minus indicator for the arms other than the reference."""
        inside: Floats = probability[:, 1:] - (self.arm[rows, None] == np.arange(1, self.free + 1))
        return inside

    def logit_range(self, direction: Floats) -> float:
        by_arm = direction.reshape(self.free, -1)
        largest = 0.0
        for _, block in self.rows:
            logit = block @ by_arm.T
            # The reference arm's logit is zero and counts in the range.
            span = np.maximum(logit.max(axis=1), 0.0) - np.minimum(logit.min(axis=1), 0.0)
            largest = max(largest, float(span.max()))
        return largest


def _add_curvature(hessian: Floats, probability: Floats, block: Floats) -> None:
    """Add one block's sums of p_k (1[k=l] - p_l) x x', each as a matrix times its own transpose."""
    for k in range(len(hessian)):
        for other in range(k + 1):
            own = 1.0 - probability[:, k] if other == k else probability[:, other]
            scaled = block * np.sqrt(probability[:, k] * own)[:, None]
            part = gram(scaled) if other == k else -gram(scaled)
            hessian[k, :, other, :] += part
            if other < k:
                hessian[other, :, k, :] += part


def _two_arms(objective: _Binary, tolerance: float) -> Minimum:
    rows, columns = objective.X.shape
    start = warm_start(
        rows,
        lambda stride: _two_arms(objective.thinned(stride), tolerance).weights,
        np.zeros(columns + 1),
    )
    return minimise(objective, start, math.log(2), tolerance)


def _several_arms(
    X: NDArray[np.floating], arm: NDArray[np.intp], arms: int, penalty: float, tolerance: float
) -> Minimum:
    start = warm_start(
        len(X),
        lambda stride: _several_arms(X[::stride], arm[::stride], arms, penalty, tolerance).weights,
        np.zeros((arms - 1) * (X.shape[1] + 1)),
    )
    return minimise(_Multinomial(X, arm, arms, penalty), start, math.log(arms), tolerance)


@overload
def _plain(X: Matrix) -> Iterator[tuple[slice, Floats]]: ...
@overload
def _plain(
    X: Matrix, kind: Kind, most: int | None = None
) -> Iterator[tuple[slice, NDArray[np.floating]]]: ...
def _plain(
    X: Matrix, kind: Kind = np.float64, most: int | None = None
) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """Yield the rows of X in blocks, of at most `most` numbers if given: (rows, block), the block to be read only."""
    size = _block_size(X) if most is None else max(most // max(int(X.shape[1]), 1), 1)
    for first in range(0, len(X), size):
        here = slice(first, min(first + size, len(X)))
        yield here, X[here].astype(kind, copy=False)


def _block_size(X: Matrix) -> int:
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, _BLOCK // max(int(X.shape[1]), 1)))


class _Rows:
    """The rows of X with a constant column, in blocks: (rows, block), the block to be read only."""

    def __init__(self, X: NDArray[np.floating]) -> None:
        self.X = X
        self.size = _block_size(X)
        self.whole = _with_constant(X, np.empty((len(X), X.shape[1] + 1))) if X.size <= _SMALL else None

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        n = len(self.X)
        buffer = np.empty((min(self.size, n), self.X.shape[1] + 1)) if self.whole is None else None
        for first in range(0, n, self.size):
            here = slice(first, min(first + self.size, n))
            if buffer is None:
                assert self.whole is not None
                yield here, self.whole[here]
            else:
                # Overwritten by the next block.
                yield here, _with_constant(self.X[here], buffer[: here.stop - first])


def _with_constant(X: NDArray[np.floating], out: Floats) -> Floats:
    out[:, :-1] = X
    out[:, -1] = 1.0
    return out


def _softmax(logit: Floats) -> tuple[Floats, Floats, Floats]:
    """Return all arms' probabilities, the log of the sum of exponentials, and all arms' logits."""
    full = np.concatenate([np.zeros((len(logit), 1)), logit], axis=1)
    top = full.max(axis=1, keepdims=True)
    exponential = np.exp(full - top)
    total = exponential.sum(axis=1, keepdims=True)
    return exponential / total, (top + np.log(total))[:, 0], full


def _check(X: Matrix, rows: int) -> None:
    if X.ndim != 2 or len(X) != rows or rows == 0:
        raise _refusal("a matrix of covariates with one row for each unit", f"shape {X.shape}, {rows} units")


def _refusal(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P302", expected=expected, got=got)
