"""One release of the published form and of ours on the same rows, and the weighting without noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.datasets import Dataset, ihdp, nsw
from counterveil.privacy import Estimand
from counterveil.published import weighting as proved
from counterveil.published import weighting as published
from counterveil.published.asking import ACCEPT, PublishedQuestion
from counterveil.published.matching import fit_without_intercept
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise

FIT, WEIGHTED = 250, 100  # rows of each arm
_IHDP_FILES = 25
_TEST_PART = 0.1
# Public ranges: round figures that hold nearly every outcome of the 25 files.
_IHDP_RANGE = (-10, 20)
OUTCOME_UNIT = {"ihdp": 1.0, "lalonde": 1000.0}


@cache
def source(family: str, number: int) -> Dataset:
    """Return one of the data sets; numbers matter for IHDP alone."""
    return ihdp(number, outcome_range=_IHDP_RANGE) if family == "ihdp" else nsw()


def sample(family: str, run: int) -> tuple[Table, NDArray[np.intp], NDArray[np.intp]]:
    """Return a table of 700 rows, the places of the 500 for fitting and of the 200 for weighting."""
    data = source(family, run % _IHDP_FILES + 1)
    generator = np.random.default_rng([1, run])
    treated = np.asarray(data.frame[data.study.treatment]) == 1
    if family == "ihdp":
        test = generator.permutation(len(treated)) < _TEST_PART * len(treated)
        weighted = [
            generator.choice(np.flatnonzero(test & (treated == arm)), WEIGHTED) for arm in (True, False)
        ]
    else:
        weighted = [
            generator.choice(np.flatnonzero(treated == arm), WEIGHTED, replace=False) for arm in (True, False)
        ]
        test = np.isin(np.arange(len(treated)), np.concatenate(weighted))
    fitted = [generator.choice(np.flatnonzero(~test & (treated == arm)), FIT) for arm in (True, False)]
    rows = np.concatenate([*fitted, *weighted])
    frame = {name: np.asarray(column)[rows] for name, column in data.frame.items()}
    study = replace(data.study, randomised=None, treated_share=None)
    return Table.attach(frame, study), np.arange(2 * FIT), np.arange(2 * FIT, len(rows))


DELTA = "1e-6"
PENALTY = published.PENALTY
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# Names of the estimates in rows and tables.
PLAIN, PARTLY, RELEASED = "without noise", "published, before the last noise", "published, released"
LONG, HAJEK, HT = "published, before the last noise, rows longer than one", "ours, hajek", "ours, ht"


def question_of(epsilon: float) -> Question:
    """Return the question that every form answers."""
    return Question.ask(
        method="ipw",
        protects="record",
        epsilon=epsilon,
        delta=DELTA,
        estimand="ATE",
        level=0.95,
        mechanism=None,
        request_id=None,
    )


def one_run(family: str, run: int, epsilons: tuple[float, ...]) -> list[dict[str, float]]:
    """Return every estimate on one sample of a table of the paper, at each epsilon."""
    table, first, second = sample(family, run)
    features = UnitFeatures.of(table.study)
    z = published.unit_rows(features, table)
    steps = table.outcome[second].astype(np.float64)
    y = float(table.study.outcome_range[0]) + float(table.outcome_unit) * steps
    fitted = fit_without_intercept(z[first], table.treated[first], PENALTY)
    plain = published.weighted_sum(z[second] @ fitted, table.treated[second], y, Estimand.ATE)
    found = []
    for place, epsilon in enumerate(epsilons):
        asked = question_of(epsilon)
        seed = 1000 * run + 10 * place
        plan = published.paper_plan(PublishedQuestion.of(asked, ACCEPT))
        drawn = published.release(Gate(plan, SeededNoise(seed)), plan, table, (first, second), Estimand.ATE)
        values = {PLAIN: plain, PARTLY: drawn.partly, RELEASED: drawn.value}
        if family == "ihdp":  # earnings and years as they come have weights beyond all bounds
            values[LONG] = as_they_come(table, first, second, y, epsilon, seed)
        for name in (HAJEK, HT):
            design = proved.design_of(table.study, table.rows, asked, centred=name == HAJEK)
            gate = Gate(design.plan, SeededNoise(seed + 1))
            _, weighing, weighted = proved.release_proved(gate, table, design, Estimand.ATE)
            values[name] = proved.effect_of(table.study, weighing, weighted)[0]
        found.append({name: value * OUTCOME_UNIT[family] for name, value in values.items()})
    return found


def weight_noise(epsilon: float, rows: int) -> float:
    """Return the standard deviation of the noise in each weight, as printed."""
    return 2 * sqrt(2 * log(1.25 / float(DELTA))) / (epsilon * rows * PENALTY)


def as_they_come(table: Table, first: Rows, second: Rows, y: Floats, epsilon: float, seed: int) -> float:
    """Return the published form before its last noise with rows of any length: what its figures look like."""
    x = np.column_stack([table.covariates[name] for name in table.study.covariates])
    fitted = fit_without_intercept(x[first], table.treated[first], PENALTY)
    sigma = weight_noise(epsilon, len(first))
    noisy = fitted + np.random.default_rng(seed).normal(scale=sigma, size=len(fitted))
    return published.weighted_sum(x[second] @ noisy, table.treated[second], y, Estimand.ATE)
