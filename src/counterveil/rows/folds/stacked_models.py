"""Doubly robust effects of many small folds at once, with models fitted in stacks of matrices; adds no noise.

    effect of a fold = mean of m_1(x) - m_0(x) + t (y - m_1(x)) / p(x) - (1 - t) (y - m_0(x)) / (1 - p(x)),

with m_a the ridge line of outcomes in arm a and p a penalised logistic propensity, cut to
[PROPENSITY_CLIP, 1 - PROPENSITY_CLIP], both fitted to the fold's own rows.

In: private features x of order one, treatments t in {0, 1}, outcomes y in their units, and the rows of every
fold. Out: one private effect a fold in units of y, nan where an arm has no rows.

Why it is right: the models are those of `numerics/fold_learners.py`, to rounding; stacks only save calls, as
a fold of a few dozen rows takes numpy longer to be called than to be computed. Nothing passes from one fold
of a stack to another: each has its own place in every array, every matrix is multiplied and solved by itself,
and a fold whose fit is found is left as it is while others go on. So a record moves one fold's effect, which
is what the guarantee needs (`rows/folds/fold_average.proof.md`).
`MOST_ROWS` and `_NUMBERS` steer speed alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from counterveil.numerics.arrays import Floats, Indices
from counterveil.numerics.fold_learners import PROPENSITY_CLIP, RIDGE, RIDGE_FLOOR
from counterveil.numerics.propensity import checked_tolerance

# Larger folds gain nothing from being fitted together.
MOST_ROWS = 512
# Numbers of a stack's covariates: 1 MB.
_NUMBERS = 1 << 17


def stacks(folds: list[Indices], columns: int) -> Iterator[tuple[slice, Indices]]:
    """Yield folds of equal size together: their places in the list and their rows (B, m)."""
    first = 0
    while first < len(folds):
        size = len(folds[first])
        end = first + 1
        most = max(1, _NUMBERS // max(1, size * columns))
        while end < min(len(folds), first + most) and len(folds[end]) == size:
            end += 1
        yield slice(first, end), np.stack(folds[first:end])
        first = end


def outcome_lines(x: Floats, t: Floats, y: Floats) -> Floats:
    """Return the outcome models of folds with x (B, m, d), t and y (B, m): (B, 2, d + 1).

    The treated come first, and slopes before the constant. Where an arm has no rows, its constant is nan.
    Scaled by its diagonal, what is solved has no eigenvalue below the penalty and none above the number
    of columns: it is far from singular.
    """
    lines = np.empty((len(x), 2, x.shape[2] + 1))
    for index, arm in enumerate((1.0, 0.0)):
        in_arm = (t == arm).astype(np.float64)
        count = in_arm.sum(axis=1)
        some = np.maximum(count, 1.0)
        centre = (in_arm[:, None] @ x)[:, 0] / some[:, None]
        mean = (in_arm * y).sum(axis=1) / some
        z = (x - centre[:, None]) * in_arm[:, :, None]
        products = z.transpose(0, 2, 1) @ z
        _add_diagonal(products, RIDGE * (z * z).sum(axis=1) + RIDGE_FLOOR)
        totals = z.transpose(0, 2, 1) @ (y - mean[:, None])[:, :, None]
        slopes = np.linalg.solve(products, totals)[:, :, 0]
        lines[:, index, :-1] = slopes
        lines[:, index, -1] = np.where(count > 0, mean - (centre * slopes).sum(axis=1), np.nan)
    return lines


def logit_lines(x: Floats, t: Floats) -> Floats:
    """Return the logistic models of folds with x (B, m, d) and t (B, m): slopes and constant, (B, d + 1).

    The penalty is one over the rows of a fold. Steps are those of `newton`: the whole one where the
    objective falls all the way, else the damped one, until half the tolerance is met.
    """
    rows = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2)
    turned = rows.transpose(0, 2, 1)
    folds, size, columns = rows.shape
    penalty = 1.0 / size
    enough = checked_tolerance(size, columns, arms=2, penalty=penalty, tolerance=None) / 2

    def slope(weights: Floats) -> tuple[Floats, Floats]:
        score = expit((rows @ weights[:, :, None])[:, :, 0])
        return (turned @ (score - t)[:, :, None])[:, :, 0] / size + penalty * weights, score

    weights = np.zeros((folds, columns))
    gradient, score = slope(weights)
    while (going := np.sqrt((gradient * gradient).sum(axis=1)) > enough).any():
        hessian = turned @ (rows * (score * (1.0 - score) / size)[:, :, None])
        _add_diagonal(hessian, np.full((folds, 1), penalty))
        direction = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        following = weights - direction
        next_slope = slope(following)
        short = (next_slope[0] * direction).sum(axis=1) < 0.0
        if (short & going).any():
            logit_steps = np.abs((rows @ direction[:, :, None])[:, :, 0]).max(axis=1)
            damped = np.log1p(logit_steps) / np.maximum(logit_steps, np.finfo(np.float64).tiny)
            following = np.where(short[:, None], weights - damped[:, None] * direction, following)
            next_slope = slope(following)
        weights = np.where(going[:, None], following, weights)
        gradient, score = (
            np.where(going[:, None], new, old) for new, old in zip(next_slope, (gradient, score), strict=True)
        )
    return weights


def aipw_effects(x: Floats, t: Floats, y: Floats, folds: list[Indices]) -> Floats:
    """Return the doubly robust effect of every fold (K,), nan where an arm has no rows; see `aipw_effect`."""
    effects = np.empty(len(folds))
    for positions, rows in stacks(folds, x.shape[1]):
        covariates = x[rows]
        treated = t[rows]
        outcome = y[rows]
        first, second = (
            at(covariates, line) for line in outcome_lines(covariates, treated, outcome).transpose(1, 0, 2)
        )
        p = np.clip(
            expit(at(covariates, logit_lines(covariates, treated))), PROPENSITY_CLIP, 1 - PROPENSITY_CLIP
        )
        score = (
            first - second + treated * (outcome - first) / p - (1 - treated) * (outcome - second) / (1 - p)
        )
        effects[positions] = score.mean(axis=1)
    return effects


def at(x: Floats, lines: Floats) -> Floats:
    """Return (B, m): the value of each fold's line (B, d + 1) at its own rows (B, m, d)."""
    return np.asarray((x @ lines[:, :-1, None])[:, :, 0] + lines[:, -1:])


def _add_diagonal(matrices: Floats, values: Floats) -> None:
    """Add values (B, p), or one for all (B, 1), to the diagonal of each matrix (B, p, p), in place."""
    diagonal = np.arange(matrices.shape[1])
    matrices[:, diagonal, diagonal] += values
