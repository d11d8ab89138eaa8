"""The paper's synthetic studies: 50 normal covariates divided by the largest length of a row, a linear outcome.

The paper divides by the sample's own largest length and gives no bounds of outcomes or propensities; here as there the
length is read off the rows, the largest outcome as well, and propensities are supposed to be between 0.1 and 0.9.
These are experiments, not private releases.
One release of the published form and of ours is made on the same rows, and the weighting without noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.datasets import Dataset, ihdp, nsw
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.published import weighting as proved
from counterveil.published import weighting as published
from counterveil.published.asking import ACCEPT, PublishedQuestion
from counterveil.published.matching import fit_without_intercept
from counterveil.results.question import Question
from counterveil.session import Gate, SeededNoise
from counterveil_lab.reproduce.rivals.ours import KAPPA

FIT, WEIGHTED_EACH = 250, 100  # rows of each arm
IHDP_FILES = 25
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
    data = source(family, run % IHDP_FILES + 1)
    generator = np.random.default_rng([1, run])
    treated = np.asarray(data.frame[data.study.treatment]) == 1
    if family == "ihdp":
        test = generator.permutation(len(treated)) < _TEST_PART * len(treated)
        weighted = [
            generator.choice(np.flatnonzero(test & (treated == arm)), WEIGHTED_EACH) for arm in (True, False)
        ]
    else:
        weighted = [
            generator.choice(np.flatnonzero(treated == arm), WEIGHTED_EACH, replace=False)
            for arm in (True, False)
        ]
        test = np.isin(np.arange(len(treated)), np.concatenate(weighted))
    fitted = [generator.choice(np.flatnonzero(~test & (treated == arm)), FIT) for arm in (True, False)]
    rows = np.concatenate([*fitted, *weighted])
    frame = {name: np.asarray(column)[rows] for name, column in data.frame.items()}
    study = data.study._changed(randomised=None, treated_share=None)
    return Table.attach(frame, study), np.arange(2 * FIT), np.arange(2 * FIT, len(rows))


DELTA = "1e-6"
PENALTY = published.PENALTY
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


COVARIATES, WEIGHTED = 50, 1000
WEIGHTING, AUTO = "ours, ipw", "ours, auto"
# Nearly every covariate of such a study, and twice the spread of outcomes: public round figures for our forms.
_REACH, _SPREAD = 0.5, 5


@dataclass(frozen=True)
class Study:
    """Rows of one trial: the first `fitted` for the propensity model, the others to be weighted."""

    x: Floats
    treated: NDArray[np.bool_]
    y: Floats
    fitted: int
    effect: float

    @cached_property
    def weights(self) -> Floats:
        """Weights of the propensity model without noise."""
        return fit_without_intercept(self.x[: self.fitted], self.treated[: self.fitted], PENALTY)

    def weighted(self, weights: Floats) -> float:
        """Return the weighted contrast of the other rows under these weights of the model."""
        x, t, y = self.x[self.fitted :], self.treated[self.fitted :], self.y[self.fitted :]
        return published.weighted_sum(x @ weights, t, y, Estimand.ATE)


def drawn(seed: int, fitted: int, effect: float) -> Study:
    """Return one trial's rows."""
    generator = np.random.default_rng([4, seed])
    a, b = generator.normal(size=(2, COVARIATES))
    x = generator.normal(scale=3, size=(fitted + WEIGHTED, COVARIATES))
    for part in (slice(fitted), slice(fitted, None)):
        x[part] /= np.linalg.norm(x[part], axis=1).max()
    treated = generator.uniform(size=len(x)) < expit(x @ a)
    y = x @ b + effect * treated + generator.normal(scale=0.1, size=len(x))
    return Study(x, treated, y, fitted, effect)


def bias_of(study: Study, epsilon: float) -> tuple[float, float]:
    """Return the bias g of equation 8 as printed, and as its proof derives it.

    Printed, the exponent changes its sign with the arm. The proof takes E exp(z.x) = E exp(-z.x) = exp(s^2 |x|^2 / 2)
    for both arms, which is what noise that is symmetric gives.
    """
    x, t, y = study.x[study.fitted :], study.treated[study.fitted :], study.y[study.fitted :]
    sign = np.where(t, -1.0, 1.0)
    alpha = -sign * y * np.exp(sign * (x @ study.weights))
    exponent = weight_noise(epsilon, study.fitted) ** 2 * np.square(x).sum(axis=1) / 2
    printed = float(np.mean(alpha * np.expm1(sign * exponent)))
    return printed, float(np.mean(alpha * np.expm1(exponent)))


def simulated_bias(study: Study, epsilon: float, draws: int, seed: int) -> float:
    """Return the mean change of the weighted contrast over draws of the noise and their mirror images."""
    generator = np.random.default_rng([5, seed])
    noise = generator.normal(scale=weight_noise(epsilon, study.fitted), size=(draws, COVARIATES))
    values = [study.weighted(study.weights + sign * z) for z in noise for sign in (1, -1)]
    return float(np.mean(values)) - study.weighted(study.weights)


def estimates(study: Study, epsilon: float, seed: int) -> dict[str, float]:
    """Return one release of the published form and of ours on a trial."""
    generator = np.random.default_rng([6, seed])
    noisy = study.weights + generator.normal(scale=weight_noise(epsilon, study.fitted), size=COVARIATES)
    partly = study.weighted(noisy)
    largest = float(np.abs(study.y[study.fitted :]).max())
    bound = 2 * largest / WEIGHTED * max(1 / published.LOWEST, 1 / (1 - published.HIGHEST))
    sigma = sqrt(2 * log(1.25 / float(DELTA))) * bound / epsilon
    return {
        PLAIN: study.weighted(study.weights),
        PARTLY: partly,
        RELEASED: partly + float(generator.normal(scale=sigma)),
        **_ours(study, epsilon, seed),
    }


def _ours(study: Study, epsilon: float, seed: int) -> dict[str, float]:
    names = [f"x{place}" for place in range(COVARIATES)]
    domains = dict.fromkeys(names, cv.Range(-_REACH, _REACH))
    declared = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (-_SPREAD, _SPREAD)),
        domains,
        assignment=cv.Observational(),
    )
    frame = dict(zip(names, study.x.T, strict=True)) | {"t": study.treated.astype(np.int64), "y": study.y}
    paid: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "noise": cv.SeededNoise(seed)}
    weighted = cv.published.ipw_proved(frame, declared, **paid)
    paid["noise"] = cv.SeededNoise(seed)
    chosen = cv.ate(frame, declared, protects="record", settings=cv.settings.Auto(kappa=KAPPA), **paid)
    return {WEIGHTING: weighted.estimate, AUTO: chosen.estimate}
