"""Standardised means of both arms over strata where only outcomes are private, for ratios and odds ratios.

    mean_a = sum_s h_s ybar_as / H,    variance_a = sum_s h_s^2 v_as / m_as / H^2,    H = sum_s h_s,

with ybar_as, v_as and m_as the mean outcome, the sample variance and the number of rows of arm a in stratum s
(for one row v_as is a quarter of the squared range). The weight h_s says for how many people a stratum
speaks. With t treated and c controls in it and the public limit w (`strata.limit`: how often one person's
outcome may count at most) it is

    h_s = min(t + c, w t, w c) (ATE),    min(t, w c) (ATT),    min(c, w t) (ATC),

and 0 where an arm is missing.

This is direct standardisation, or subclassification on covariates (Cochran 1968) [1]_: within strata the arms
are compared as in a trial, and both are weighted to the same people. In: public strata, treatments, counts
and weights; private outcomes. Released, with noise: either mean measured from the lower end `low` of the
declared range, which is added back, in units of the outcome, and its variance in squared units. Out: both
means with their errors, from which the measure and its interval are made.

Privacy: one outcome is in one arm of one stratum. It moves that arm's mean by at most (width of the range)
times the largest h_s / (m_as H), and the other arm not at all. Proof: `rows/strata/strata_outcome.proof.md`
("each arm by itself"). As an outcome moves one arm alone, both arms' means are released for the price of one:
`session/parallel.proof.md`.

References
----------
.. [1] Cochran, W. G. (1968). The effectiveness of adjustment by subclassification in removing bias in
   observational studies. Biometrics 24, 295-313.
"""

from __future__ import annotations

from counterveil.estimators.method import Prepared
from counterveil.estimators.strata.caveats import caveats
from counterveil.estimators.strata.outcome_effect import PAGE
from counterveil.estimators.strata.public_strata import public_strata, variance_part
from counterveil.inference.arm_means import IndependentArmMeans
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.privacy.provenance import Estimator, Quantity, QuantityOf, ReleaseRow, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import MeasureResult
from counterveil.rows.public import PublicData
from counterveil.rows.strata.outcome_effect import StratifiedMeans
from counterveil.rows.strata.outcome_sensitivity import StrataOutcome
from counterveil.session import Gate, Plan
from counterveil.session.session import in_parallel

_ARMS = ("treated", "control")
_MEANS = tuple(f"mean of {arm}" for arm in _ARMS)
_VARIANCES = tuple(f"variance of {arm}" for arm in _ARMS)


def stratified_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the private measure of both arms' means over strata; strata, treatments and counts are public."""
    study = public.study
    strata = public_strata(public, question)
    width = study.outcome_bounds.width
    treated, control = (
        StrataOutcome.of_arm(width, strata.weights, counts=counts, total=strata.total, rows=strata.sizes.rows)
        for counts in (strata.sizes.treated, strata.sizes.control)
    )
    arms = (treated, control)
    sums = StratifiedMeans(
        arms,
        question.estimand.value,
        strata.limit,
        names=((_MEANS[0], _VARIANCES[0]), (_MEANS[1], _VARIANCES[1])),
    )
    variance_share = variance_part(question.budget, question.mechanism)
    split = Plan.split(
        question.budget, {"effect": 1 - variance_share, "variance": variance_share}, question.mechanism
    )
    plan = in_parallel(split, {"effect": _MEANS, "variance": _VARIANCES})

    def estimate(gate: Gate) -> Facts:
        means = []
        uncertainties = []
        for bounds, (mean, variance) in zip(arms, sums.release(gate, strata.counted), strict=True):
            # A sample variance is at most half a squared range (that of two rows), and h^2 / m at most h
            # times the largest h / m (`bounds.weight`; m: the arm's rows in the stratum), so that the sum is
            # at most this.
            cap = float(bounds.weight * width**2 / (2 * strata.total))
            means.append(float(mean))
            uncertainties.append(Uncertainty(mean.noise, float(variance), cap, variance.noise))
        low, high = map(float, study.outcome_range)
        numbers = IndependentArmMeans(
            (low + means[0], low + means[1]),
            (uncertainties[0], uncertainties[1]),
            (low, high),
            strata.effective_sizes,
        )
        releases: list[ReleaseRow] = []
        for bounds, arm in zip(arms, _ARMS, strict=True):
            mean_of_arm = QuantityOf(Quantity.MEAN_OVER_STRATA_OF, arm)
            variance_of_arm = QuantityOf(Quantity.ITS_VARIANCE_OVER_STRATA_OF, arm)
            releases.append((mean_of_arm, Sensitivity(float(bounds.effect))))
            releases.append((variance_of_arm, Sensitivity(float(bounds.variance))))
        details = strata.details(question.estimand, max(arms, key=lambda arm: arm.weight))
        return Facts(
            measure=question.measure,
            numbers=numbers,
            method=Estimator.MEANS_OVER_STRATA,
            releases=tuple(releases),
            not_covered=caveats(study, StrataLeftOut(question.estimand, float(strata.limit))),
            details=details
            | {"budget": split.shares, "mechanism": question.mechanism}
            | {"mean_treated": numbers.values[0], "mean_control": numbers.values[1]},
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=MeasureResult,
        pages=(PAGE, "session/parallel.proof.md"),
    )
