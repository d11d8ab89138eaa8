"""Means of a trial's arms where everything about a person is private, for ratios and odds ratios.

They follow from numbers that the plain comparison releases anyway: with m the mean outcome of everyone, d the centred
contrast and q the share treated, the arms' means are m + (1 - q) d and m - q d. The mean of everyone has a larger part
of the budget than where it centres the contrast alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

from counterveil.data.encoding import outcome_unit
from counterveil.inference.measures import JointMeans
from counterveil.numerics.arms import Arms
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.results.measures import MeasureResult, difference_of, no_means
from counterveil.results.question import Question, causal_caveats
from counterveil.session import Gate, Plan, Session
from counterveil.settings import Trial
from counterveil.statistics.moments.contrast import (
    PAGES,
    POOLED,
    arm_sums,
    pooled_shares,
    release,
    releases,
    uncertainty_of,
)
from counterveil.statistics.moments.sensitivity import CentredContrast, Totals

# At a ratio of 2 of equal arms the contrast enters 1.5 times, with twice the sensitivity of the mean, which enters
# once: the errors of both add up to least if the mean has about a third of what they share. At ratios nearer to 1 it
# matters less.
MEAN_PART = Fraction(1, 5)


def trial_means(session: Session, question: Question) -> MeasureResult:
    """Return the private measure of the arms' means; n is public and nothing else is."""
    source, study = session.batches, session.study
    settings = question.settings or Trial()
    if settings.adjustment == "covariates":
        raise no_means("trial", "settings with adjustment='covariates'")
    if question.open_noise and session.account().rule == "sum":
        question = replace(question, mechanism="staircase")
    plan = means_plan(source.rows, question.budget, question.mechanism)
    lo, hi = study.outcome_range

    def compute(gate: Gate) -> dict[str, object]:
        (sums,) = source.run(arm_sums)
        means = released_means(gate, plan, Arms.of(sums), outcome_unit(study.outcome_bounds), (lo, hi))
        return _result(session, question, means).stored()

    return MeasureResult.from_dict(session.run(question.request(plan, study), compute))


def means_plan(rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split over share, mean of everyone, contrast and moment; reads public numbers only."""
    plain = pooled_shares(rows, budget, mechanism)
    left = (1 - MEAN_PART) / (1 - plain["centre"])
    shares = {name: part * left for name, part in plain.items()} | {"centre": MEAN_PART}
    return Plan.split(budget, shares, mechanism)


def released_means(
    gate: Gate, plan: Plan, arms: Arms, unit: Fraction, bounds: tuple[Fraction, Fraction]
) -> JointMeans:
    """Return both arms' means with their joint error."""
    width, rows = bounds[1] - bounds[0], arms.count
    setting, effect, square = release(gate, plan, arms, unit, width, None, POOLED)
    sensitivity = CentredContrast(width, rows, setting.share, setting.centre)
    noise = plan.noise("moment", sensitivity.second_moment / rows)
    return JointMeans(
        mean=float(bounds[0]) + float(setting.centre) + setting.centre_shift,
        mean_noise=plan.noise("centre", Totals(width, rows).mean),
        difference=float(effect),
        known=uncertainty_of(POOLED, setting, sensitivity, effect, square, noise),
        share=float(setting.share),
        share_sd=sqrt(setting.share_variance),
        rows=rows,
        range=(float(bounds[0]), float(bounds[1])),
    )


def _result(session: Session, question: Question, means: JointMeans) -> MeasureResult:
    study = session.study
    treated, control = means.values
    sensitivity = CentredContrast(
        study.outcome_bounds.width, means.rows, Fraction(means.share), study.outcome_bounds.width / 2
    )
    return MeasureResult.of(
        question.measure,
        means,
        difference_of(means, question.estimand, question.level),
        guarantee=question.guarantee(session, PAGES[POOLED]),
        method="means of both arms (centred contrast and mean of everyone)",
        **question.terms(study),
        estimand=question.estimand,
        releases=releases(POOLED, sensitivity),
        not_covered=(
            *causal_caveats(study, question.estimand),
            SmallArms(float(LEAST_SHARE)),
        ),
        details={
            "rows": means.rows,
            "share_treated": means.share,
            "mechanism": question.mechanism,
            "mean_treated": treated,
            "mean_control": control,
        },
        interval_of=None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
    )
