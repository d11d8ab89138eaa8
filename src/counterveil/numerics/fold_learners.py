"""Estimates of an average effect on the rows of one fold, in plain arrays: no privacy in here.

Each takes X (m, d) with features of order one, t (m,) of 0 and 1, and y (m,), and returns a float in units of y:
the difference of two ridge lines,

    mean over rows of m_1(x) - m_0(x),

or with it the mean of weighted residuals of both arms (the doubly robust score). They may fail, or return nan, where
a fold has too few rows of an arm. The guarantee of sample and aggregate holds for any such function: what bounds its
answer is `rows/folds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.propensity import fit_propensity, logistic_scores

Predict = Callable[[Floats], Floats]

# Ridge penalty in parts of a feature's own squares: what it shrinks of slopes is confounding that stays.
RIDGE = 1e-5
# And so much more, lest a feature that is constant in a fold make the equations singular.
RIDGE_FLOOR = 1e-9
# Propensities are kept this far from 0 and 1.
PROPENSITY_CLIP = 0.05


@dataclass(frozen=True, slots=True)
class FoldNuisances:
    """Functions from X (m, d) to (m,): expected outcomes if treated and if not, and the propensity."""

    treated: Predict
    control: Predict
    propensity: Predict


def ols_effect(x: Floats, t: Floats, y: Floats) -> float:
    """Return the mean over rows of the line fitted to the treated less that fitted to the others.

    With one slope for both arms, people would count by how even their chances of treatment were (Lin 2013).
    """
    treated, control = (_ridge(x[t == arm], y[t == arm]) for arm in (1, 0))
    return float((treated(x) - control(x)).mean())


def ridge_models(x: Floats, t: Floats, y: Floats) -> FoldNuisances:
    """Return penalised linear models of each arm's outcome and a penalised logistic propensity."""
    arms = [_ridge(x[t == arm], y[t == arm]) for arm in (1, 0)]
    weights = fit_propensity(x, t == 1, 1.0 / len(x)).weights
    return FoldNuisances(arms[0], arms[1], lambda points: logistic_scores(points, weights))


def aipw_effect(x: Floats, t: Floats, y: Floats) -> float:
    """Return the doubly robust effect with ridge outcome models and a logistic propensity."""
    return robust_effect(ridge_models(x, t, y), x, t, y)


def robust_effect(models: FoldNuisances, x: Floats, t: Floats, y: Floats) -> float:
    """Return the mean doubly robust score of the rows under the models."""
    treated = models.treated(x)
    control = models.control(x)
    p = np.clip(models.propensity(x), PROPENSITY_CLIP, 1 - PROPENSITY_CLIP)
    score = treated - control + t * (y - treated) / p - (1 - t) * (y - control) / (1 - p)
    return float(score.mean())


def fitted_models(outcome: Any, propensity: Any, copy: Callable[[Any], Any]) -> Callable[..., FoldNuisances]:
    """Return a function that fits copies of estimators with `fit`, `predict` and `predict_proba` to a fold."""

    def fit(x: Floats, t: Floats, y: Floats) -> FoldNuisances:
        arms = [copy(outcome).fit(x[t == arm], y[t == arm]) for arm in (1, 0)]
        score = copy(propensity).fit(x, t.astype(np.int64))
        return FoldNuisances(
            lambda points: np.asarray(arms[0].predict(points), np.float64).reshape(len(points)),
            lambda points: np.asarray(arms[1].predict(points), np.float64).reshape(len(points)),
            lambda points: np.asarray(score.predict_proba(points), np.float64)[:, 1],
        )

    return fit


def _ridge(x: Floats, y: Floats) -> Predict:
    centre = x.mean(axis=0)
    mean = y.mean()
    z = x - centre
    penalty = np.diag(RIDGE * (z * z).sum(axis=0) + RIDGE_FLOOR)
    slopes = np.linalg.solve(z.T @ z + penalty, z.T @ (y - mean))
    return lambda points: np.asarray((points - centre) @ slopes + mean)
