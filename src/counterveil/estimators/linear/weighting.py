"""Weighting and matching where only outcomes are private: public coefficients, one draw at the exact sensitivity.

Lineage: weights that minimise variance subject to balance (stable balancing weights, Zubizarreta 2015), here with
squared imbalance in the objective as in kernel optimal matching (Kallus 2020), and with the privacy noise, which the
largest weight sets, as a third term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study, Table
from counterveil.data.domains import to_steps
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.effect import (
    EFFECT_PAGE,
    LinearEffect,
    chosen_residual_variance,
    chosen_share,
    covariate_diagnostics,
    design_diagnostics,
    effect_of,
    effect_plan,
    expected_part,
    variance_by_arm,
)
from counterveil.estimators.linear.effect import PAGE as VARIANCE_PAGE
from counterveil.estimators.linear.kernels.pairing import consecutive_pairs, covariate_pairs
from counterveil.estimators.linear.matching_design import Matched, Scored, chosen_match, scored
from counterveil.estimators.linear.spline_score import ScoredRows, spline_score
from counterveil.estimators.linear.weighting_design import Weighted, weighted
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import Caveat, Fact, LinearIn, OtherFunctions, ResidualImbalance
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, adjusted_caveats, design_says
from counterveil.results.result import Result
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.session import BaseSession
from counterveil.settings import Matching, Weighting
from counterveil.settings.methods import (
    AUTO,
    BEST,
    BY_ARM,
    BY_ROW,
    FOR_VALUE_ALONE,
    IN_TRIALS,
    asked_share,
    assumed_sd,
)


def weighting_design(table: Table, settings: Weighting) -> ScoredRows:
    """Return the arms and scores that weights are made from."""
    if table.score is not None:
        return ScoredRows(table.treated, table.score)
    # What a trial's treatment seems to follow is chance.
    leaves = "tree_leaves" in settings.balanced and table.study.randomised is not True
    return spline_score(table, "selected_terms" in settings.balanced, leaves)


def weighting(session: BaseSession, question: Question) -> Result:
    """Return the private weighted effect; covariates, treatments and the order of rows are public."""
    require_covariates(session.study, "weighting")
    return effect_of(session, question, weighted_effect(session.table, question))


def weighted_effect(rows: Table, question: Question) -> LinearEffect:
    """Return the linear estimator of a table's weighted effect; reads public columns only."""
    settings = _supposing(question.settings or Weighting(), question, rows.study)
    table = arms_apart(adjusted_table(rows, settings))
    design = weighting_design(table, settings)
    share = asked_share(question.settings)
    noise_variance = unit_noise(question, share, design.arms)
    balanced = weighted(table, design, settings, question.estimand, noise_variance)
    by_row = settings.variance_by == BY_ROW
    variance = None if by_row else chosen_residual_variance(balanced, table.treated, question)
    not_covered = caveats(rows.study, balanced, settings)
    details = weighting_details(design, balanced)
    coefficients, score = balanced.weights, design.score
    # Weights that are the inverse of known scores need no allowance; those that noise or balance moved do.
    bias = settings.allowed_bias(rows.study.randomised is True, len(rows.study.covariates))
    bias *= balanced.distance if settings.bias is None else 1.0
    features = balanced.features
    assumptions = design_says(rows.study) if rows.study.unconfounded else LinearIn(features.shape[1])
    # Features take the most memory: little else is held beside them, and they are not held beside what follows.
    del balanced, design
    pairs = covariate_pairs(table.treated, features) if by_row else None
    del features
    return LinearEffect(
        method="weighting for balance" if rows.study.score is None else "weighting by inverse known scores",
        coefficients=coefficients,
        pairs=pairs,
        variance=variance,
        pages=(EFFECT_PAGE,) if by_row else (EFFECT_PAGE, VARIANCE_PAGE),
        expected_part=1.0 if variance is None else expected_part(variance, coefficients),
        not_covered=not_covered,
        details=details,
        diagnostics=covariate_diagnostics(table, score, coefficients),
        table=table,
        remarks=_remarks(settings),
        share=share,
        bias=bias,
        assumptions=assumptions,
    )


def _supposing(settings: Weighting, question: Question, study: Study) -> Weighting:
    """Return the settings with what is supposed of outcomes where the interval holds what less balance leaves.

    The largest variance there can be holds it. So does, in a trial, one variance an arm, which keeps as much of what
    covariates explain as the imbalance calls for. Pairs of rows do not, nor do variances of either arm's mean, for
    which the imbalance of that arm counts.
    """
    value_alone = asked_share(question.settings) == 0
    interval_holds = value_alone or (settings.variance_by == BY_ARM and question.measure not in OF_MEANS)
    default_sds = settings.assumed_sds(study.outcome_range)
    factor = FOR_VALUE_ALONE if value_alone else 1.0
    signal_factor = factor * (IN_TRIALS if interval_holds and study.unconfounded else 1.0)
    return replace(
        settings,
        signal=settings.signal or signal_factor * default_sds[0],
        residual=settings.residual or factor * default_sds[1],
    )


def unit_noise(question: Question, share: Fraction | None, arms: tuple[int, int]) -> float:
    """Return the variance of the effect's noise at sensitivity one, `share` of the budget being the variance's.

    Where the share is to be chosen it depends on the weights, and the weights on the noise; the share that
    equal weights would get is near enough.
    """
    if share is not None:
        return effect_plan(question, share).noise("effect", Fraction(1)).variance
    treated_share, control_share = Fraction(1, arms[0]), Fraction(1, arms[1])
    largest = max(treated_share, control_share)
    equal = LinearEstimate(Fraction(1), largest, treated_share + control_share, 2 * largest**2)
    share = chosen_share(equal, question)
    return effect_plan(question, share).noise("effect", Fraction(1)).variance


def adjusted_table(table: Table, settings: Weighting) -> Table:
    """Return the table with the prediction subtracted from its outcomes, clamped to the residuals' range.

    The new outcome of a row is a function of its old one and of its prediction, which is public, so that a
    change of one outcome is still a change of one value inside the range.
    """
    study = table.study
    if settings.prediction is None or settings.residual_range is None:
        return table
    if not isinstance(study.covariates.get(settings.prediction), Range):
        raise refusal("CV-P222", prediction=settings.prediction)
    bounds = Range(*settings.residual_range, name="the residuals")
    lowest = float(study.outcome_range[0])
    values = lowest + float(table.outcome_unit) * table.outcome - table.covariates[settings.prediction]
    rules = {name: rule for name, rule in study.missing.items() if name != study.outcome}
    moved = study._changed(outcome_range=(bounds.lo, bounds.hi), missing=rules)
    return replace(table, study=moved, outcome=to_steps(values, bounds), measures=())


@dataclass(frozen=True, slots=True)
class Ordered(Mapping[str, Floats]):
    """Columns with their rows in an order, made whenever one is read: no copy of all is kept."""

    columns: Mapping[str, Floats]
    order: NDArray[np.intp]

    def __getitem__(self, name: str) -> Floats:
        return np.take(self.columns[name], self.order)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def arms_apart(table: Table) -> Table:
    """Return the table with the treated rows first: an arm whose rows follow each other is read where it is."""
    order = np.argsort(~table.treated, kind="stable")
    sorted_rows = replace(
        table,
        arm=table.arm[order],
        treated=table.treated[order],
        outcome=table.outcome[order],
        covariates={},
        measures=tuple(values[order] for values in table.measures),
        cluster=None if table.cluster is None else table.cluster[order],
    )
    return replace(sorted_rows.sealed(), covariates=Ordered(table.covariates, order))


def caveats(study: Study, weights: Weighted, settings: Weighting) -> tuple[Fact, ...]:
    """Return what an interval around a weighted effect does not cover."""
    clamped = Caveat.CLAMPING if settings.prediction is None else Caveat.CLAMPING_OF_PREDICTED
    return (
        *(() if study.unconfounded else (Caveat.CONFOUNDING,)),
        ResidualImbalance(weights.imbalance),
        OtherFunctions(tuple(settings.balanced)),
        *(() if settings.variance_by == BY_ROW else (Caveat.UNEVEN_VARIANCE,)),
        clamped,
    )


def weighting_details(design: ScoredRows, weights: Weighted) -> dict[str, float | str]:
    """Return the single figures of a weighting, all public."""
    treated, control = design.arms
    largest = float(abs(weights.weights).max())
    return {
        "rows": treated + control,
        "treated": treated,
        "control": control,
        "residual_imbalance": weights.imbalance,
        **({"selected_terms": len(design.followed.columns)} if design.followed else {}),
        "max_weight_times_rows": largest * (treated + control),
        "max_weight_ratio": largest * min(treated, control),
    }


def _remarks(settings: Weighting) -> tuple[str, ...]:
    if settings.prediction is None:
        return ()
    return (
        f"the column {settings.prediction!r} is taken as public: the guarantee is false if it was computed "
        "from outcomes of this study",
    )


# Matching on the propensity score where only outcomes are private: one draw at the exact sensitivity.
#
# Lineage: matching on the propensity score (Rosenbaum and Rubin 1983) with replacement (Abadie and Imbens 2006) and a
# limit on how often a row serves, after PrivATE (Yuan et al.), whose published form is in `published`.


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
        pages=(EFFECT_PAGE,) if variance is None else (EFFECT_PAGE, VARIANCE_PAGE),
        expected_part=1.0 if variance is None else expected_part(variance, coefficients),
        not_covered=matching_caveats(table.study, matched, by_arm=variance is not None),
        details=matching_details(design, matched, settings),
        diagnostics=design_diagnostics(design.features, design.treated, design.score, coefficients),
    )


def matching_caveats(study: Study, matched: Matched, *, by_arm: bool = False) -> tuple[Fact, ...]:
    """Return what an interval around a matching estimate does not cover; with `by_arm`, one variance a part."""
    listed = [Caveat.MATCHING_BIAS]
    listed += [Caveat.UNMATCHED] if matched.matching.unmatched else []
    listed += [Caveat.UNEVEN_VARIANCE] if by_arm else []
    return adjusted_caveats(study, *listed)


def matching_details(design: Scored, matched: Matched, settings: Matching) -> dict[str, float | str]:
    """Return the single figures of a matching, all public."""
    matches = matched.matching
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
        "matches_at_limit": matches.at_limit,
        "unmatched": matches.unmatched,
        "short_of_neighbours": matches.short,
        "max_weight_times_rows": matches.largest * len(matches.coefficients),
    }


def _limit_name(settings: Matching) -> str:
    if settings.limit is None:
        return "none"
    return BEST if settings.limit == AUTO else str(settings.limit)
