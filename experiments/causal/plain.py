"""Answers without privacy, to compare with: AIPW and the difference in means."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from counterveil.data import Table
from counterveil.data.features import feature_map
from experiments.every_method.plain import outcomes

_RIDGE = 1e-6
_LEAST_PROPENSITY = 0.01
Answer = tuple[float, float]  # estimate and standard error


def aipw(table: Table, estimand: str, degree: int = 1) -> Answer:
    """Return the augmented inverse-weighted effect: linear outcomes in each arm, a logistic propensity."""
    features = feature_map(table.study, degree).block(table.covariates, slice(0, table.rows))
    x = np.column_stack([np.ones(table.rows), features])
    t, y = table.treated.astype(float), outcomes(table)
    ridge = _RIDGE * table.rows * np.eye(x.shape[1])
    slopes = np.zeros(x.shape[1])
    for _ in range(12):
        score = expit(x @ slopes)
        hessian = x.T @ (x * (score * (1 - score))[:, None]) + ridge
        slopes = slopes + np.linalg.solve(hessian, x.T @ (t - score) - ridge @ slopes)
    e = np.clip(expit(x @ slopes), _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
    m1, m0 = (
        x @ np.linalg.solve(x[arm].T @ x[arm] + ridge, x[arm].T @ y[arm])
        for arm in (table.treated, ~table.treated)
    )
    share = {"ATE": 1.0, "ATT": t.mean(), "ATC": 1 - t.mean()}[estimand]
    who = {"ATE": np.ones_like(t), "ATT": t, "ATC": 1 - t}[estimand] / share
    one = {"ATE": 1 / e, "ATT": np.ones_like(t), "ATC": (1 - e) / e}[estimand] / share
    other = {"ATE": 1 / (1 - e), "ATT": e / (1 - e), "ATC": np.ones_like(t)}[estimand] / share
    score = who * (m1 - m0) + t * one * (y - m1) - (1 - t) * other * (y - m0)
    estimate = float(score.mean())
    return estimate, float((score - who * estimate).std(ddof=1)) / table.rows**0.5


def means(table: Table, _: str) -> Answer:
    """Return the difference in means."""
    y = outcomes(table)
    arms = y[table.treated], y[~table.treated]
    variance = sum(arm.var(ddof=1) / len(arm) for arm in arms)
    return float(arms[0].mean() - arms[1].mean()), float(variance) ** 0.5
