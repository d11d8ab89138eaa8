"""Effects at finitely many queries as they were published (Theorem 1): any learner, noise by influence functions.

Its privacy claim is refuted. What is drawn is what is printed: nuisances on one part of the rows, a regression of
pseudo-outcomes on the other, and independent normal noise whose scale is the largest influence function of a
record times 5 sqrt(2 ln n ln(2/delta)) / (epsilon n).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget, Proof
from counterveil.privacy.caveats import Target
from counterveil.published.asking import PublishedQuestion, QueryForm
from counterveil.published.cate import (
    PROOF,
    FeatureBox,
    Function,
    InfluenceSettings,
    StageModels,
    StageRows,
    SupremumSearch,
    asked_queries,
    fitted_effect,
    fitted_nuisances,
    learner_label,
    loss_at,
    paper_answers,
    paper_plan,
    require_learners,
)
from counterveil.published.gate import release_vector_scaled
from counterveil.results.answering import Facts, settled
from counterveil.results.functions import CateAnswers
from counterveil.session import BaseSession, Gate

_SEED = 0
_STEP = 1e-6
_MOST_STEPS = 25
REMARK = (
    "the published claim is false: the influence function is that of an average and is used for the effect at every "
    "query, so that the number of queries does not enter; a forest or a network moves by far more than that over n "
    "when one record changes; rows of the nuisances are not counted at all; and the scale of the noise follows the "
    "rows. The ledger is charged the claimed epsilon and delta"
)


@dataclass(frozen=True, slots=True)
class PublishedQueries:
    """The non-private answers and the private scale of their noise."""

    effects: Floats
    scale: float


def _finite_queries(session: BaseSession, question: PublishedQuestion) -> CateAnswers:
    """Return effects at queries with noise by influence functions, as in DP-CATE (Theorem 1); refuted."""
    settings = question.settings or InfluenceSettings()
    queries = asked_queries(question)
    plan = paper_plan(question)
    question.require_acceptance(Proof.REFUTED, REMARK)
    require_learners(settings.outcome, settings.propensity, settings.effect)
    box = FeatureBox.of(session.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> Facts:
        rows = box.rows(session.table)
        parts = two_parts(len(rows), settings.first_rows(len(rows)))
        nuisances = fitted_nuisances(
            rows.part(parts[0]), settings.outcome, settings.propensity, settings.clip
        )
        factor = published_factor(question.budget, settings.counted_rows(len(rows)))
        found = published(rows.part(parts[1]), nuisances, points, box, settings, factor)
        answers = release(gate, found, box, len(rows))
        return paper_answers(
            session,
            question,
            answers,
            # The scale follows the rows, so no interval can be told.
            noise=float("inf"),
            remark=REMARK,
            method=f"{settings.learner}-learner, second stage {learner_label(settings.effect)}, influence-function "
            "noise, as published",
            release="normal noise on each, of a scale that follows the rows and is not told",
            interval_target=Target.NO_QUANTITY,
        )

    # With the settings that hold where none were given.
    return settled(CateAnswers, session, replace(question, settings=settings), plan, compute)


# What analysts call.
cate_finite = QueryForm("cate_finite", InfluenceSettings, _finite_queries)


def published(
    rows: StageRows,
    nuisances: StageModels,
    points: Floats,
    box: FeatureBox,
    settings: InfluenceSettings,
    factor: float,
) -> PublishedQueries:
    """Return the answers of the second stage fitted to these rows, and their scale; private numbers.

    `factor` is what the largest influence is multiplied by.
    """
    effect = fitted_effect(rows, nuisances, settings.learner, settings.effect)
    low, high = (float(end) for end in box.study.outcome_range)
    supremum = largest_influence(nuisances, effect, settings.learner, box, (low, high), settings.search).value
    if settings.formula == PROOF:
        supremum /= float(np.mean(loss_at(nuisances, settings.learner, rows.x, rows.treated).weight))
    return PublishedQueries(effect(points), supremum * factor)


def release(gate: Gate, found: PublishedQueries, box: FeatureBox, rows: int) -> Floats:
    """Return the noisy answers."""
    low, high = box.study.outcome_range
    least = Fraction(high - low) / rows
    scale = max(Fraction(found.scale), least / 2**20)
    noisy = release_vector_scaled(
        gate, "answers", [Fraction(float(value)) for value in found.effects], scale, least
    )
    return np.array([float(value) for value in noisy])


# The published scale: the largest influence function of a record, found by many searches and by sampling.
#
# What is maximised is |rho (phi - g)|, over E[lambda] in the proofs (Lemma 2 and (49)) and not in the main text (11).
# It is linear in the outcome, so that only the two ends of its range count. The search is the published one, L-BFGS-B
# in the box of features, from its centre; that alone finds too little where learners are piecewise constant, so it is
# also started from the best of many random points and corners, which count by themselves.


@dataclass(frozen=True, slots=True)
class Supremum:
    """The largest value found, and what the published single search from the centre finds."""

    value: float
    single: float


def largest_influence(
    nuisances: StageModels,
    effect: Function,
    learner: str,
    box: FeatureBox,
    outcome_range: tuple[float, float],
    search: SupremumSearch,
) -> Supremum:
    """Return the supremum of |rho (phi - g)| over the box, both treatments and the range of the outcome."""

    def influence(points: Floats) -> Floats:
        fitted, sizes = effect(points), []
        for treated in (False, True):
            loss = loss_at(nuisances, learner, points, np.full(len(points), treated))
            sizes += [np.abs(loss.rho * (loss.phi(end) - fitted)) for end in outcome_range]
        return np.asarray(np.max(sizes, axis=0), dtype=np.float64)

    drawn = [box.draw(search.points // 2, _SEED, corners) for corners in (False, True)]
    points = np.unique(np.vstack(drawn), axis=0)
    sampled = influence(points)
    best = points[np.argsort(sampled)[::-1][: search.starts // 2]]
    others = box.draw(search.starts - len(best), _SEED + 1)
    single = _climb(influence, _centre(box), box.free)
    found = [_climb(influence, start, box.free) for start in (*best, *others)]
    return Supremum(max([single, float(sampled.max()), *found]), single)


def published_factor(budget: Budget, rows: int) -> float:
    """Return 5 sqrt(2 ln n ln(2/delta)) / (epsilon n), by which the supremum is multiplied."""
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    return 5 * sqrt(2 * log(rows) * log(2 / delta)) / (epsilon * rows)


def _centre(box: FeatureBox) -> Floats:
    """Return the middle of the box, with the first of a set of labels."""
    return np.where(box.free, 0.5, box.draw(1, _SEED)[0])


def _climb(influence: Function, start: Floats, free: NDArray[np.bool_]) -> float:
    """Return the largest value on the way of one search; features that are not free stay."""
    from scipy.optimize import minimize  # loaded by those who need it: it takes a fifth of a second

    places = np.flatnonzero(free)
    best = float(influence(start[None])[0])
    if not len(places):
        return best

    def falling(values: Floats) -> tuple[float, Floats]:
        nonlocal best
        points = np.tile(start, (len(places) + 1, 1))
        points[:, places] = values
        # Forward differences, backward at the upper end, all in one prediction.
        steps = np.where(values + _STEP <= 1, _STEP, -_STEP)
        points[np.arange(1, len(points)), places] += steps
        found = influence(points)
        best = max(best, float(found[0]))
        return -float(found[0]), -(found[1:] - found[0]) / steps

    minimize(
        falling,
        start[places],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(places),
        options={"maxiter": _MOST_STEPS},
    )
    return best
