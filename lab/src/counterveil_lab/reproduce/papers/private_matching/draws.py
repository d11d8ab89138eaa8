"""Repeated draws of the published forms and of ours on one study, in units of the outcome's range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import UnitFeatures
from counterveil.numerics.products import linear_form
from counterveil.privacy import Budget, Unit
from counterveil.published import matching as published
from counterveil.published.asking import EffectForm, PublishedQuestion
from counterveil.published.matching import PaperNumbers
from counterveil.results.result import Result
from counterveil.session import BaseSession, Gate, Kind, Plan, SeededNoise
from counterveil.settings import Matching, Weighting
from counterveil.statistics.linear.effect import LinearEffect, effect_of, effect_plan
from counterveil.statistics.linear.kernels.balancing import (
    WeightSettings,
    arm_rows,
    balance_weights,
    precision,
)
from counterveil.statistics.linear.kernels.pairing import consecutive_pairs
from counterveil.statistics.linear.matching_design import match, published_limits, scored
from counterveil.statistics.linear.weighting_design import TOLERANCE, ScoredRows, features_of
from counterveil_lab.reproduce.papers.private_matching.studies import Benchmark
from counterveil_lab.reproduce.rivals.ours import KAPPA

Floats = NDArray[np.float64]


def label_draws(
    study: Benchmark, epsilon: float, settings: Matching, draws: int, seed: int
) -> tuple[Floats, float]:
    """Return draws of PrivATE at label level as printed, and the epsilon that they really lose."""
    limits = published_limits(study.design, settings, epsilon, feasible=False)
    found = match(study.design, settings.neighbours, limits, "ATE").matching
    form, claim = linear_form(found.coefficients), Budget(epsilon)
    noise = published.published_noise(study.table, form, limits, settings.neighbours)
    loss = noise.loss(claim.epsilon)
    plan = Plan(Budget(max(loss, claim.epsilon)), "laplace", (("effect", loss),))
    source = SeededNoise(seed)
    values = [
        float(published.release_estimate(Gate(plan, source), study.table, form, noise, claim))
        for _ in range(draws)
    ]
    return np.array(values) / study.width, float(loss)


@dataclass(frozen=True)
class Sampled:
    """What the published form at sample level computes before its noise: features in [0, 1] and fitted weights."""

    table: Table
    box: Floats
    fitted: Floats
    penalty: float

    @classmethod
    def of(cls, table: Table, penalty: float) -> Sampled:
        """Return what a table gives."""
        features = UnitFeatures.of(table.study)
        box = features.values(table)
        box += features.middle
        return cls(table, box, published.fit_without_intercept(box, table.treated, penalty), penalty)

    def draw(
        self, epsilon: float, settings: PaperNumbers, source: SeededNoise, limit: int | None = None
    ) -> tuple[float, float]:
        """Return one draw of PrivATE at sample level in units of the outcome, and the epsilon that it loses at least.

        It is as printed, or under a fixed limit.
        """
        kinds = {"scores": Kind.ROWS, "treatments": Kind.RESPONSE, "weights": Kind.CELLS}
        plan = Plan.split(Budget(epsilon), settings.shares(), "laplace", kinds)
        gate = Gate(plan, source)
        scores, responses = published.release_scores(gate, self.table, self.box, self.fitted, self.penalty)
        matched = published.match_records(scores, responses, settings, float(plan.amount("effect")), limit)
        lost = float(epsilon) + (matched.excess - 1) * float(plan.amount("effect"))
        return float(published.release_sums(gate, plan, self.table, matched).value), lost


_sampled = cache(Sampled.of)


def sample_draws(
    study: Benchmark,
    epsilon: float,
    settings: PaperNumbers,
    draws: int,
    seed: int,
    limit: int | None = None,
) -> tuple[Floats, float]:
    """Return draws of PrivATE at sample level, as printed or under a fixed limit, and the largest epsilon lost."""
    data, source = _sampled(study.table, settings.penalty), SeededNoise(seed)
    found = np.array([data.draw(epsilon, settings, source, limit) for _ in range(draws)])
    return found[:, 0] / study.width, float(found[:, 1].max())


Asked = Callable[[Table, float, int, SeededNoise], float]


def _outcome(method: str) -> Asked:
    def asked(table: Table, epsilon: float, _: int, noise: SeededNoise) -> float:
        found = cv.ate(table, table.study, protects="outcome", method=method, epsilon=epsilon, noise=noise)
        return found.estimate

    return asked


def _weighted(session: BaseSession, question: PublishedQuestion, neighbours: int) -> Result:
    """Return the effect by weights close to matching, as the paper's errors are, all of epsilon spent on it."""
    table, design = session.table, scored(session.table)
    balanced = Weighting(features=("covariates", "squares", "products", "score"))
    features, *_ = features_of(table, ScoredRows(table.treated, design.score), balanced)
    supposed = WeightSettings(tolerance=TOLERANCE)
    found = balance_weights(
        features,
        table.treated,
        noise_variance=effect_plan(question, Fraction(0)).noise("effect", Fraction(1)).variance,
        target=None,
        reference=match(design, neighbours, (None, None), "ATE").matching.coefficients,
        settings=supposed,
        rows=arm_rows(features, table.treated, precision(supposed, table.rows)),
    )
    pairs = consecutive_pairs(design.by_score.by_score(arm) for arm in (False, True))
    effect = LinearEffect("weighting close to matching", found.values, pairs, (), share=Fraction(0))
    return effect_of(session, question, effect)


def _close(table: Table, epsilon: float, neighbours: int, noise: SeededNoise) -> float:
    run = partial(_weighted, neighbours=neighbours)
    form = EffectForm("close_to_matching", Unit.OUTCOME, None, run, printed=False)
    return form(table, table.study, epsilon=epsilon, noise=noise).estimate


def _record(table: Table, epsilon: float, _: int, noise: SeededNoise) -> float:
    bounded = cv.settings.Auto(kappa=KAPPA)
    found = cv.ate(table, table.study, protects="record", epsilon=epsilon, settings=bounded, noise=noise)
    return found.estimate


# Our methods by their names in tables, as analysts ask for them; delta is zero, as for PrivATE.
OURS: dict[str, Asked] = {
    "ours, outcome": _close,
    "ours, outcome (auto)": _outcome("auto"),
    "ours, record": _record,
    "difference in means": _outcome("difference_in_means"),
}


def our_draws(
    method: str, study: Benchmark, epsilon: float, neighbours: int, draws: int, seed: int
) -> Floats:
    """Return draws of one of our methods."""
    source = SeededNoise(seed)
    values = [OURS[method](study.table, epsilon, neighbours, source) for _ in range(draws)]
    return np.array(values) / study.width
