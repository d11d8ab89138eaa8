"""Matching on the propensity score where only outcomes are private: one draw at the exact sensitivity.

Lineage: matching on the propensity score (Rosenbaum and Rubin 1983) with replacement (Abadie and Imbens 2006) and a
limit on how often a row serves, after PrivATE (Yuan et al.), whose published form is in `published`.
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.data import Study, Table
from counterveil.data.features import require_covariates
from counterveil.privacy.caveats import Caveat, Fact
from counterveil.results.question import Question, adjusted_caveats
from counterveil.results.result import Result
from counterveil.session import BaseSession
from counterveil.settings import Matching
from counterveil.settings.methods import AUTO, BEST, assumed_sd
from counterveil.statistics.linear.budget import effect_plan
from counterveil.statistics.linear.clustered import effect_of
from counterveil.statistics.linear.effect import PAGE, LinearEffect, design_diagnostics
from counterveil.statistics.linear.kernels.pairing import consecutive_pairs
from counterveil.statistics.linear.matching_design import Matched, Scored, chosen_match, scored
from counterveil.statistics.linear.outcome_variance import PAGE as VARIANCE_PAGE
from counterveil.statistics.linear.outcome_variance import expected_part, variance_by_arm


def matching(session: BaseSession, question: Question) -> Result:
    """Return the private matching estimate; covariates, treatments and the order of rows are public."""
    require_covariates(session.study, "matching")
    return effect_of(session, question, matched_effect(session.table, question))


def matched_effect(table: Table, question: Question) -> LinearEffect:
    """Return the linear estimator of a table's matched effect; reads public columns only."""
    settings = question.settings or Matching()
    design = scored(table)
    unit_noise = effect_plan(question, Fraction(0)).noise("effect", Fraction(1)).variance
    matched = chosen_match(
        design,
        settings,
        question.estimand.value,
        float(question.budget.epsilon),
        unit_noise,
        assumed_sd(table.study.outcome_range),
    )
    coefficients = matched.matching.coefficients
    variance = variance_by_arm(table, design, settings, coefficients, question)
    pairs = None
    if variance is None:
        # Neighbours on the score: the variance then holds the chance imbalance that matching on it leaves.
        pairs = consecutive_pairs(design.by_score.by_score(arm) for arm in (False, True))
    return LinearEffect(
        method="matching on the propensity score",
        coefficients=coefficients,
        pairs=pairs,
        variance=variance,
        pages=(PAGE,) if variance is None else (PAGE, VARIANCE_PAGE),
        expected_part=1.0 if variance is None else expected_part(variance, coefficients),
        not_covered=caveats(table.study, matched, by_arm=variance is not None),
        details=matching_details(design, matched, settings),
        diagnostics=design_diagnostics(design.features, design.treated, design.score, coefficients),
    )


def caveats(study: Study, matched: Matched, *, by_arm: bool = False) -> tuple[Fact, ...]:
    """Return what an interval around a matching estimate does not cover; with `by_arm`, one variance a part."""
    found = [Caveat.MATCHING_BIAS]
    found += [Caveat.UNMATCHED] if matched.matching.unmatched else []
    found += [Caveat.UNEVEN_VARIANCE] if by_arm else []
    return adjusted_caveats(study, *found)


def matching_details(design: Scored, matched: Matched, settings: Matching) -> dict[str, float | str]:
    """Return the single figures of a matching, all public."""
    found = matched.matching
    treated, control = design.arms
    limits = ["no limit" if limit is None else limit for limit in matched.limits]
    return {
        "rows": treated + control,
        "treated": treated,
        "control": control,
        "neighbours": settings.neighbours,
        "limit": _limit_name(settings),
        "max_uses_treated": limits[0],
        "max_uses_control": limits[1],
        "matches_at_limit": found.at_limit,
        "unmatched": found.unmatched,
        "short_of_neighbours": found.short,
        "max_weight_times_rows": found.largest * len(found.coefficients),
    }


def _limit_name(settings: Matching) -> str:
    if settings.limit is None:
        return "none"
    return BEST if settings.limit == AUTO else str(settings.limit)
