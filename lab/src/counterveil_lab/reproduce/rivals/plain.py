"""Effects without privacy: what rivals aim at, and what is estimated on synthetic or k-anonymous records (Mondrian)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from counterveil_lab.reproduce.rivals.encoding import Codes, Floats, features
from counterveil_lab.reproduce.rivals.protocol import Answer, Budget, Records

NORMAL = 1.959963984540054
# Beside the mean of the squared features: keeps collinear columns and small arms solvable.
RIDGE = 1e-6
LEAST_SCORE = 0.05
_NEWTON_STEPS = 25


def design(records: Records) -> Floats:
    """Return a constant and the features."""
    return np.column_stack([np.ones(records.rows), features(records)])


def zero(_: Records, __: Budget, ___: int) -> Answer:
    """Return no effect, which needs no data."""
    return Answer(0.0)


def difference(records: Records, _: Budget, __: int) -> Answer:
    """Return the difference in means with its normal interval."""
    arms = records.outcomes[records.treated], records.outcomes[~records.treated]
    error = float(sum(arm.var(ddof=1) / len(arm) for arm in arms)) ** 0.5
    return around(float(arms[0].mean() - arms[1].mean()), error)


def around(value: float, error: float) -> Answer:
    """Return a value with the normal interval of its standard error."""
    return Answer(value, value - NORMAL * error, value + NORMAL * error)


def ols(records: Records, _: Budget, __: int) -> Answer:
    """Return the treatment's coefficient of a linear regression, with a robust (HC1) interval."""
    z, y = np.column_stack([records.treated.astype(np.float64), design(records)]), records.outcomes
    inverse = np.linalg.inv(_ridged(z.T @ z, records.rows))
    left = y - z @ (inverse @ (z.T @ y))
    influence = z @ inverse[0] * left
    scale = records.rows / max(1, records.rows - z.shape[1])
    return around(float(inverse[0] @ (z.T @ y)), float(np.sqrt(scale * (influence**2).sum())))


def _ridged(gram: Floats, rows: int) -> Floats:
    return gram + RIDGE * rows * np.eye(len(gram))


def regressed(x: Floats, y: Floats) -> Floats:
    """Return the coefficients of a linear regression."""
    return np.asarray(np.linalg.solve(_ridged(x.T @ x, max(1, len(y))), x.T @ y))


def scores(x: Floats, treated: Floats) -> Floats:
    """Return propensity scores of a logistic regression, clipped."""
    slopes, ridge = np.zeros(x.shape[1]), RIDGE * len(x) * np.eye(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        found = expit(x @ slopes)
        hessian = x.T @ (x * (found * (1 - found))[:, None]) + ridge
        slopes = slopes + np.linalg.solve(hessian, x.T @ (treated - found) - ridge @ slopes)
    return np.asarray(np.clip(expit(x @ slopes), LEAST_SCORE, 1 - LEAST_SCORE))


def aipw(records: Records, _: Budget, __: int) -> Answer:
    """Return the augmented inverse-weighted effect: a line in each arm and a logistic score."""
    x, t, y = design(records), records.treated.astype(np.float64), records.outcomes
    e = scores(x, t)
    m1, m0 = (x @ regressed(x[own], y[own]) for own in (records.treated, ~records.treated))
    score = m1 - m0 + t * (y - m1) / e - (1 - t) * (y - m0) / (1 - e)
    return around(float(score.mean()), float(score.std(ddof=1)) / records.rows**0.5)


def by_arms(records: Records) -> float:
    """Return the mean difference of a line in each arm; an arm that is empty counts as the middle of the range."""
    x, y = design(records), records.outcomes
    middle = sum(records.outcome_range) / 2
    found = []
    for own in (records.treated, ~records.treated):
        fitted = x @ regressed(x[own], y[own] - middle)
        found.append(middle + np.clip(fitted, -records.width / 2, records.width / 2))
    return float((found[0] - found[1]).mean())


K = 10


def groups(x: Floats, least: int) -> Codes:
    """Return a group for every row: rows are halved at the median of their widest column while both halves keep K."""
    group = np.zeros(len(x), dtype=np.int64)
    waiting, found = [np.arange(len(x))], 0
    while waiting:
        places = waiting.pop()
        halves = _halves(x[places], least)
        if halves is None:
            group[places] = found
            found += 1
        else:
            waiting += [places[halves], places[~halves]]
    return group


def _halves(x: Floats, least: int) -> np.ndarray | None:
    """Return who is below the median of the widest column that can be cut, None if none can be."""
    if len(x) < 2 * least:
        return None
    for column in np.argsort(-np.ptp(x, axis=0), kind="stable"):
        below = x[:, column] < np.median(x[:, column])
        if least <= below.sum() <= len(x) - least:
            return np.asarray(below)
    return None


def k_anonymous(records: Records, _: Budget, __: int) -> Answer:
    """Return the effect after covariates were replaced by their group's mean."""
    if not records.x.shape[1]:
        return Answer(by_arms(records))
    group = groups(features(records), K)
    sizes = np.bincount(group)
    means = [np.bincount(group, weights=column) / sizes for column in records.x.T]
    general = np.column_stack([mean[group] for mean in means])
    # Means of labels are no labels: they are measurements now.
    return Answer(by_arms(replace(records, x=general, values=None)))
