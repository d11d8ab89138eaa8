"""Exact matching on strata with bounded weights: nobody's outcome counts more than a public number of times.

A stratum with t treated and c controls speaks for h = min(t + c, w t, w c) people (ATE), so that no coefficient
exceeds the limit w and every sensitivity is a public constant. The effect is the average over strata with
weights h: where the limit does not bind these are the numbers of people. Sums of h are released as well.

Lineage: subclassification on covariates (Cochran 1968) as exact matching; the limit on weights is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

from counterveil.data import Study
from counterveil.inference import Uncertainty
from counterveil.numerics.strata import RANGE_STEPS, Strata, bounded_variance, effect_sum, weight_sum
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, Fact, StrataLeftOut
from counterveil.results.question import Question
from counterveil.results.result import Result
from counterveil.session import Gate, KnownSensitivityMechanism, Plan, Released, Session
from counterveil.settings import Stratified
from counterveil.statistics.strata.data import StrataReader, read_strata
from counterveil.statistics.strata.sensitivity import BoundedStrata


def caveats(study: Study, own: Fact) -> tuple[Fact, ...]:
    """Return what the interval does not cover, from what the study declares."""
    open_to = () if study.randomised is True else (Caveat.CONFOUNDING_WITHIN_STRATA,)
    return (*open_to, own, Caveat.CLAMPING, Caveat.FIXED_STRATA)


PAGE = "statistics/strata/bounded_strata.proof.md"
# The weight kept is never taken below this, whatever the noise says: fewer strata cannot be compared anyway.
_LEAST_KEPT = Fraction(1, 50)
# The effect, in widths of the outcome's range, for which the budget is split.
_TYPICAL_EFFECT = 0.2


@dataclass(frozen=True, slots=True)
class Released3:
    """The three released numbers: sums of effects, of weights and of variances, each divided by its rows."""

    effect: Released
    weight: Released
    variance: Released


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


def stratified(session: Session, question: Question) -> Result:
    """Return the effect with bounded weights; n and the layout of the strata are public, nothing else is."""
    settings = question.settings or Stratified()
    limit = settings.exact_limit
    width = session.study.outcome_bounds.width
    reader = read_strata(session, settings)
    own = budget_shares(reader.rows, question.budget, question.mechanism, limit, question.estimand)
    plan = Plan.split(question.budget, reader.shares(own), question.mechanism, reader.kinds())

    def compute(gate: Gate) -> dict[str, object]:
        strata, cuts = reader.released(gate)
        claim = BoundedStrata(reader.rows, limit, question.estimand)
        found = release(gate, strata, claim, width)
        return _result(session, question, reader, plan, claim, found, cuts).stored()

    return Result.from_dict(session.run(question.request(plan, session.study), compute))


def release(gate: Gate, strata: Strata, claim: BoundedStrata, width: Fraction) -> Released3:
    """Return the released mean of h (effect), mean of h, and variance of the former."""
    rows, word = claim.rows, claim.estimand.value
    unit = width / RANGE_STEPS
    effect = effect_sum(strata, word, claim.limit) * unit / rows
    weight = weight_sum(strata, word, claim.limit) / rows
    variance = bounded_variance(strata, word, claim.limit) * unit**2 / rows**2
    return Released3(
        gate.release("effect", effect, claim.effect * width / rows),
        gate.release("weight", weight, claim.weight / rows),
        gate.release("variance", variance, claim.variance * width**2 / rows**2),
    )


def _uncertainty(
    plan: Plan, claim: BoundedStrata, width: Fraction, found: Released3, kept: Fraction, estimate: float
) -> Uncertainty:
    """Return the uncertainty of (sum of effects) / (sum of weights), given the strata."""
    rows, share = claim.rows, float(kept)
    noise: KnownSensitivityMechanism = plan.noise("effect", claim.effect * width / rows / kept)
    variance_noise = plan.noise("variance", claim.variance * width**2 / (rows * kept) ** 2)
    # h^2 (v_1/t + v_0/c) is at most 2 w h times the largest variance, half a squared range for two rows.
    cap = float(claim.limit * width**2 / rows) / share
    extra = estimate**2 * found.weight.noise.variance / share**2
    return Uncertainty(noise, float(found.variance) / share**2, cap, variance_noise, extra)


def _result(
    session: Session,
    question: Question,
    reader: StrataReader,
    plan: Plan,
    claim: BoundedStrata,
    found: Released3,
    cuts: dict[str, float | str],
) -> Result:
    study, rows = session.study, claim.rows
    width = study.outcome_bounds.width
    kept = min(max(found.weight.value, _LEAST_KEPT), Fraction(1))
    estimate = float(found.effect.value / kept)
    return Result(
        estimate=estimate,
        uncertainty=_uncertainty(plan, claim, width, found, kept, estimate),
        guarantee=reader.guarantee(question, (PAGE,)),
        method=f"exact matching on strata, weights up to {float(claim.limit):g}",
        **question.effect_terms(study),
        releases=_releases(claim, width, reader),
        not_covered=caveats(study, StrataLeftOut(question.estimand, float(claim.limit))),
        details={
            **cuts,
            "rows": rows,
            "strata": reader.public,
            "weight_limit": float(claim.limit),
            "weight_kept": float(kept),
            "budget": plan.shares,
            "mechanism": question.mechanism,
        },
    )


def _releases(claim: BoundedStrata, width: Fraction, reader: StrataReader) -> tuple[tuple[str, str], ...]:
    rows, b = claim.rows, float(width)
    return (
        *reader.releases(),
        ("sum of stratum effects / n", f"sensitivity {float(claim.effect) * b / rows:.6g}"),
        ("sum of stratum weights / n", f"sensitivity {float(claim.weight) / rows:.6g}"),
        ("variance of the former", f"sensitivity {float(claim.variance) * b**2 / rows**2:.6g}"),
    )
