"""Both arms' mean outcomes in a trial where everything about a person is private, for ratios and odds ratios.

With m the mean outcome of everyone, d the centred contrast and q the share treated, the means are

    m_1 = m + (1 - q) d,    m_0 = m - q d.

The mean of everyone has a larger part of the budget than where it centres the contrast alone.

All are in units of the outcome. The contrast d is an estimate of m_1 - m_0, and m = q m_1 + (1 - q) m_0,
which gives both lines. Each of q, m and d is released with noise, everything after that is post-processing.
Proof: `rows/moments/centred_contrast.proof.md`.
"""

from __future__ import annotations

from fractions import Fraction

from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.contrast import PAGES, POOLED, pooled_shares, release, releases
from counterveil.inference.arm_means import JointArmMeans
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.privacy.provenance import Estimator
from counterveil.results.answering import Facts
from counterveil.results.measures import no_means
from counterveil.results.question import Question, causal_caveats
from counterveil.results.result import MeasureResult
from counterveil.rows.moments.centred_contrast import (
    CentredContrast,
    PrivateArms,
    mean_of_everyone,
    outcomes_by_arm,
)
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Plan
from counterveil.settings import Trial

# At a ratio of 2 of equal arms the contrast enters 1.5 times, with twice the sensitivity of the mean, which enters
# once: the errors of both add up to least if the mean has about a third of what they share. At ratios nearer to 1 it
# matters less.
MEAN_PART = Fraction(1, 5)


def trial_means(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the measure of the arms' means; n is public and nothing else is."""
    study = public.study
    settings = question.settings or Trial()
    if settings.adjustment == "covariates":
        raise no_means("trial", "settings with adjustment='covariates'")
    plan = means_plan(public.rows, question.budget, question.mechanism)
    lo, hi = study.outcome_range

    def estimate(gate: Gate) -> Facts:
        means = released_means(gate, plan, outcomes_by_arm(gate), (lo, hi))
        treated, control = means.values
        bounds = CentredContrast(hi - lo, means.rows, Fraction(means.share), (hi - lo) / 2)
        return Facts(
            measure=question.measure,
            numbers=means,
            method=Estimator.CENTRED_MEANS,
            releases=releases(POOLED, bounds),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details={
                "rows": means.rows,
                "share_treated": means.share,
                "mechanism": question.mechanism,
                "mean_treated": treated,
                "mean_control": control,
            },
            interval_target=None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
        )

    return Prepared(
        question=question, plan=plan, estimate=estimate, answer=MeasureResult, pages=PAGES[POOLED]
    )


def means_plan(rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split over share, mean of everyone, contrast and moment; reads public numbers only."""
    plain = pooled_shares(rows, budget, mechanism)
    remaining = (1 - MEAN_PART) / (1 - plain["centre"])
    shares = {name: part * remaining for name, part in plain.items()} | {"centre": MEAN_PART}
    return Plan.split(budget, shares, mechanism)


def released_means(
    gate: Gate, plan: Plan, arms: PrivateArms, ends: tuple[Fraction, Fraction]
) -> JointArmMeans:
    """Return both arms' means with their joint error, for outcomes between these ends."""
    contrast = release(gate, plan, arms, declared=None, centre=POOLED)
    mean_noise = plan.noise("centre", mean_of_everyone(arms.width, arms.rows))
    return contrast.both_means(mean_noise, (float(ends[0]), float(ends[1])))
