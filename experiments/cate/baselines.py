"""What ours is held against: private boosted trees, k-anonymous covariates, and the same functions without privacy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range
from counterveil.numerics.bases import Basis
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import Budget
from counterveil.published.cate_learners import FeatureBox
from counterveil.results.cate_question import default_delta
from counterveil.settings import Cate
from counterveil.statistics.moments.cate_fitting import choose_design
from experiments.cate.instances import Instance

Floats = NDArray[np.float64]

K = 10
_CLIP = 0.05
# Beside the mean squared features: keeps arms with few people solvable.
_RIDGE = 1e-6


def not_private(study: Instance) -> Floats:
    """Return effects from a regression in each arm, in the functions that ours has at epsilon 10."""
    return _by_arms(study, dict(study.table.covariates))


def k_anonymous(study: Instance) -> Floats:
    """Return the same after covariates were averaged in groups of at least K people; not differentially private."""
    covariates = {name: np.asarray(values) for name, values in study.table.covariates.items()}
    box = FeatureBox.of(study.study)
    group = _groups(box.points(covariates), K)
    sizes = np.bincount(group)
    columns = {}
    for name, domain in study.study.covariates.items():
        means = np.bincount(group, weights=covariates[name]) / sizes
        columns[name] = means[group] if isinstance(domain, Range) else np.round(means)[group]
    return _by_arms(study, columns)


def boosted(study: Instance, epsilon: float, seed: int) -> Floats:
    """Return effects of an R-learner made of DP-EBMs, each on a third of the rows with the whole budget.

    Needs the extra `interpret`. The pseudo-outcomes of the last model are clipped to what an effect can be.
    """
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    box = FeatureBox.of(study.study)
    rows = box.rows(study.table)
    count = box.columns
    shared: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": float(default_delta(len(rows))),
        "privacy_bounds": [(0.0, 1.0)] * count,
        "feature_types": ["continuous"] * count,
        "n_jobs": 1,
        "random_state": seed,
    }
    first, second, third = fold_rows(len(rows), 3)
    low, high = (float(end) for end in study.study.outcome_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **shared)
        outcome.fit(rows.x[first], rows.y[first])
        propensity = DPExplainableBoostingClassifier(**shared)
        propensity.fit(rows.x[second], rows.treated[second].astype(int))
        x = rows.x[third]
        pi = np.clip(propensity.predict_proba(x)[:, 1], _CLIP, 1 - _CLIP)
        gap = rows.treated[third] - pi
        target = np.clip((rows.y[third] - outcome.predict(x)) / gap, low - high, high - low)
        effect = DPExplainableBoostingRegressor(
            privacy_target_min=low - high, privacy_target_max=high - low, **shared
        )
        effect.fit(x, target, sample_weight=gap**2)
        return np.asarray(effect.predict(box.points(study.queries.columns)), dtype=np.float64)


def _by_arms(study: Instance, columns: dict[str, Floats]) -> Floats:
    rows = study.table.rows
    budget = Budget(10, default_delta(rows))
    basis = choose_design(study.study, rows, budget, Cate()).basis
    treated = study.table.treated
    y = float(study.study.outcome_range[0]) + float(study.table.outcome_unit) * study.table.outcome
    weights = [_regression(basis, columns, own, y) for own in (treated, ~treated)]
    return np.asarray(basis.features(study.queries.columns) @ (weights[0] - weights[1]))


def _regression(basis: Basis, columns: dict[str, Floats], own: NDArray[np.bool_], y: Floats) -> Floats:
    x = basis.features({name: np.asarray(values, dtype=np.float64)[own] for name, values in columns.items()})
    gram = x.T @ x
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    return np.asarray(np.linalg.solve(gram, x.T @ y[own]))


def _groups(x: Floats, least: int) -> NDArray[np.intp]:
    """Return a group for every row: the rows are halved at the median of their widest feature while both keep K."""
    group = np.zeros(len(x), dtype=np.intp)
    waiting, found = [np.arange(len(x))], 0
    while waiting:
        places = waiting.pop()
        if len(places) < 2 * least:
            group[places] = found
            found += 1
            continue
        own = x[places]
        widest = int(np.argmax(np.ptp(own, axis=0)))
        order = np.argpartition(own[:, widest], len(places) // 2)
        waiting += [places[order[: len(places) // 2]], places[order[len(places) // 2 :]]]
    return group
