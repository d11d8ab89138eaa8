"""Effect by exact matching on strata where only outcomes are private; treatments and counts are public.

    effect = (1/H) sum h (mean_1 - mean_0),    variance = (1/H^2) sum h^2 (v_1/t + v_0/c),    H = sum h,

over strata with rows of both arms, t treated and c controls, with the arms' mean outcomes mean_1 and mean_0
and sample variances v_1 and v_0 (of one row: a quarter of the squared range). The public weight h says for
how many people a stratum speaks, in people: with the limit w on how often one outcome counts it is min(t + c,
w t, w c) for the average effect of everyone.

In: public strata and counts; private outcomes. Out: effect and variance with their noise, in units of the
outcome and in squared ones. Right because within strata the arms are compared like those of a trial
(subclassification, Cochran 1968 [1]_). One outcome has the coefficient h / (m H) in the effect, m being the
rows of its arm and stratum, so that the largest of them bounds what it moves. Proof:
`rows/strata/strata_outcome.proof.md`.

References
----------
.. [1] Cochran, W. G. (1968). The effectiveness of adjustment by subclassification in removing bias in
   observational studies. Biometrics 24, 295-313.
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
        # A sample variance is at most half a squared range (that of two rows), and h^2 / m at most h times
        # the largest h / m (`bounds.weight`; m: the arm's rows in the stratum); there are two arms.
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
