"""Effect by exact matching on strata where whole records are private, with bounded weights.

    effect = sum h (mean_1 - mean_0) / sum h,    h = min(t + c, w t, w c) (ATE),

over strata with t treated and c controls, h being for how many people a stratum speaks; min(t, w c) for the
ATT and min(c, w t) for the ATC. The public limit w bounds how often one person's outcome counts, so that
every sensitivity is a public constant; where it does not bind, weights are the numbers of people.

In: private rows, of which only the number n and the layout of strata are public. Released, each with noise:
sum h (mean_1 - mean_0) / n in units of the outcome, sum h / n (a share of the rows), and the variance of the
first in squared units. Out: their ratio, with an error that has the noise of both (delta method).

Proof: `rows/strata/bounded_strata.proof.md`, how far one replaced row moves the three sums. The split of the
budget over them is chosen from public numbers for a supposed effect; privacy does not depend on it. Lineage:
subclassification on covariates (Cochran 1968) [1]_ as exact matching; the limit on weights is ours.

References
----------
.. [1] Cochran, W. G. (1968). The effectiveness of adjustment by subclassification in removing bias in
   observational studies. Biometrics 24, 295-313.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

from counterveil.estimators.method import Prepared
from counterveil.estimators.strata.caveats import caveats
from counterveil.estimators.strata.cut_points import StratifiedData, cut_details, stratified_data
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import StrataLeftOut
from counterveil.privacy.provenance import LimitedStrata, Quantity, ReleaseRow, Sensitivity
from counterveil.results.answering import Facts
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.rows.public import PublicData
from counterveil.rows.strata.bounded_effect import BoundedEffect, ReleasedBoundedEffect
from counterveil.rows.strata.sensitivity import BoundedStrata
from counterveil.session import Gate, KnownSensitivityMechanism, Plan
from counterveil.settings import Stratified

PAGE = "rows/strata/bounded_strata.proof.md"
# The weight kept is never taken below this, whatever the noise says: fewer strata cannot be compared anyway.
_LEAST_KEPT = Fraction(1, 50)
# The effect, in widths of the outcome's range, for which the budget is split.
_TYPICAL_EFFECT = 0.2


def stratified(public: PublicData, question: Question) -> Prepared[Result]:
    """Return the effect with bounded weights; n and the layout of the strata are public, nothing else is."""
    settings = question.settings or Stratified()
    limit = settings.exact_limit
    data = stratified_data(public, settings)
    shares = budget_shares(
        data.rows, question.budget, mechanism=question.mechanism, limit=limit, estimand=question.estimand
    )
    plan = Plan.split(question.budget, data.shares(shares), question.mechanism, data.kinds)
    bounds = BoundedStrata(data.rows, limit, question.estimand)
    sums = BoundedEffect(bounds, public.study.outcome_bounds.width)

    def estimate(gate: Gate) -> Facts:
        cuts = data.release_cuts(gate)
        released = sums.release(gate, data.counted, data.layout(cuts))
        weight_kept = min(max(released.weight.value, _LEAST_KEPT), Fraction(1))
        effect = float(released.effect.value / weight_kept)
        return Facts(
            estimate=effect,
            uncertainty=_uncertainty(plan, sums, released=released, weight_kept=weight_kept, effect=effect),
            method=LimitedStrata(float(limit)),
            releases=_releases(sums, data),
            not_covered=caveats(public.study, StrataLeftOut(question.estimand, float(limit))),
            details={
                **cut_details(cuts),
                "rows": data.rows,
                "strata": data.most_strata,
                "weight_limit": float(limit),
                "weight_kept": float(weight_kept),
                "budget": plan.shares,
                "mechanism": question.mechanism,
            },
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        pages=(PAGE, *data.pages),
        mechanisms=(question.mechanism, *data.mechanisms),
    )


@lru_cache(maxsize=64)
def budget_shares(
    rows: int, budget: Budget, mechanism: str, limit: Fraction, estimand: Estimand
) -> dict[str, Fraction]:
    """Return the split over effect, weight and variance with the smallest expected error.

    Reads public numbers only. The expectation is taken for outcomes in [0, 1] and a typical effect.
    """
    claim = BoundedStrata(rows, limit, estimand)

    def expected(shares: dict[str, Fraction]) -> float:
        plan = Plan.split(budget, shares, mechanism)
        effect = plan.noise("effect", claim.effect / rows).variance
        weight = plan.noise("weight", claim.weight / rows).variance
        variance = sqrt(plan.noise("variance", claim.variance / rows**2).variance)
        return effect + _TYPICAL_EFFECT**2 * weight + variance

    splits = [
        {"effect": 1 - weight - variance, "weight": weight, "variance": variance}
        for weight, variance in product(
            [Fraction(k, 20) for k in range(2, 7)], [Fraction(k, 20) for k in range(1, 6)]
        )
    ]
    return min(splits, key=expected)


def _uncertainty(
    plan: Plan, sums: BoundedEffect, released: ReleasedBoundedEffect, weight_kept: Fraction, effect: float
) -> Uncertainty:
    """Return the uncertainty of (mean of effects) / (mean of weights), given the strata.

    By the delta method the noise of the weight adds effect^2 times its variance, over the squared weight.
    """
    share = float(weight_kept)
    noise: KnownSensitivityMechanism = plan.noise("effect", sums.effect_bound / weight_kept)
    variance_noise = plan.noise("variance", sums.variance_bound / weight_kept**2)
    # h^2 (v_1/t + v_0/c) is at most 2 w h times the largest variance, half a squared range for two rows.
    cap = float(sums.bounds.limit * sums.width**2 / sums.bounds.rows) / share
    extra = effect**2 * released.weight.noise.variance / share**2
    return Uncertainty(
        noise=noise,
        variance=float(released.variance) / share**2,
        variance_cap=cap,
        variance_noise=variance_noise,
        extra=extra,
    )


def _releases(sums: BoundedEffect, data: StratifiedData) -> tuple[ReleaseRow, ...]:
    rows = sums.bounds.rows
    width = float(sums.width)
    return (
        *data.releases,
        (Quantity.STRATUM_EFFECTS, Sensitivity(float(sums.bounds.effect) * width / rows)),
        (Quantity.STRATUM_WEIGHTS, Sensitivity(float(sums.bounds.weight) / rows)),
        (Quantity.VARIANCE_OF_FORMER, Sensitivity(float(sums.bounds.variance) * width**2 / rows**2)),
    )
