"""Exact matching on strata where only outcomes are private: counts are public, so are all weights.

    effect = (1/H) sum h (mean_1 - mean_0),    variance = (1/H^2) sum h^2 (v_1/t + v_0/c),

in units of the outcome and in squared ones; both are released.
"""

from __future__ import annotations

from counterveil.estimators.method import Prepared
from counterveil.estimators.strata.caveats import caveats
from counterveil.estimators.strata.public_strata import public_strata, variance_part
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.privacy.provenance import Estimator, Quantity, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.public import PublicData
from counterveil.rows.strata.outcome_effect import StratifiedEffect
from counterveil.rows.strata.outcome_sensitivity import StrataOutcome
from counterveil.session import Gate, Plan

PAGE = "rows/strata/strata_outcome.proof.md"


def stratified_outcome(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the effect with noise for one outcome; strata, treatments and counts are public."""
    study = public.study
    strata = public_strata(public, question)
    width = study.outcome_bounds.width
    sizes = strata.sizes
    bounds = StrataOutcome.of(
        width, strata.weights, treated=sizes.treated, control=sizes.control, total=strata.total
    )
    contrast = StratifiedEffect(bounds, question.estimand.value, strata.limit)
    variance_share = variance_part(question.budget, question.mechanism)
    plan = Plan.split(
        question.budget, {"effect": 1 - variance_share, "variance": variance_share}, question.mechanism
    )

    def estimate(gate: Gate) -> Facts:
        effect, variance = contrast.release(gate, strata.counted)
        # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
        cap = float(bounds.weight * width**2 / strata.total)
        plain = Uncertainty(effect.noise, float(variance), cap, variance.noise)
        details = strata.details(question.estimand, bounds)
        return Facts(
            estimate=float(effect),
            uncertainty=with_rare_events(plain, study.outcome_range, strata.effective_sizes),
            method=Estimator.STRATIFIED,
            releases=(
                (Quantity.STRATUM_AVERAGE, Sensitivity(float(bounds.effect))),
                (Quantity.ITS_VARIANCE, Sensitivity(float(bounds.variance))),
            ),
            not_covered=caveats(study, StrataLeftOut(question.estimand, float(strata.limit))),
            details=details | {"budget": plan.shares, "mechanism": question.mechanism},
            independent_variance=True,
        )

    return Prepared(question=question, plan=plan, estimate=estimate, pages=PAGE)
