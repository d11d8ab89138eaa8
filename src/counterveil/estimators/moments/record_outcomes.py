"""Effects on several outcomes where everything about a person is private.

The share treated is released once; then the mean of everyone, the centred contrast and its second moment of
all outcomes, each of the three for all outcomes together.

The centred contrast of an outcome y is the mean of t (y - c)/q - (1 - t)(y - c)/(1 - q), with t the
treatment, q the released share treated and c a centre made of released numbers; it estimates the difference
in means, in units of y. Each release moves by a bounded amount in every outcome at once. Proofs:
`rows/moments/several_outcomes.proof.md`, `rows/moments/centred_contrast.proof.md`, and where earlier values
of outcomes are subtracted `rows/earlier_values.proof.md`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

from counterveil.estimators.earlier_values import PAGE as EARLIER_PAGE
from counterveil.estimators.earlier_values import PART as EARLIER_PART
from counterveil.estimators.earlier_values import slope_details, with_slopes
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.contrast import (
    PAGES,
    POOLED,
    Contrast,
    Setting,
    least_error_centre,
    pooled_shares,
    release_share,
)
from counterveil.estimators.moments.trial_means import MEAN_PART
from counterveil.inference.arm_means import JointArmMeans, with_rare_events
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.privacy.provenance import (
    Bounded,
    Estimator,
    LessEarlierNumbers,
    Quantity,
    QuantityOf,
    ReleaseRow,
    Sensitivity,
)
from counterveil.results.answering import Facts
from counterveil.results.arms import OutcomeEffect, OutcomesResult
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.earlier_values import NAME as EARLIER
from counterveil.rows.moments.several_outcomes import PrivateOutcomes, several_by_arm
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan, Released

PAGE = "rows/moments/several_outcomes.proof.md"
# What is released of all outcomes together.
_VECTORS = ("centre", "contrast", "moment")
# Denominator of the epsilon that a single outcome would need.
_EPSILON_DENOMINATOR = 10**6


def record_effects(public: PublicData, question: Question, outcomes: Outcomes) -> Prepared[OutcomesResult]:
    """Return the effects on all outcomes; n is public and nothing else is."""
    study = public.study
    rows = public.rows
    plan = effects_plan(question, outcomes, rows)
    means = question.measure in OF_MEANS
    # Whether slopes are released is public, what they are is not yet: it changes no mechanism.
    drawn = replace(outcomes, slopes=(0,) * len(outcomes.names)) if outcomes.measured_before else outcomes

    def estimate(gate: Gate) -> Facts:
        compared = outcomes
        if outcomes.measured_before:
            noise = _unit_noise(plan, outcomes, rows)
            compared = with_slopes(gate, outcomes, 4 / rows, noise)
        sums = several_by_arm(gate, compared)
        contrasts = release_effects(gate, plan, sums, study.treated_share)
        return Facts(
            released=tuple(
                OutcomeEffect(name, None, _numbers(contrast, mean, ends, means))
                for name, (contrast, mean), ends in zip(
                    compared.names, contrasts, compared.ranges, strict=True
                )
            ),
            measure=question.measure,
            method=LessEarlierNumbers(Estimator.CENTRED_DIFFERENCE)
            if compared.slopes
            else Estimator.CENTRED_DIFFERENCE,
            releases=_releases(compared, rows),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details=slope_details(compared)
            | {
                "rows": rows,
                "share_treated": float(contrasts[0][0].setting.share),
                "mechanism": compared.drawn(question.mechanism),
            },
            interval_target=None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
        )

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=OutcomesResult,
        pages=(PAGE, *PAGES[POOLED], *((EARLIER_PAGE,) if outcomes.measured_before else ())),
        mechanisms=(*drawn.mechanisms(question.mechanism), question.mechanism),
        description={
            "question": "outcomes",
            "importance": [str(weight) for weight in outcomes.weights],
        },
    )


def _releases(outcomes: Outcomes, rows: int) -> tuple[ReleaseRow, ...]:
    vectors = (Quantity.CENTRES_OF_OUTCOMES, Quantity.CONTRASTS_OF_OUTCOMES, Quantity.MOMENTS_OF_OUTCOMES)
    count = len(outcomes.names)
    return (
        (Quantity.SHARE_TREATED, Sensitivity(1 / rows)),
        *(((Quantity.EARLIER_MOMENTS, Bounded.ONE_OVER_ROWS),) if outcomes.slopes else ()),
        *((QuantityOf(vector, count), Bounded.OWN_BOUND_EACH) for vector in vectors),
    )


def effects_plan(question: Question, outcomes: Outcomes, rows: int) -> Plan:
    """Return the split over the share treated and, of all outcomes, centres, contrasts and moments.

    The split is the one that a single outcome would have with as much noise.
    """
    noise_factor = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(noise_factor).limit_denominator(_EPSILON_DENOMINATOR)
    shares = dict(pooled_shares(rows, Budget(epsilon, question.budget.delta), question.mechanism))
    if question.measure in OF_MEANS:
        remaining = (1 - MEAN_PART) / (1 - shares["centre"])
        shares = {name: share * remaining for name, share in shares.items()} | {"centre": MEAN_PART}
    kinds = dict.fromkeys(_VECTORS, Kind.SEVERAL)
    if outcomes.measured_before:
        shares = {EARLIER: EARLIER_PART} | {
            name: share * (1 - EARLIER_PART) for name, share in shares.items()
        }
        kinds[EARLIER] = Kind.SEVERAL
    return Plan.split(question.budget, shares, question.mechanism, kinds)


def _unit_noise(plan: Plan, outcomes: Outcomes, rows: int) -> list[float]:
    """Return the variance of each contrast's noise, in units of its squared range, for equal arms."""
    bound = [Fraction(2, rows)] * len(outcomes.names)
    return [noise.variance for noise in plan.several_noise("contrast", bound, outcomes.weights)]


def release_effects(
    gate: Gate, plan: Plan, sums: PrivateOutcomes, declared: Fraction | None
) -> list[tuple[Contrast, Released]]:
    """Return the released contrast and mean of every outcome; `declared` is the share that the design declares."""
    rows = sums.rows
    weights = sums.weights
    share, share_variance = release_share(gate, sums.first, declared)
    means = sums.release_means(gate)
    unit_noise = plan.several_noise("contrast", [Fraction(1)] * len(means), weights)
    settings = []
    for mean, width, noise in zip(means, sums.widths, unit_noise, strict=True):
        start = min(max(mean.value, Fraction(0)), width)
        centre = least_error_centre(
            start,
            width=width,
            rows=rows,
            share=share,
            share_variance=share_variance,
            unit_variance=noise.variance,
        )
        settings.append(
            Setting(
                share=share,
                share_variance=share_variance,
                centre=centre,
                centre_shift=float(start - centre),
                centre_sd=sqrt(mean.noise.variance),
            )
        )
    bounds = sums.bounds(share, [setting.centre for setting in settings])
    effects, squares = sums.release_contrasts(gate, bounds)
    contrasts = []
    for index, (setting, bound, effect, square) in enumerate(
        zip(settings, bounds, effects, squares, strict=True)
    ):
        of_variance = plan.several_noise("moment", [bound.second_moment / rows] * len(bounds), weights)[index]
        contrasts.append(
            (
                Contrast(
                    setting=setting, bounds=bound, effect=effect, square=square, variance_noise=of_variance
                ),
                means[index],
            )
        )
    return contrasts


def _numbers(
    contrast: Contrast, mean: Released, outcome_range: tuple[Fraction, Fraction], means: bool
) -> Linear | JointArmMeans:
    """Return what is known of one outcome: the difference, or both arms' means."""
    low, high = map(float, outcome_range)
    if means:
        return contrast.both_means(mean.noise, (low, high))
    sizes = contrast.setting.arm_sizes(contrast.bounds.rows)
    uncertainty = with_rare_events(contrast.uncertainty(), outcome_range, sizes)
    return Linear(float(contrast.effect), uncertainty, (low - high, high - low))
