"""Exact matching on strata with bounded weights: nobody's outcome counts more than a public number of times.

A stratum with t treated and c controls speaks for h = min(t + c, w t, w c) people (ATE), so that no coefficient
exceeds the limit w and every sensitivity is a public constant. The effect is the average over strata with
weights h: where the limit does not bind these are the numbers of people. Sums of h are released as well.

Lineage: subclassification on covariates (Cochran 1968) as exact matching; the limit on weights is ours.

Exact matching on strata where only outcomes are private: counts are public, so are all weights.

Lineage: subclassification on covariates (Cochran 1968) as exact matching.

Means of both arms over strata where only outcomes are private, for ratios and odds ratios.

One outcome is in one arm, so that both means are released for the price of one (`session/parallel.proof.md`). Means are
standardised: those of strata count with the weights that their difference has (direct standardisation).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import sqrt

import numpy as np

from counterveil.data import Study
from counterveil.errors import CounterveilError, refusal
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.inference.measures import ApartMeans
from counterveil.numerics.arrays import Floats
from counterveil.numerics.strata import (
    RANGE_STEPS,
    Strata,
    arm_variances,
    bounded_variance,
    effect_sum,
    mean_sums,
    stratum_weights,
    unmatched_rows,
    weight_sum,
)
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, Fact, StrataLeftOut
from counterveil.results.answering import Facts, settled
from counterveil.results.question import Question
from counterveil.results.result import MeasureResult, Result
from counterveil.session import BaseSession, Gate, KnownSensitivityMechanism, Plan, Released
from counterveil.session.plan import in_parallel
from counterveil.settings import Stratified
from counterveil.statistics.strata.data import StrataReader, read_strata
from counterveil.statistics.strata.sensitivity import BoundedStrata, StrataOutcome


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


def stratified(session: BaseSession, question: Question) -> Result:
    """Return the effect with bounded weights; n and the layout of the strata are public, nothing else is."""
    settings = question.settings or Stratified()
    limit = settings.exact_limit
    width = session.study.outcome_bounds.width
    reader = read_strata(session, settings)
    own = budget_shares(reader.rows, question.budget, question.mechanism, limit, question.estimand)
    plan = Plan.split(question.budget, reader.shares(own), question.mechanism, reader.kinds())

    def compute(gate: Gate) -> Facts:
        strata, cuts = reader.released(gate)
        claim = BoundedStrata(reader.rows, limit, question.estimand)
        found = release(gate, strata, claim, width)
        kept = min(max(found.weight.value, _LEAST_KEPT), Fraction(1))
        estimate = float(found.effect.value / kept)
        return Facts(
            estimate=estimate,
            uncertainty=_uncertainty(plan, claim, width, found, kept, estimate),
            guarantee=reader.guarantee(question, (PAGE,)),
            method=f"exact matching on strata, weights up to {float(limit):g}",
            releases=_releases(claim, width, reader),
            not_covered=caveats(session.study, StrataLeftOut(question.estimand, float(limit))),
            details={
                **cuts,
                "rows": reader.rows,
                "strata": reader.public,
                "weight_limit": float(limit),
                "weight_kept": float(kept),
                "budget": plan.shares,
                "mechanism": question.mechanism,
            },
        )

    return settled(Result, session, question, plan, compute)


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


def _releases(claim: BoundedStrata, width: Fraction, reader: StrataReader) -> tuple[tuple[str, str], ...]:
    rows, b = claim.rows, float(width)
    return (
        *reader.releases(),
        ("sum of stratum effects / n", f"sensitivity {float(claim.effect) * b / rows:.6g}"),
        ("sum of stratum weights / n", f"sensitivity {float(claim.weight) / rows:.6g}"),
        ("variance of the former", f"sensitivity {float(claim.variance) * b**2 / rows**2:.6g}"),
    )


OUTCOME_PAGE = "statistics/strata/strata_outcome.proof.md"


@lru_cache(maxsize=64)
def variance_part(budget: Budget, mechanism: str) -> Fraction:
    """Return the part of the budget for the variance that adds least to a short interval."""

    def expected(part: Fraction) -> float:
        plan = Plan.split(budget, {"effect": 1 - part, "variance": part}, mechanism)
        # The variance's noise widens the interval about as its own standard deviation does.
        return plan.noise("effect", Fraction(1)).variance + sqrt(plan.noise("variance", Fraction(1)).variance)

    return min((Fraction(k, 20) for k in range(1, 9)), key=expected)


def stratified_outcome(session: BaseSession, question: Question) -> Result:
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

    def compute(gate: Gate) -> Facts:
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
        estimate = float(effect)
        study = session.study
        return Facts(
            estimate=estimate,
            uncertainty=known,
            method="exact matching on strata",
            releases=(
                ("average of stratum effects", f"sensitivity {float(claim.effect):.6g}"),
                ("its variance", f"sensitivity {float(claim.variance):.6g}"),
            ),
            not_covered=caveats(study, StrataLeftOut(question.estimand, float(limit))),
            details=details,
            independent_variance=True,
        )

    return settled(Result, session, question, plan, compute, pages=OUTCOME_PAGE)


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


_ARMS = ("treated", "control")
_MEANS, _VARIANCES = (tuple(f"{what} of {arm}" for arm in _ARMS) for what in ("mean", "variance"))


def stratified_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of both arms' means over strata; strata, treatments and counts are public."""
    settings = question.settings or Stratified()
    strata, cuts = read_strata(session, settings).free()
    word, width = question.estimand.value, session.study.outcome_bounds.width
    limit = settings.exact_limit
    weights, total = stratum_weights(strata, word, limit), weight_sum(strata, word, limit)
    if total == 0:
        raise nothing_matched()
    claims = [
        StrataOutcome.of_arm(width, weights, counts, total, strata.rows)
        for counts in (strata.treated, strata.control)
    ]
    sizes = arm_sizes(strata, weights, float(total))
    part = variance_part(question.budget, question.mechanism)
    split = Plan.split(question.budget, {"effect": 1 - part, "variance": part}, question.mechanism)
    plan = in_parallel(split, {"effect": _MEANS, "variance": _VARIANCES})

    def compute(gate: Gate) -> Facts:
        unit = width / RANGE_STEPS
        values = [one * unit / total for one in mean_sums(strata, word, limit)]
        variances = [one * unit**2 / total**2 for one in arm_variances(strata, word, limit)]
        found = []
        for place, claim in enumerate(claims):
            mean = gate.release(_MEANS[place], values[place], claim.effect)
            variance = gate.release(_VARIANCES[place], variances[place], claim.variance)
            # An arm's variance is at most half a squared range (two rows), h^2/m at most the weight times h.
            cap = float(claim.weight * width**2 / (2 * total))
            found.append((float(mean), Uncertainty(mean.noise, float(variance), cap, variance.noise)))
        details = strata_details(strata, question.estimand, max(claims, key=lambda one: one.weight)) | cuts
        details |= {"budget": split.shares, "mechanism": question.mechanism}
        low, high = map(float, session.study.outcome_range)
        (one, first), (other, second) = found
        means = ApartMeans((low + one, low + other), (first, second), (low, high), sizes)
        releases = []
        for place, claim in enumerate(claims):
            releases += [
                (f"{_MEANS[place]} over strata", f"sensitivity {float(claim.effect):.6g}"),
                (f"its {_VARIANCES[place]}", f"sensitivity {float(claim.variance):.6g}"),
            ]
        return Facts(
            measure=question.measure,
            numbers=means,
            method="means of both arms over strata",
            releases=tuple(releases),
            not_covered=caveats(session.study, StrataLeftOut(question.estimand, float(limit))),
            details=details | {"mean_treated": means.values[0], "mean_control": means.values[1]},
        )

    return settled(MeasureResult, session, question, plan, compute, pages=(PAGE, "session/parallel.proof.md"))
