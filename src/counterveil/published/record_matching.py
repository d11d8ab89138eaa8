"""Matching with private records as it was published (PrivATE, sample level): kept to be compared with.

Its privacy claim is refuted. It draws what the paper prints: Laplace noise on weights without intercept,
calibrated for an exact minimiser; scores with the width of [0, 1]; randomized response; the limit of
equation 12, which may leave too little capacity; two Laplace draws at (k+1)B.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.data.features import UnitFeatures, require_covariates
from counterveil.inference import Uncertainty
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.numerics.matching import adaptive_limit, arm_limits, matching_coefficients
from counterveil.numerics.mirrored_rows import MirroredRows
from counterveil.numerics.propensity import fit_propensity, logistic_scores
from counterveil.privacy import Proof
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Custody, Gate, Kind, Plan, Released, Responses
from counterveil.statistics.moments.matching_sensitivity import SCORE_STEPS, ScoreRange
from counterveil.statistics.moments.record_matching import (
    PAGE,
    RecordMatchingSettings,
    not_covered,
    record_matching_plan,
    shrinkage_of,
)

Floats = NDArray[np.float64]

REMARK = (
    "the published claim is false: it is stated for adding or removing a person, where no finite epsilon holds; "
    "its weights are taken for an exact minimum; and where units run out one outcome moves the sums by more "
    "than (k+1)B. The ledger is charged the claimed epsilon; details give what this draw lost at least"
)


@dataclass(frozen=True, slots=True)
class PublishedMatch:
    """The coefficients, the published limits (k_1, k_2), and what the last step loses per unit of its claim."""

    form: LinearForm
    limits: tuple[int, int]
    excess: float


def record_matching_paper(custody: Custody, question: Question) -> Result:
    """Return the published form, marked as refuted."""
    require_covariates(custody.study, "matching")
    settings = question.settings or RecordMatchingSettings()
    plan = record_matching_plan(question, settings, Kind.CELLS, "laplace")
    question.require_acceptance(Proof.REFUTED, REMARK)

    def compute(gate: Gate) -> dict[str, object]:
        features = UnitFeatures.of(custody.study)
        z = features.values(custody.table)
        z += features.middle
        fitted = fit_without_intercept(z, custody.table.treated, settings.penalty)
        scores, responses = release_scores(gate, custody.table, z, fitted, settings.penalty)
        matched = match(scores, responses, settings, float(plan.amount("effect")))
        effect = release_sums(gate, plan, custody.table, matched)
        return _result(custody, question, plan, responses, matched, effect).stored()

    return Result.from_dict(custody.run(question.request(plan, custody.study), compute))


def fit_without_intercept(z: Floats, treated: NDArray[np.bool_], penalty: float) -> Floats:
    """Return the weights of the model that the paper prints, which has no intercept."""
    # Every row and its mirror image: the intercept of such a fit is zero, as if there were none.
    return fit_propensity(MirroredRows(z, z), np.concatenate([treated, ~treated]), penalty).weights[:-1]


def release_scores(
    gate: Gate, table: Table, z: Floats, fitted: Floats, penalty: float
) -> tuple[Floats, Responses]:
    """Return scores in steps and treatments, with the published noise; z are features in [0, 1]."""
    claimed = Fraction(2 * z.shape[1], table.rows) / Fraction(penalty)
    weights = gate.release_cells("weights", [Fraction(w) for w in fitted], claimed).floats()
    steps = np.floor(np.nan_to_num(logistic_scores(z, np.append(weights, 0.0))) * SCORE_STEPS).astype(
        np.int64
    )
    scores = gate.release_rows("scores", steps, 0, SCORE_STEPS, ScoreRange(0, SCORE_STEPS).step)
    return scores, gate.respond("treatments", table.treated)


def match(
    scores: Floats, responses: Responses, settings: RecordMatchingSettings, epsilon: float
) -> PublishedMatch:
    """Return the matching under equation 12, whether or not that leaves enough capacity."""
    treated = int(np.count_nonzero(responses.values))
    free = matching_coefficients(responses.values, scores, settings.neighbours)
    most = float(free.uses.max(initial=0)) / settings.neighbours
    larger = max(treated, len(scores) - treated)
    limits = arm_limits(
        adaptive_limit(epsilon, settings.h, larger, most, capped=False), treated, len(scores) - treated
    )
    first, second = (k * settings.neighbours for k in limits)
    found = matching_coefficients(responses.values, scores, settings.neighbours, first, second)
    allowed = np.where(responses.values, limits[0] + 1, limits[1] + 1) / len(scores)
    excess = float((np.abs(found.coefficients) / allowed).max(initial=0.0))
    return PublishedMatch(linear_form(found.coefficients), limits, max(1.0, excess))


def release_sums(gate: Gate, plan: Plan, table: Table, matched: PublishedMatch) -> Released:
    """Return the difference of the two sums divided by n, each with its published Laplace draw."""
    lo, hi = table.study.outcome_range
    narrow, wide = (Fraction(k + 1, table.rows) * (hi - lo) for k in sorted(matched.limits))
    value = matched.form.total(table.outcome) * table.outcome_unit
    return gate.release_twice("effect", value, wide, narrow / plan.amount("effect"))


def _result(
    custody: Custody,
    question: Question,
    plan: Plan,
    responses: Responses,
    matched: PublishedMatch,
    effect: Released,
) -> Result:
    study, shrinkage = custody.study, shrinkage_of(responses)
    lo, hi = study.outcome_range
    cap = float((hi - lo) ** 2 * matched.form.squares / 4)
    lost = float(question.budget.epsilon) + (matched.excess - 1) * float(plan.amount("effect"))
    return Result(
        estimate=float(effect),
        uncertainty=Uncertainty(effect.noise, cap, cap),
        guarantee=question.guarantee(
            custody, PAGE, (REMARK,), Proof.REFUTED, laws=("laplace_pair", "response")
        ),
        method="matching on released scores, as published",
        **question.effect_terms(study),
        releases=(
            ("weights of the propensity model", "Laplace noise on each, as published"),
            ("everyone's score", "noise on each"),
            ("everyone's treatment", f"randomized response, true with probability {shrinkage.truth:.3g}"),
            ("matched contrast", "two Laplace draws, as published"),
        ),
        not_covered=not_covered(shrinkage, debias=False),
        details={
            "rows": custody.table.rows,
            "law": "laplace",
            "limits": f"{matched.limits[0]}, {matched.limits[1]}",
            "shrinkage": shrinkage.factor,
            "debiased_estimate": float(effect) / shrinkage.factor,
            "min_epsilon_loss": lost,
        },
        interval_of="the contrast of randomized treatments, which randomized response shrinks towards zero",
    )
