"""Difference in means of a trial whose arms are public: one draw for the effect, one for its variance.

Lineage: the difference in means of a randomised experiment with its conservative variance (Neyman 1923).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from counterveil.data import Study, Sums, Table
from counterveil.data.domains import outcome_unit
from counterveil.data.table import arm_sizes
from counterveil.estimators.linear.effect import (
    NAMES,
    PLACE_PAGE,
    TYPICAL_SD,
    WHOLE_RANGE,
    Interval,
    LinearEffect,
    clustered_effect,
    effect_plan,
    find_interval,
    known_error,
    mechanisms,
    place_part,
    release_words,
    searched,
    variance_share,
)
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.clusters import ClusterUncertainty
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arm_totals import TwoArms, arm_totals
from counterveil.results.answering import Facts, answer_request
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import Result
from counterveil.rows.linear.sensitivity import MeanContrast, SitesContrast
from counterveil.session import BaseSession, Gate, Released
from counterveil.settings.methods import asked_share

# Rows of an arm that its variance needs.
FEWEST = 2
PAGE = "rows/linear/difference_in_means.proof.md"


def difference_in_means(session: BaseSession, question: Question) -> Result:
    """Return the private difference in means; outcomes are private, who was treated is public."""
    source, study = session.batches, session.study
    if study.clustered:
        return clustered_effect(session, question, by_rows(session.table, question))
    (sizes,) = source.run(partial(arm_sizes, arms=2))
    sites = session.public("arms", tuple(map(int, sizes)), FEWEST)
    control, treated = map(sum, zip(*sites, strict=True))
    lo, hi = study.outcome_range
    sensitivity = SitesContrast(hi - lo, sites)
    smallest = float(min(sensitivity.sizes))
    share = chosen_share(sensitivity, question)
    place_share = Fraction(0)
    if asked_share(question.settings) is None and not _whole_clusters(study):
        place_share = place_part(study, smallest, sensitivity, sensitivity.squares, share, question)
    plan = effect_plan(question, share, place_share)

    def compute(gate: Gate) -> Facts:
        interval = find_interval(gate, source, plan, sensitivity, smallest)
        bounds = replace(sensitivity, width=sensitivity.width * interval.part)
        (sums,) = source.run(partial(arm_sums, interval=interval))
        step = outcome_unit(study.outcome_bounds) * interval.part
        weight = Fraction(int(sizes.sum()), treated + control)
        effect, variance = release(gate, TwoArms.of(sums), step, bounds, share > 0, weight=weight)
        return Facts(
            estimate=float(effect),
            uncertainty=_uncertainty(effect, variance, bounds, study, interval.hidden(study)),
            method=f"difference in means{f' within {len(sites)} sites' if len(sites) > 1 else ''}",
            releases=(
                *searched(plan),
                *release_words(bounds, share > 0, ("difference in means", "its variance")),
            ),
            not_covered=interval.not_covered(study, causal_caveats(study, question.estimand)),
            details={
                "rows": source.rows,
                "treated": treated,
                "control": control,
                **interval.details(study),
                "mechanism": question.mechanism,
                "variance_budget_share": plan.parts.get(NAMES[1], 0.0),
            },
            independent_variance=True,
        )

    pages = (PAGE, PLACE_PAGE) if place_share else (PAGE,)
    return answer_request(Result, session, question, plan, compute, pages=pages, mechanisms=mechanisms(plan))


def arm_sums(table: Table, interval: Interval = WHOLE_RANGE) -> Sums:
    """Return the totals of both arms, outcomes clamped to their place."""
    return (arm_totals(table.treated, interval.clamped(table.outcome)).sums,)


def by_rows(table: Table, question: Question) -> LinearEffect:
    """Return the same as a weighted sum of the outcomes."""
    treated = int(table.treated.sum())
    control = table.rows - treated
    return LinearEffect(
        method="difference in means",
        coefficients=np.where(table.treated, 1 / treated, -1 / control),
        pairs=None,
        not_covered=causal_caveats(table.study, question.estimand),
        details={"rows": table.rows, "treated": treated, "control": control},
    )


def chosen_share(sensitivity: MeanContrast | SitesContrast, question: Question) -> Fraction:
    """Return the share of the budget for the variance: the one asked for, else chosen from public numbers alone."""
    declared = asked_share(question.settings)
    if declared is not None:
        return declared
    typical = TYPICAL_SD**2 * sensitivity.width**2 * sensitivity.squares
    return variance_share(sensitivity, question, typical)


def release(
    gate: Gate,
    arms: TwoArms,
    unit: Fraction,
    sensitivity: MeanContrast | SitesContrast,
    with_variance: bool,
    names: tuple[str, str] = NAMES,
    weight: Fraction = Fraction(1),
) -> tuple[Released, Released | None]:
    """Return the released difference in means, times a public weight, and its variance where it is paid for."""
    unit = unit * weight
    difference = (arms.treated.mean() - arms.control.mean()) * unit
    effect = gate.release(names[0], difference, sensitivity.estimate)
    if not with_variance:
        return effect, None
    variance = arms.treated.variance() / arms.treated.count + arms.control.variance() / arms.control.count
    return effect, gate.release(names[1], variance * unit**2, sensitivity.variance)


def _whole_clusters(study: Study) -> bool:
    return study.person is not None and study.person.whole_cluster


def _uncertainty(
    effect: Released, variance: Released | None, sensitivity: SitesContrast, study: Study, hidden: float
) -> Uncertainty:
    plain = known_error(effect, variance, sensitivity.variance_cap, hidden**2)
    if not _whole_clusters(study):
        return with_rare_events(plain, study.outcome_range, map(float, sensitivity.sizes))
    # Clusters are few: Student's t, with the degrees of freedom of the two variances if they are equal.
    freedom = float(
        sensitivity.squares**2 / sum(Fraction(1, arm**2 * (arm - 1)) for arm in sensitivity.sizes)
    )
    variances = plain.variance, plain.variance_cap, plain.variance_noise
    return ClusterUncertainty(effect.noise, *variances, freedom=freedom)
