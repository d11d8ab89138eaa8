"""Studies with people whose true effects are known, and the published forms at every epsilon from one fit.

Their noise is normal, and its scale is 1 / epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.datasets import Dataset, dataset_1, dataset_2
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget, Number
from counterveil.published.cate import (
    FeatureBox,
    InfluenceSettings,
    KernelSettings,
    PublishedFunction,
    StageModels,
    StageRows,
    StageSettings,
    batch_factor,
    fitted_effect,
    public_centres,
    published,
    published_factor,
    stages,
)
from counterveil.results.functions import Queries, read_queries
from counterveil_lab.reproduce.papers.cate.medical import mimic, tcga
from counterveil_lab.reproduce.rivals.plain import groups

DATASET_1, DATASET_2, MIMIC, TCGA = "dataset 1", "dataset 2", "MIMIC-III", "TCGA"
_DRAWN: dict[str, Callable[[int, int], Dataset]] = {DATASET_1: dataset_1, DATASET_2: dataset_2}
_PEOPLE = 3000
# The part of the people who are learned from; the others are the queries. For TCGA the paper prints 2,659 of 9,659.
_LEARNED = {DATASET_1: 0.9, DATASET_2: 0.9, MIMIC: 0.9, TCGA: 7000 / 9659}


@dataclass(frozen=True, eq=False)
class Instance:
    """A table, and the points at which effects are scored with the truth there; NaN where it is not known."""

    table: Table
    queries: Queries
    truth: Floats

    @property
    def study(self) -> Study:
        """The roles and public bounds of the columns."""
        return self.table.study

    @property
    def outcomes(self) -> Floats:
        """The outcomes as they were measured, private numbers."""
        low = float(self.study.outcome_range[0])
        return np.asarray(low + float(self.table.outcome_unit) * self.table.outcome, dtype=np.float64)

    @property
    def width(self) -> float:
        """The width of the outcome's range, which no effect exceeds."""
        low, high = self.study.outcome_range
        return float(high - low)

    def clipped(self, answers: Floats) -> Floats:
        """Return the answers, each clipped to what an effect can be."""
        return np.clip(answers, -self.width, self.width)

    def error(self, answers: Floats) -> float:
        """Return the root mean squared error of answers, each clipped to what an effect can be (PEHE)."""
        return distance(self.clipped(answers), self.truth)


def distance(first: Floats, second: Floats) -> float:
    """Return the root mean square of the difference."""
    return float(np.sqrt(np.mean((first - second) ** 2)))


def split(data: Dataset, learn: slice, score: slice) -> Instance:
    """Return the study of some people of a data set, scored on some of them."""
    frame: Mapping[str, NDArray[Any]] = data.frame
    table = Table.attach({name: values[learn] for name, values in frame.items()}, data.study)
    asked = {name: frame[name][score] for name in data.study.covariates}
    unknown = np.full(len(frame[data.study.treatment][score]), np.nan)
    truth = unknown if data.effects is None else data.effects[score]
    return Instance(table, read_queries(asked, data.study), truth)


@lru_cache(maxsize=4)
def study_of(name: str, seed: int) -> Instance:
    """Return a study of the paper: most of its people to learn from, and the others to score on."""
    if name in _DRAWN:
        data = _DRAWN[name](_PEOPLE, seed)
    else:
        data = mimic(seed) if name == MIMIC else tcga(seed)
    rows = len(next(iter(data.frame.values())))
    learned = round(_LEARNED[name] * rows)
    return split(data, slice(0, learned), slice(learned, rows))


def anonymised(study: Instance, least: int) -> Instance:
    """Return the study after covariates were averaged in groups of `least` people or more; not private."""
    columns = {name: np.asarray(values) for name, values in study.table.covariates.items()}
    group = groups(FeatureBox.of(study.study).points(columns), least)
    sizes = np.bincount(group)
    averaged: dict[str, NDArray[Any]] = {}
    for name, domain in study.study.covariates.items():
        means = np.bincount(group, weights=columns[name]) / sizes
        if isinstance(domain, Range):
            averaged[name] = means[group]
        else:
            averaged[name] = np.array(domain.labels, dtype=object)[np.round(means).astype(int)][group]
    roles = {study.study.treatment: study.table.treated.astype(np.int64), study.study.outcome: study.outcomes}
    return Instance(Table.attach(averaged | roles, study.study), study.queries, study.truth)


FINITE = {"DP-CATE forest": "forest", "DP-CATE network": "network", "DP-CATE linear": "linear"}
# Both readings of lambda = 1: beside the mean loss, as printed, and as scikit-learn's alpha.
KERNEL = {"DP-CATE kernel": "literal", "DP-CATE kernel, alpha": "alpha"}
# Starts and points of the search for the largest influence.
_STARTS, _POINTS = 4, 4000
# The bandwidth is not printed: these are for few and for many covariates.
_FEW, _NARROW, _WIDE = 3, 0.2, 1.0


@dataclass(frozen=True, eq=False)
class Fit:
    """The answers of a published form without noise, and its noise at epsilon 1."""

    effects: Floats
    noise: Floats

    def answers(self, epsilon: float) -> Floats:
        """Return the release at an epsilon."""
        return self.effects + self.noise / epsilon


def published_fit(study: Instance, method: str, seed: int, delta: Number, learner: str = "R") -> Fit:
    """Return the fit of a published form, R- or DR-learner, and a draw of its noise."""
    box, second, nuisances = _first_stage(study)
    points, total = box.points(study.queries.columns), study.table.rows
    drawn = np.random.default_rng(seed).standard_normal(len(points))
    budget = Budget(1, delta)
    if method in FINITE:
        settings = InfluenceSettings(learner=learner, effect=FINITE[method], starts=_STARTS, points=_POINTS)
        factor = published_factor(budget, settings.counted_rows(total))
        effects, scale = published(second, nuisances, points, box, settings, factor)
        return Fit(effects, scale * drawn)
    bandwidth = _NARROW if box.columns <= _FEW else _WIDE
    form_settings = KernelSettings(learner=learner, bandwidth=bandwidth, penalty_meaning=KERNEL[method])
    form = PublishedFunction.of(box, budget, form_settings, form_settings.counted_rows(total))
    effects = form.effects(second, nuisances, learner, public_centres(box, form_settings.centres), points)
    factors, places = batch_factor(form.kernel, points)
    return Fit(effects, form.scale * (factors @ drawn[: len(factors)])[places])


def finite_effects(study: Instance, method: str, learner: str = "R") -> Floats:
    """Return what a published form of finite queries answers without noise."""
    box, second, nuisances = _first_stage(study)
    return fitted_effect(second, nuisances, learner, FINITE[method])(box.points(study.queries.columns))


@lru_cache(maxsize=2)
def _first_stage(study: Instance) -> tuple[FeatureBox, StageRows, StageModels]:
    """Return the rows of the second stage and the nuisances, which all published forms of a study share."""
    box, shared = FeatureBox.of(study.study), StageSettings()
    _, second, nuisances = stages(study.table, box, shared)
    return box, second, nuisances
