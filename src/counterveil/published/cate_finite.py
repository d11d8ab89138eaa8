"""Effects at finitely many queries as they were published (Theorem 1): any learner, noise by influence functions.

Its privacy claim is refuted. What is drawn is what is printed: nuisances on one part of the rows, a regression of
pseudo-outcomes on the other, and independent normal noise whose scale is the largest influence function of a
record times 5 sqrt(2 ln n ln(2/delta)) / (epsilon n).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Proof
from counterveil.published.cate_influence import largest_influence, published_factor
from counterveil.published.cate_learners import learner_label, require_learners
from counterveil.published.cate_losses import (
    FeatureBox,
    Nuisances,
    Rows,
    fitted_effect,
    fitted_nuisances,
    loss_at,
)
from counterveil.published.cate_settings import (
    PROOF,
    InfluenceSettings,
    asked_queries,
    paper_answers,
    paper_plan,
    paper_request,
)
from counterveil.results.cate_answers import CateAnswers
from counterveil.results.cate_question import CateQuestion
from counterveil.session import Custody, Gate

Floats = NDArray[np.float64]

REMARK = (
    "the published claim is false: the influence function is that of an average and is used for the effect at every "
    "query, so that the number of queries does not enter; a forest or a network moves by far more than that over n "
    "when one record changes; rows of the nuisances are not counted at all; and the scale of the noise follows the "
    "rows. The ledger is charged the claimed epsilon and delta"
)


@dataclass(frozen=True, slots=True)
class Published:
    """The non-private answers and the private scale of their noise."""

    effects: Floats
    scale: float


def finite_queries(custody: Custody, question: CateQuestion) -> CateAnswers:
    """Return the published answers at the queries, marked as refuted."""
    settings = question.settings or InfluenceSettings()
    queries = asked_queries(question)
    plan = paper_plan(question)
    question.require_acceptance(Proof.REFUTED, REMARK)
    require_learners(settings.outcome, settings.propensity, settings.effect)
    box = FeatureBox.of(custody.study)
    points = box.points(queries.columns)

    def compute(gate: Gate) -> dict[str, object]:
        rows = box.rows(custody.table)
        parts = two_parts(len(rows), settings.first_rows(len(rows)))
        nuisances = fitted_nuisances(
            rows.part(parts[0]), settings.outcome, settings.propensity, settings.clip
        )
        factor = published_factor(question.budget, settings.counted_rows(len(rows)))
        found = published(rows.part(parts[1]), nuisances, points, box, settings, factor)
        answers = release(gate, found, box, len(rows))
        return paper_answers(
            custody,
            question,
            answers,
            # The scale follows the rows, so no interval can be told.
            noise=float("inf"),
            remark=REMARK,
            method=f"{settings.learner}-learner, second stage {learner_label(settings.effect)}, influence-function "
            "noise, as published",
            release="normal noise on each, of a scale that follows the rows and is not told",
            interval_of="no quantity: the scale of the published noise is private, so that none can be given",
        ).stored()

    return CateAnswers.from_dict(custody.run(paper_request(question, plan, custody.study, settings), compute))


def published(
    rows: Rows,
    nuisances: Nuisances,
    points: Floats,
    box: FeatureBox,
    settings: InfluenceSettings,
    factor: float,
) -> Published:
    """Return the answers of the second stage fitted to these rows, and their scale; private numbers.

    `factor` is what the largest influence is multiplied by.
    """
    effect = fitted_effect(rows, nuisances, settings.learner, settings.effect)
    low, high = (float(end) for end in box.study.outcome_range)
    supremum = largest_influence(nuisances, effect, settings.learner, box, (low, high), settings.search).value
    if settings.formula == PROOF:
        supremum /= float(np.mean(loss_at(nuisances, settings.learner, rows.x, rows.treated).weight))
    return Published(effect(points), supremum * factor)


def release(gate: Gate, found: Published, box: FeatureBox, rows: int) -> Floats:
    """Return the noisy answers."""
    low, high = box.study.outcome_range
    least = Fraction(high - low) / rows
    scale = max(Fraction(found.scale), least / 2**20)
    noisy = gate.release_vector_scaled("answers", [Fraction(float(v)) for v in found.effects], scale, least)
    return np.array([float(value) for value in noisy])
