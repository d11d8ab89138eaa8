"""Answers without privacy, to compare with: the difference in means and the doubly robust effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from counterveil.data import Table
from counterveil.data.features import feature_map

# Keeps collinear columns (labels that add up to one, labels nobody has) from stopping the fit.
_RIDGE = 1e-6
_LEAST_PROPENSITY = 0.01
_ROWS_A_FEATURE = 100


@dataclass(frozen=True)
class Plain:
    """An estimate and its standard error."""

    estimate: float
    error: float


def outcomes(table: Table) -> np.ndarray:
    """Return the outcomes, clamped to their range, in their own unit."""
    return float(table.study.outcome_range[0]) + float(table.outcome_unit) * table.outcome.astype(float)


def difference(table: Table) -> Plain:
    y = outcomes(table)
    arms = [y[table.treated], y[~table.treated]]
    variance = sum(arm.var(ddof=1) / len(arm) for arm in arms)
    return Plain(float(arms[0].mean() - arms[1].mean()), float(variance) ** 0.5)


def reference_degree(table: Table) -> int:
    """Return 2, for squares and products of covariates, where there are a hundred rows for each of them, else 1."""
    return 2 if table.rows >= _ROWS_A_FEATURE * feature_map(table.study, 2).size else 1


def doubly_robust(table: Table, degree: int = 1) -> Plain:
    """Return the augmented inverse-weighted effect: linear outcomes in each arm, a logistic propensity."""
    features = feature_map(table.study, degree).block(table.covariates, slice(0, table.rows))
    x = np.column_stack([np.ones(table.rows), features])
    t, y = table.treated.astype(float), outcomes(table)
    ridge = _RIDGE * table.rows * np.eye(x.shape[1])
    weights = np.zeros(x.shape[1])
    for _ in range(12):
        score = expit(x @ weights)
        hessian = x.T @ (x * (score * (1 - score))[:, None]) + ridge
        weights = weights + np.linalg.solve(hessian, x.T @ (t - score) - ridge @ weights)
    score = np.clip(expit(x @ weights), _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
    means = []
    for arm in (table.treated, ~table.treated):
        own = x[arm]
        means.append(x @ np.linalg.solve(own.T @ own + ridge, own.T @ y[arm]))
    psi = means[0] - means[1] + t * (y - means[0]) / score - (1 - t) * (y - means[1]) / (1 - score)
    return Plain(float(psi.mean()), float(psi.std(ddof=1)) / table.rows**0.5)
