"""Effects on several outcomes, and by period, where everything about a person is private.

The share treated is released once; then the mean of everyone, the contrast and its second moment of all outcomes, as in
`contrast.py`, each of the three for all outcomes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt

from counterveil.data import OUTCOME_STEPS, silence
from counterveil.data.panels import change_unit, complete_sizes, period_totals
from counterveil.inference.measures import JointMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.columns import TwoArms
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import EventStudyResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, causal_caveats
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.statistics.moments.contrast import (
    PAGES,
    POOLED,
    Contrast,
    Setting,
    centred_on_everyone,
    least_error_centre,
    moments,
    pooled_shares,
    release_contrast,
    release_share,
)
from counterveil.statistics.moments.sensitivity import CentredContrast, mean_of_everyone
from counterveil.statistics.moments.trial import MEAN_PART
from counterveil.statistics.outcome_place import NAME as EARLIER
from counterveil.statistics.outcome_place import PAGE as EARLIER_PAGE
from counterveil.statistics.outcome_place import PART as EARLIER_PART
from counterveil.statistics.outcome_place import Outcomes, slopes_said, totals_by_arm, with_slopes

PAGE = "statistics/moments/several_outcomes.proof.md"
_VECTORS = ("centre", "contrast", "moment")


@silence()
def record_effects(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects on all outcomes; n is public and nothing else is."""
    source, study = session.batches, session.study
    rows = source.rows
    plan = effects_plan(question, outcomes, rows)

    means = question.measure in OF_MEANS

    def compute(gate: Gate) -> Facts:
        chosen = outcomes
        if outcomes.measured_before:
            chosen = with_slopes(gate, source, outcomes, 4 / rows, _unit_noise(plan, outcomes, rows))
        arms = [TwoArms(treated, control) for control, treated in totals_by_arm(source, chosen)]
        found = release(gate, plan, arms, chosen, study.treated_share)
        pages = (PAGE, *PAGES[POOLED], *((EARLIER_PAGE,) if chosen.slopes else ()))
        drawn = (*chosen.mechanisms(question.mechanism), question.mechanism)
        return Facts(
            guarantee=question.guarantee(session, pages, mechanisms=drawn),
            released=tuple(
                OutcomeEffect(name, None, _numbers(*one, ends, means))
                for name, one, ends in zip(chosen.names, found, chosen.ranges, strict=True)
            ),
            measure=question.measure,
            method=f"difference in means (centred contrast){', less earlier numbers' if chosen.slopes else ''}",
            releases=_releases(chosen, rows),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details=slopes_said(chosen)
            | {
                "rows": rows,
                "share_treated": float(found[0][0].setting.share),
                "mechanism": chosen.drawn(question.mechanism),
            },
            interval_target=None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
        )

    said = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return settled(OutcomesResult, session, question, plan, compute, said=said)


def _releases(outcomes: Outcomes, rows: int) -> tuple[tuple[str, str], ...]:
    return (
        ("share treated", f"sensitivity {1 / rows:.6g}"),
        *((("moments with earlier numbers", "each moves by at most 1/rows"),) if outcomes.slopes else ()),
        *((f"{what}s of {len(outcomes.names)} outcomes", "each moves by its own bound") for what in _VECTORS),
    )


def effects_plan(question: Question, outcomes: Outcomes, rows: int) -> Plan:
    """Return the split over the share treated and, of all outcomes, centres, contrasts and moments.

    The split is the one that a single outcome would have with as much noise.
    """
    part = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(part).limit_denominator(10**6)
    shares = dict(pooled_shares(rows, Budget(epsilon, question.budget.delta), question.mechanism))
    if question.measure in OF_MEANS:
        left = (1 - MEAN_PART) / (1 - shares["centre"])
        shares = {name: one * left for name, one in shares.items()} | {"centre": MEAN_PART}
    kinds = dict.fromkeys(_VECTORS, Kind.SEVERAL)
    if outcomes.measured_before:
        shares = {EARLIER: EARLIER_PART} | {name: one * (1 - EARLIER_PART) for name, one in shares.items()}
        kinds[EARLIER] = Kind.SEVERAL
    return Plan.split(question.budget, shares, question.mechanism, kinds)


def _unit_noise(plan: Plan, outcomes: Outcomes, rows: int) -> list[float]:
    """Return the variance of each contrast's noise, in units of its squared range, for equal arms."""
    bound = [Fraction(2, rows)] * len(outcomes.names)
    return [one.variance for one in plan.several_noise("contrast", bound, outcomes.weights)]


# Proof: several_outcomes.proof.md
def release(
    gate: Gate, plan: Plan, arms: Sequence[TwoArms], outcomes: Outcomes, declared: Fraction | None
) -> list[tuple[Contrast, Released]]:
    """Return the released contrast and mean of every outcome."""
    rows, weights, widths = arms[0].count, outcomes.weights, outcomes.widths
    units = [width / OUTCOME_STEPS for width in widths]
    share, share_variance = release_share(gate, arms[0], declared)
    pooled = [
        Fraction(one.treated.total + one.control.total, rows) * unit
        for one, unit in zip(arms, units, strict=True)
    ]
    means = gate.release_several(
        "centre", pooled, [mean_of_everyone(width, rows) for width in widths], weights
    )
    noise = plan.several_noise("contrast", [Fraction(1)] * len(widths), weights)
    settings = []
    for mean, width, own in zip(means, widths, noise, strict=True):
        start = min(max(mean.value, Fraction(0)), width)
        centre = least_error_centre(start, width, rows, share, share_variance, own.variance)
        shift, spread = float(start - centre), sqrt(mean.noise.variance)
        settings.append(Setting(share, share_variance, centre, shift, spread))
    bounds = [
        CentredContrast(width, rows, share, one.centre) for width, one in zip(widths, settings, strict=True)
    ]
    exact = [moments(one, unit, setting) for one, unit, setting in zip(arms, units, settings, strict=True)]
    effects = gate.release_several(
        "contrast", [first for first, _ in exact], [b.mean for b in bounds], weights
    )
    limits = [b.second_moment for b in bounds]
    squares = gate.release_several("moment", [second for _, second in exact], limits, weights)
    found = []
    for place, each in enumerate(zip(settings, bounds, effects, squares, strict=True)):
        of_variance = plan.several_noise("moment", [limits[place] / rows] * len(limits), weights)[place]
        found.append((Contrast(*each, of_variance), means[place]))
    return found


def _numbers(
    one: Contrast, mean: Released, outcome_range: tuple[Fraction, Fraction], means: bool
) -> Linear | JointMeans:
    """Return what is known of one outcome: the difference, or both arms' means."""
    low, high = map(float, outcome_range)
    if means:
        return one.both_means(mean.noise, (low, high))
    sizes = one.setting.arm_sizes(one.sensitivity.rows)
    known = with_rare_events(one.uncertainty(), outcome_range, sizes)
    return Linear(float(one.effect), known, (low - high, high - low))


# Effects by period where everything about a person is private: a centred contrast of changes for each period.
#
# The share treated is released once, and then for each period a centre, the contrast and its second moment, as in
# `contrast.py`. A person is in all of them, so that the budget is divided: of Gaussian noise, its square.


EVENT_STUDY_PAGE = "statistics/moments/event_study.proof.md"


def record_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; n is public and nothing else is."""
    study, before = session.study, session.study.before
    assert before is not None
    source = session.batches
    rows, _ = complete_sizes(source)
    others = [period for period in range(study.measured) if period != place]
    plan = periods_plan(question, rows, others)

    labels, unit = before.labels(study.outcome), change_unit(study)
    width, reference = float(unit * OUTCOME_STEPS), labels[place]

    def compute(gate: Gate) -> Facts:
        _, since = period_totals(source, place)
        share, effects = release_share(gate, since[place], study.treated_share), []
        for period in others:
            found = release_periods(gate, plan, since[period], unit, share, period)
            known = Linear(*found, (-width, width))
            effects.append(Effect(labels[period], known, question.level, len(others)))
        return Facts(
            periods=tuple(effects),
            reference=reference,
            place=place,
            outcome=study.outcome,
            earlier=before.earlier,
            guarantee=question.guarantee(session, (EVENT_STUDY_PAGE, *PAGES[POOLED]), reference=reference),
            method="difference in means (centred contrast)",
            releases=(
                ("share treated", f"sensitivity {1 / rows:.6g}"),
                *(
                    (f"centre, contrast and second moment at {one.name}", "one release each")
                    for one in effects
                ),
            ),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details={"rows": rows, "share_treated": float(share[0]), "mechanism": question.mechanism},
        )

    said = {"question": "event_study", "reference": place}
    return settled(EventStudyResult, session, question, plan, compute, said=said)


def periods_plan(question: Question, rows: int, periods: list[int]) -> Plan:
    """Return the split over the share treated and, alike for all periods, centre, contrast and moment."""
    one = pooled_shares(rows, question.budget, question.mechanism)
    shares = {"share": one["share"]}
    for period in periods:
        shares |= {f"{what} {period}": part / len(periods) for what, part in one.items() if what != "share"}
    return Plan.split(question.budget, shares, question.mechanism)


# Proof: event_study.proof.md
def release_periods(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    share: tuple[Fraction, float],
    period: int,
) -> tuple[float, Uncertainty]:
    """Return the released contrast of one period's changes and its uncertainty."""
    width, (centre, contrast, moment) = unit * OUTCOME_STEPS, (f"{what} {period}" for what in _VECTORS)
    setting = centred_on_everyone(gate, plan, arms, unit, width, *share, (centre, contrast))
    found = release_contrast(gate, plan, arms, unit, width, setting, (contrast, moment))
    return float(found.effect), found.uncertainty()
