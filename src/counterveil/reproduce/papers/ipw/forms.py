"""One release of the published form and of ours on the same rows, and the weighting without noise."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.privacy import Estimand
from counterveil.published import weighting as published
from counterveil.published.asking import ACCEPT, PublishedQuestion
from counterveil.published.matching import fit_without_intercept
from counterveil.questions.ate import ask
from counterveil.reproduce.papers.ipw.samples import OUTCOME_UNIT, sample
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise
from counterveil.statistics.moments import ipw

DELTA = "1e-6"
PENALTY = published.IPWSettings().penalty
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
# Names of the estimates in rows and tables.
PLAIN, PARTLY, RELEASED = "without noise", "published, before the last noise", "published, released"
LONG, HAJEK, HT = "published, before the last noise, rows longer than one", "ours, hajek", "ours, ht"


def question_of(study: cv.Study, epsilon: float) -> Question:
    """Return the question that every form answers."""
    return ask(
        study,
        "ipw",
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
        asked = question_of(table.study, epsilon)
        seed = 1000 * run + 10 * place
        plan = published.paper_plan(PublishedQuestion.of(asked, ACCEPT))
        drawn = published.release(
            Gate(plan, SeededNoise(seed)), plan, table, (first, second), published.IPWSettings(), Estimand.ATE
        )
        values = {PLAIN: plain, PARTLY: drawn.partly, RELEASED: drawn.value}
        if family == "ihdp":  # earnings and years as they come have weights beyond all bounds
            values[LONG] = as_they_come(table, first, second, y, epsilon, seed)
        for name, form in ((HAJEK, "hajek"), (HT, "ht")):
            ours = replace(asked, settings=cv.settings.IPW(form=form))
            design = ipw.design_of(table.study, table.rows, ours)
            gate = Gate(design.plan, SeededNoise(seed + 1))
            _, weighing, weighted = ipw.release(gate, table, design, Estimand.ATE)
            values[name] = ipw.effect_of(table.study, weighing, weighted)[0]
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
