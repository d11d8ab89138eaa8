"""Exact matching on strata where only outcomes are private: counts are public, so are all weights.

Lineage: subclassification on covariates (Cochran 1968) as exact matching.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.errors import CounterveilError, refusal
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.numerics.arrays import Floats
from counterveil.numerics.strata import (
    RANGE_STEPS,
    Strata,
    bounded_variance,
    effect_sum,
    stratum_weights,
    unmatched_rows,
    weight_sum,
)
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, Plan, Session
from counterveil.settings import Stratified
from counterveil.statistics.strata.bounded import caveats
from counterveil.statistics.strata.data import read_strata
from counterveil.statistics.strata.sensitivity import StrataOutcome

PAGE = "statistics/strata/strata_outcome.proof.md"


@lru_cache(maxsize=64)
def variance_part(budget: Budget, mechanism: str) -> Fraction:
    """Return the part of the budget for the variance that adds least to a short interval."""

    def expected(part: Fraction) -> float:
        plan = Plan.split(budget, {"effect": 1 - part, "variance": part}, mechanism)
        # The variance's noise widens the interval about as its own standard deviation does.
        return plan.noise("effect", Fraction(1)).variance + sqrt(plan.noise("variance", Fraction(1)).variance)

    return min((Fraction(k, 20) for k in range(1, 9)), key=expected)


def stratified_outcome(session: Session, question: Question) -> Result:
    """Return the effect with noise for one outcome; strata, treatments and counts are public."""
    settings = question.settings or Stratified()
    strata, cuts = read_strata(session, settings).free()
    word = question.estimand.value
    limit = settings.exact_limit
    width = session.study.outcome_bounds.width
    weights = stratum_weights(strata, word, limit)
    total = weight_sum(strata, word, limit)
    if total == 0:
        raise nothing_matched()
    claim = StrataOutcome.of(width, weights, strata.treated, strata.control, total)
    sizes = arm_sizes(strata, weights, float(total))
    part = variance_part(question.budget, question.mechanism)
    plan = Plan.split(question.budget, {"effect": 1 - part, "variance": part}, question.mechanism)

    def compute(gate: Gate) -> dict[str, object]:
        unit = width / RANGE_STEPS
        effect = gate.release("effect", effect_sum(strata, word, limit) * unit / total, claim.effect)
        exact = bounded_variance(strata, word, limit) * unit**2 / total**2
        variance = gate.release("variance", exact, claim.variance)
        # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
        cap = float(claim.weight * width**2 / total)
        plain = Uncertainty(effect.noise, float(variance), cap, variance.noise)
        known = with_rare_events(plain, session.study.outcome_range, sizes)
        details = strata_details(strata, question.estimand, claim) | cuts
        details |= {"budget": plan.shares, "mechanism": question.mechanism}
        return _result(session, question, float(effect), known, claim, limit, details).stored()

    return Result.from_dict(session.run(question.request(plan, session.study), compute))


def _result(
    session: Session,
    question: Question,
    estimate: float,
    known: Uncertainty,
    claim: StrataOutcome,
    limit: Fraction,
    details: dict[str, float | str],
) -> Result:
    study = session.study
    return Result(
        estimate=estimate,
        uncertainty=known,
        guarantee=question.guarantee(session, PAGE),
        method="exact matching on strata",
        **question.effect_terms(study),
        releases=(
            ("average of stratum effects", f"sensitivity {float(claim.effect):.6g}"),
            ("its variance", f"sensitivity {float(claim.variance):.6g}"),
        ),
        not_covered=caveats(study, StrataLeftOut(question.estimand, float(limit))),
        details=details,
        variance_apart=True,
    )


def arm_sizes(strata: Strata, weights: Floats, total: float) -> tuple[float, float]:
    """Return how many people of equal weight each arm is worth."""
    used, shares = weights > 0, weights[weights > 0] / total
    treated, control = (
        1 / float((shares**2 / counts[used]).sum()) for counts in (strata.treated, strata.control)
    )
    return treated, control


def strata_details(strata: Strata, estimand: Estimand, claim: StrataOutcome) -> dict[str, float | str]:
    """Return public numbers of strata for a result."""
    both = (strata.treated > 0) & (strata.control > 0)
    return {
        "rows": strata.rows,
        "strata": strata.public,
        "matched_strata": int(np.count_nonzero(both)),
        "unmatched": unmatched_rows(strata, estimand.value),
        "max_weight": float(claim.weight),
    }


def nothing_matched() -> CounterveilError:
    """Return CV-S081."""
    return refusal("CV-S081")
