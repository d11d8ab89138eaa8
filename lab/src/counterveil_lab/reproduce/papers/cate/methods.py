"""Every method of the paper's figures by its name, and the cells of the figures with their rows and tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from counterveil.errors import ParameterError
from counterveil.estimators.moments.learner_design import choose_design
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import Budget, Number
from counterveil.published.cate import FeatureBox
from counterveil.questions.ate import ate
from counterveil.questions.cate import cate
from counterveil.results.functions import CateAnswers, default_delta
from counterveil.session import SeededNoise
from counterveil.settings import Cate, DoublyRobust
from counterveil_lab.reproduce.page import Cell, Row
from counterveil_lab.reproduce.papers.cate.studies import (
    FINITE,
    HEMATOCRIT,
    KERNEL,
    MIMIC,
    MIMIC_FILES,
    TCGA,
    TCGA_FILES,
    Fit,
    Instance,
    anonymised,
    distance,
    finite_effects,
    is_there,
    published_fit,
    study_of,
)
from counterveil_lab.reproduce.rivals.ours import KAPPA
from counterveil_lab.reproduce.rivals.simple import K

_CLIP = 0.05
# Beside the mean squared features: keeps arms with few people solvable.
_RIDGE = 1e-6


def our_answers(
    study: Instance,
    epsilon: float,
    seed: int,
    *,
    protects: str = "record",
    method: str = "auto",
    delta: Number | None = None,
) -> Floats:
    """Return the effects that a proved method gives at the queries."""
    found = cate(
        study.table,
        study.study,
        protects=protects,
        epsilon=epsilon,
        delta=default_delta(study.table.rows) if delta is None else delta,
        method=method,
        queries=list(study.queries.rows),
        noise=SeededNoise(seed),
    )
    assert isinstance(found, CateAnswers)  # queries were given
    return np.asarray(found.effect())


def constant_answers(study: Instance, epsilon: float, seed: int, delta: Number | None = None) -> Floats:
    """Return the private average effect for everybody."""
    result = ate(
        study.table,
        study.study,
        protects="record",
        epsilon=epsilon,
        delta=default_delta(study.table.rows) if delta is None else delta,
        method="doubly_robust",
        # Where adjusting is not affordable, arms are compared as they are.
        settings=DoublyRobust(kappa=KAPPA),
        noise=SeededNoise(seed),
    )
    return np.full(len(study.queries), result.estimate)


def difference_answers(study: Instance, epsilon: float, seed: int) -> Floats:
    """Return the private difference of the arms' means for everybody: records are private, nothing is adjusted."""
    alone = study.study._changed(covariates={}, missing={}, randomised=True)
    frame = {study.study.treatment: study.table.treated.astype(np.int64), study.study.outcome: study.outcomes}
    result = ate(frame, alone, protects="record", epsilon=epsilon, method="trial", noise=SeededNoise(seed))
    return np.full(len(study.queries), result.estimate)


def not_private(study: Instance) -> Floats:
    """Return effects from a regression in each arm, in the functions that ours has at epsilon 10."""
    rows, treated, y = study.table.rows, study.table.treated, study.outcomes
    basis = choose_design(study.study, rows, Budget(10, default_delta(rows)), Cate()).basis
    columns = {name: np.asarray(values) for name, values in study.table.covariates.items()}
    weights = [_regression(basis, columns, own, y) for own in (treated, ~treated)]
    return np.asarray(basis.features(study.queries.columns) @ (weights[0] - weights[1]))


def _regression(basis: Basis, columns: dict[str, Floats], own: NDArray[np.bool_], y: Floats) -> Floats:
    x = basis.features({name: np.asarray(values, dtype=np.float64)[own] for name, values in columns.items()})
    gram = x.T @ x
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    return np.asarray(np.linalg.solve(gram, x.T @ y[own]))


def has_boosted_trees() -> bool:
    """Return whether the extra `interpret` is installed."""
    return find_spec("interpret") is not None


def boosted(study: Instance, epsilon: float, seed: int, delta: Number | None = None) -> Floats:
    """Return effects of an R-learner made of DP-EBMs, each on a third of the rows with the whole budget.

    Needs the extra `interpret`. The pseudo-outcomes of the last model are clipped to what an effect can be.
    """
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    box = FeatureBox.of(study.study)
    rows, count = box.rows(study.table), box.columns
    shared: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": float(default_delta(study.table.rows) if delta is None else delta),
        "privacy_bounds": [(0.0, 1.0)] * count,
        "feature_types": ["continuous"] * count,
        "n_jobs": 1,
        "random_state": seed,
    }
    first, second, third = fold_rows(study.table.rows, 3)
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


DELTA = "1e-5"
FOREST, NETWORK, LINEAR = FINITE
LITERAL, ALPHA = KERNEL
OURS, OURS_OUTCOME = "ours, record", "ours, outcome"
CONSTANT, DIFFERENCE, ZERO, WITHOUT = "constant effect", "difference in means", "zero", "without privacy"
BOOSTED = "DP-EBM"
# Learners of the paper, without noise, after k-anonymisation of the covariates.
ANONYMOUS = {"k-anonymous forest": FOREST, "k-anonymous network": NETWORK}
# Ours has no form without noise; at this epsilon what is left is sampling error and bias.
HARDLY_NOISY = 1000.0


@dataclass(frozen=True, eq=False)
class Answered:
    """What a method answers without noise, or with hardly any (NaN where it has no such form), and at each epsilon."""

    without: Floats
    answers: dict[float, Floats]


def answered(study: str, method: str, learner: str, seed: int, epsilons: Sequence[float]) -> Answered:
    """Return the answers of a method on a study of the paper; both are drawn from the seed."""
    people = study_of(study, seed)
    if method in FINITE or method in KERNEL:
        fit = _fit(study, method, learner, seed)
        return Answered(fit.effects, {epsilon: fit.answers(epsilon) for epsilon in epsilons})
    free = _without_noise(people, method, seed)
    if method in ANONYMOUS or method in (ZERO, WITHOUT):
        return Answered(free, dict.fromkeys(epsilons, free))
    return Answered(free, {epsilon: _private(people, method, epsilon, seed) for epsilon in epsilons})


@lru_cache(maxsize=64)
def _fit(study: str, method: str, learner: str, seed: int) -> Fit:
    """Return the fit of a published form, which several figures show."""
    return published_fit(study_of(study, seed), method, seed, DELTA, learner)


def _without_noise(people: Instance, method: str, seed: int) -> Floats:
    count = len(people.queries)
    if method in ANONYMOUS:
        return finite_effects(anonymised(people, K), ANONYMOUS[method])
    if method == ZERO:
        return np.zeros(count)
    if method == DIFFERENCE:
        treated, y = people.table.treated, people.outcomes
        return np.full(count, y[treated].mean() - y[~treated].mean())
    if method == BOOSTED:
        return np.full(count, np.nan)
    return not_private(people) if method == WITHOUT else _private(people, method, HARDLY_NOISY, seed)


def _private(people: Instance, method: str, epsilon: float, seed: int) -> Floats:
    """Return the private answers, not numbers where the method refuses so few rows for the budget."""
    try:
        return _asked(people, method, epsilon, seed)
    except ParameterError:
        return np.full(len(people.queries), np.nan)


def _asked(people: Instance, method: str, epsilon: float, seed: int) -> Floats:
    if method == CONSTANT:
        return constant_answers(people, epsilon, seed, DELTA)
    if method == DIFFERENCE:
        return difference_answers(people, epsilon, seed)
    if method == BOOSTED:
        return boosted(people, epsilon, seed, float(DELTA))
    protects = "record" if method == OURS else "outcome"
    return our_answers(people, epsilon, seed, protects=protects, delta=DELTA)


# Settings of ours were chosen on seeds below 100.
FIRST_SEED = 1000
STUDIES, QUICK_STUDIES = 3, 1
SHOWN = (0.1, 1.0, 10.0)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
SMALL = (0.1, 0.12, 0.14, 0.16, 0.18, 0.2)
_BINS = 12
_FILES = {MIMIC: MIMIC_FILES, TCGA: TCGA_FILES}
_TAILS = (0.1, 0.9)


def cells_of(study: str, methods: Sequence[str], learner: str = "R") -> Callable[[bool], list[Cell]]:
    """Return what lists the cells of a figure: none where a file or an extra that they need is missing."""

    def cells(quick: bool) -> list[Cell]:
        if study in _FILES and not is_there(_FILES[study]):
            return []
        known = [method for method in methods if method != BOOSTED or has_boosted_trees()]
        seeds = range(FIRST_SEED, FIRST_SEED + (QUICK_STUDIES if quick else STUDIES))
        return [
            {"study": study, "learner": learner, "seed": seed, "method": method}
            for seed in seeds
            for method in known
        ]

    return cells


def predictions(cell: Cell) -> list[Row]:
    """Return a method's predictions in bins of equally many queries, sorted by the covariate that is shown."""
    study, method, learner, seed = _named(cell)
    people = study_of(study, seed)
    found = answered(study, method, learner, seed, SHOWN)
    place = _covariate(people, study)
    bins = np.array_split(np.argsort(place, kind="stable"), min(_BINS, len(place)))
    return [
        {"epsilon": epsilon, "bin": number, "x": float(place[own].mean())}
        | _in_bin(own, people.truth, found.without, answers)
        for epsilon, answers in found.answers.items()
        for number, own in enumerate(bins)
    ]


def _in_bin(own: NDArray[np.intp], truth: Floats, without: Floats, answers: Floats) -> dict[str, float]:
    low, high = np.quantile(answers[own], _TAILS)
    return {
        "truth": float(truth[own].mean()),
        "fitted": float(without[own].mean()),
        "low": float(low),
        "middle": float(np.median(answers[own])),
        "high": float(high),
        "error": distance(answers[own], truth[own]),
        "noise": distance(answers[own], without[own]),
        # The average of the noise over all queries, which independent noise does not have.
        "shift": abs(float(np.mean(answers - without))),
    }


def errors(epsilons: Sequence[float]) -> Callable[[Cell], list[Row]]:
    """Return what gives a method's errors at each epsilon."""

    def run(cell: Cell) -> list[Row]:
        study, method, learner, seed = _named(cell)
        people = study_of(study, seed)
        found = answered(study, method, learner, seed, epsilons)
        return [
            {
                "epsilon": epsilon,
                "error": distance(answers, people.truth),
                "clipped": people.error(answers),
                "noise": distance(answers, found.without),
                "floor": distance(found.without, people.truth),
            }
            for epsilon, answers in found.answers.items()
        ]

    return run


def predictions_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions by method, epsilon and bin, over studies: means, and root mean squares of errors."""
    means = dict.fromkeys(("x", "truth", "fitted", "low", "middle", "high"), "mean")
    squares = dict.fromkeys(("error", "noise", "shift"), _root_mean_square)
    kept: pd.DataFrame = rows.groupby(["method", "epsilon", "bin"], sort=False, as_index=False).agg(
        means | squares
    )
    return kept


def errors_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors by method and epsilon: means over studies, and how far the error varies between them."""
    grouped = rows.groupby(["method", "epsilon"], sort=False)
    kept: pd.DataFrame = grouped[["error", "clipped", "noise", "floor"]].mean().reset_index()
    kept["spread"] = grouped["error"].std(ddof=0).to_numpy()
    return kept


def _root_mean_square(values: pd.Series[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _named(cell: Mapping[str, object]) -> tuple[str, str, str, int]:
    study, method, learner = (str(cell[name]) for name in ("study", "method", "learner"))
    return study, method, learner, int(str(cell["seed"]))


def _covariate(people: Instance, study: str) -> Floats:
    """Return what predictions are drawn against: hematocrit, the sum of all genes, or the first covariate."""
    columns = people.queries.columns
    if study == MIMIC:
        return np.asarray(columns[HEMATOCRIT])
    if study == TCGA:
        return np.asarray(np.sum(list(columns.values()), axis=0), dtype=np.float64)
    return np.asarray(next(iter(columns.values())))


def relative_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the errors with their size in per cent of the same learner's error without noise."""
    kept = errors_table(rows)
    return kept.assign(relative=100 * kept["error"] / kept["floor"])
