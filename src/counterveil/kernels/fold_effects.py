"""Estimates of an average effect on the rows of one fold, in plain arrays: no privacy in here.

Each takes X (m, d) with features of order one, t (m,) of 0 and 1, and y (m,), and returns a float; they may
fail, or return nan, where a fold has too few rows of an arm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.propensity import fit_propensity, logistic_scores

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]

# Ridge penalties per row, in units of features of order one: only to keep small folds solvable.
RIDGE = 1e-2
PROPENSITY_CLIP = 0.05


@dataclass(frozen=True, slots=True)
class FoldModels:
    """Functions from X (m, d) to (m,): expected outcomes if treated and if not, and the propensity."""

    treated: Predict
    control: Predict
    propensity: Predict


def ols_effect(x: Floats, t: Floats, y: Floats) -> float:
    """Return the coefficient of treatment in a least-squares fit of y on treatment and covariates."""
    columns = np.column_stack([t, np.ones(len(x)), x])
    return float(np.linalg.lstsq(columns, y, rcond=None)[0][0])


def ridge_models(x: Floats, t: Floats, y: Floats) -> FoldModels:
    """Return penalised linear models of each arm's outcome and a penalised logistic propensity."""
    arms = [_ridge(x[t == arm], y[t == arm]) for arm in (1, 0)]
    weights = fit_propensity(x, t == 1, 1.0 / len(x)).weights
    return FoldModels(arms[0], arms[1], lambda points: logistic_scores(points, weights))


def aipw_effect(x: Floats, t: Floats, y: Floats) -> float:
    """Return the doubly robust effect with ridge outcome models and a logistic propensity."""
    return robust_effect(ridge_models(x, t, y), x, t, y)


def robust_effect(models: FoldModels, x: Floats, t: Floats, y: Floats) -> float:
    """Return the mean doubly robust score of the rows under the models."""
    first, second = models.treated(x), models.control(x)
    p = np.clip(models.propensity(x), PROPENSITY_CLIP, 1 - PROPENSITY_CLIP)
    score = first - second + t * (y - first) / p - (1 - t) * (y - second) / (1 - p)
    return float(score.mean())


def fitted_models(outcome: Any, propensity: Any, copy: Callable[[Any], Any]) -> Callable[..., FoldModels]:
    """Return a function that fits copies of estimators with `fit`, `predict` and `predict_proba` to a fold."""

    def fit(x: Floats, t: Floats, y: Floats) -> FoldModels:
        arms = [copy(outcome).fit(x[t == arm], y[t == arm]) for arm in (1, 0)]
        score = copy(propensity).fit(x, t.astype(np.int64))
        return FoldModels(
            lambda points: np.asarray(arms[0].predict(points), np.float64).reshape(len(points)),
            lambda points: np.asarray(arms[1].predict(points), np.float64).reshape(len(points)),
            lambda points: np.asarray(score.predict_proba(points), np.float64)[:, 1],
        )

    return fit


def _ridge(x: Floats, y: Floats) -> Predict:
    centre, mean = x.mean(axis=0), y.mean()
    z = x - centre
    slopes = np.linalg.solve(z.T @ z + (RIDGE * len(x) + 1e-9) * np.eye(x.shape[1]), z.T @ (y - mean))
    return lambda points: np.asarray((points - centre) @ slopes + mean)
