"""Studies with people whose true effects are known, and MIMIC-III and TCGA from files that need credentials.

Published forms are drawn at every epsilon from one fit: their noise is normal, and its scale is 1 / epsilon.
Files are looked for below COUNTERVEIL_DATA. What is read off their rows while they are prepared (percentiles,
variances, ends of the genes' values) is not protected by anything; that is how the paper does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.data import Categories, Observational, Outcome, Range, Study, Table, Treatment
from counterveil.data.domains import Domain
from counterveil.datasets import Dataset, dataset_1, dataset_2
from counterveil.datasets.dataset import VARIABLE, find_file
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
    counted_rows,
    fitted_effect,
    path_factor,
    public_centres,
    published,
    published_factor,
    stages,
)
from counterveil.results.functions import Queries, read_queries
from counterveil_lab.reproduce.rivals.simple import groups

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
        factor = published_factor(budget, counted_rows(total))
        effects, scale = published(second, nuisances, points, box, settings, factor)
        return Fit(effects, scale * drawn)
    bandwidth = _NARROW if box.columns <= _FEW else _WIDE
    form_settings = KernelSettings(learner=learner, bandwidth=bandwidth, penalty_meaning=KERNEL[method])
    form = PublishedFunction.of(box, budget, form_settings, counted_rows(total))
    effects = form.effects(second, nuisances, learner, public_centres(box), points)
    factors, places = path_factor(form.kernel, points)
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


# The tables of MIMIC-Extract (Wang et al. 2020) of the same names, each written as a packed CSV file: hourly means with
# one column a measure, hourly treatments with the column vent, and one row a stay with gender and age.
MIMIC_FILES = ("mimic3/vitals_labs_mean.csv.gz", "mimic3/interventions.csv.gz", "mimic3/patients.csv.gz")
# One row a patient, one column a gene, expression as measured.
TCGA_FILES = ("tcga/expression.csv.gz",)
HEMATOCRIT, _CELLS = "hematocrit", "red blood cell count"
# Ranges within which such measurements lie, declared and not read off the rows.
_MEASURES = {
    "heart rate": (0, 300),
    "sodium": (90, 200),
    _CELLS: (0, 10),
    "glucose": (0, 1500),
    HEMATOCRIT: (0, 80),
    "respiratory rate": (0, 100),
}
_STAY, _HOUR = "icustay_id", "hours_in"
# Measures are averaged over so many hours before the time point; outcomes over as many after it.
_HOURS = 10
_TAILS = (0.001, 0.999)
# What ventilation adds to the outcome for each unit of hematocrit: the paper makes the outcome "more responsive" and
# does not print how.
_RESPONSE = 0.05
_GENES, _CAUSES = 4000, 10


def is_there(files: tuple[str, ...]) -> bool:
    """Return whether all of these files are below COUNTERVEIL_DATA."""
    root = os.environ.get(VARIABLE, "")
    return bool(root) and all(Path(root, name).is_file() for name in files)


def mimic(seed: int = 0) -> Dataset:
    """Return stays in intensive care at a random hour: ventilated or not, and red blood cells in the hours after."""
    hourly, treatments, patients = (pd.read_csv(find_file(name)) for name in MIMIC_FILES)
    rng = np.random.default_rng(seed)
    rows = hourly.merge(treatments[[_STAY, _HOUR, "vent"]], on=[_STAY, _HOUR])
    stays = pd.DataFrame([_sampled(stay, rng) for _, stay in rows.groupby(_STAY, sort=True)])
    stays = stays.merge(patients[[_STAY, "age", "gender"]], on=_STAY).dropna()
    numbers = [*_MEASURES, "age", "y"]
    low, high = (stays[numbers].quantile(tail) for tail in _TAILS)
    stays = stays[((stays[numbers] >= low) & (stays[numbers] <= high)).all(axis=1)]
    stays = stays.sample(frac=1.0, random_state=seed)
    frame = {name: stays[name].to_numpy() for name in ("vent", *numbers, "gender")}
    ranges = {name: Range(*ends) for name, ends in _MEASURES.items()}
    covariates: dict[str, Domain] = {**ranges, "age": Range(0, 120), "gender": Categories(["F", "M"])}
    return Dataset(
        name=f"MIMIC-III, seed {seed}",
        frame=frame,
        study=Study(
            Treatment("vent", control=0), Outcome("y", (0, 15)), covariates, assignment=Observational()
        ),
        source="MIMIC-III (Johnson et al. 2016), through MIMIC-Extract (Wang et al. 2020)",
        licence="PhysioNet Credentialed Health Data License",
        notes=f"Ventilation adds {_RESPONSE} a unit of hematocrit to the outcome, a choice of this loader.",
    )


def _sampled(stay: pd.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    """Return a stay at a random hour that leaves enough hours before and after it; missing where none does."""
    hours = stay[_HOUR].to_numpy()
    inner = hours[(hours >= hours.min() + _HOURS) & (hours < hours.max() - _HOURS)]
    number = stay[_STAY].iloc[0]
    if not len(inner):
        return {_STAY: number, "y": np.nan}
    at = int(rng.choice(inner))
    before, after = stay[(hours >= at - _HOURS) & (hours < at)], stay[(hours > at) & (hours <= at + _HOURS)]
    found = {name: float(before[name].mean()) for name in _MEASURES}
    vent = int(stay.loc[stay[_HOUR] == at, "vent"].iloc[0])
    outcome = float(after[_CELLS].mean()) + _RESPONSE * vent * found[HEMATOCRIT]
    return {_STAY: number, "vent": vent, "y": outcome} | found


def tcga(seed: int = 0) -> Dataset:
    """Return patients with the genes that vary most, a simulated treatment, and an effect of 1 for everybody."""
    values = pd.read_csv(find_file(TCGA_FILES[0])).to_numpy(dtype=np.float64)
    rng = np.random.default_rng(seed)
    values = values[rng.permutation(len(values))]
    # The genes that vary most first.
    kept = values[:, np.argsort(-values.var(axis=0), kind="stable")[:_GENES]]
    unit = _to_unit(kept)
    causes = unit[:, :_CAUSES].mean(axis=1)
    spread = max(float(causes.std()), 1e-12)
    treated = rng.uniform(size=len(unit)) < expit((causes - causes.mean()) / spread)
    y = causes + treated + rng.uniform(-0.5, 0.5, len(unit))
    names = [f"gene{place}" for place in range(1, unit.shape[1] + 1)]
    columns: dict[str, NDArray[Any]] = dict(zip(names, np.ascontiguousarray(unit.T), strict=True))
    return Dataset(
        name=f"TCGA, seed {seed}",
        frame={"treated": treated.astype(np.int64), "y": y} | columns,
        study=Study(
            Treatment("treated", control=0),
            Outcome("y", ("-0.5", "2.5")),
            dict.fromkeys(names, Range(0, 1)),
            assignment=Observational(),
        ),
        source="The Cancer Genome Atlas (Weinstein et al. 2013); treatment and outcome are simulated",
        licence="NIH Genomic Data Sharing",
        true_effect=1.0,
        effects=np.ones(len(unit)),
    )


def _to_unit(values: Floats) -> Floats:
    low, high = values.min(axis=0), values.max(axis=0)
    return np.asarray((values - low) / np.where(high > low, high - low, 1.0), dtype=np.float64)
