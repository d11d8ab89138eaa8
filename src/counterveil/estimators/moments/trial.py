"""The comparison of a trial's arms where everything about a person is private.

Plain comparison (`compare`): the mean of t (y - c)/q - (1-t) (y - c)/(1-q) around a released centre c.

Adjusted comparison (`trial`): in a trial treatment does not depend on covariates, so that the same mean has
the effect as its mean whatever prediction g of a person's covariates is taken off; a good one leaves less to
vary, a poor one leaves the interval longer, never wrong. g is made of released moments (`Prediction`,
outcomes in units of half their range) and cut to a released bound; no outcome is clipped. The rest is the
plain contrast of y - g, whose range is longer by that bound at both ends, times a factor just above one for
what a fit to the same rows takes away. Without privacy this is the analysis of covariance.

Means of the arms for ratios and odds ratios (`released_means`): with m the mean outcome of everyone, d the
centred contrast and q the share treated, they are m + (1 - q) d and m - q d. The mean of everyone has a
larger part of the budget than where it centres the contrast alone.

Several outcomes (`record_effects`), periods (`record_event_study`) and several arms (`record_arms`) follow
the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import erfc, exp, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Sums, Table, silence
from counterveil.data.domains import outcome_unit
from counterveil.data.features import feature_map, require_covariates
from counterveil.data.panels import change_unit, complete_sizes, period_totals
from counterveil.estimators.histogram import count_mechanisms
from counterveil.estimators.moments.orthogonal import (
    Design,
    Scaling,
    release_products,
    release_residuals,
    scaling_of,
    standard_rows,
)
from counterveil.estimators.moments.records import Part, Records, TableRecords
from counterveil.estimators.outcome_place import NAME as EARLIER
from counterveil.estimators.outcome_place import PAGE as EARLIER_PAGE
from counterveil.estimators.outcome_place import PART as EARLIER_PART
from counterveil.estimators.outcome_place import Outcomes, slopes_said, totals_by_arm, with_slopes
from counterveil.inference.measures import IndependentArmMeans, JointArmMeans, with_rare_events
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arm_totals import Arm, TwoArms, arm_totals
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.denoising import denoised
from counterveil.numerics.products import Standard, projected
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import SmallArms, Target
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import ArmsResult, EventStudyResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.measures import OF_MEANS, no_means
from counterveil.results.question import Question, causal_caveats, refuse_undeclared_trial
from counterveil.results.result import MeasureResult, Result
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.scores import LinearModels
from counterveil.rows.moments.sensitivity import (
    SCORE_TERMS,
    CentredContrast,
    both_sums,
    mean_of_everyone,
)
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.settings import Trial

# The unadjusted comparison of two arms; everything about a person is private.
#
# With t private, the number treated is private too, so that dividing by it is not free. The share treated q is released
# first, and a centre c of the outcomes; the mean of psi = t (y-c)/q - (1-t) (y-c)/(1-q) then differs from the
# difference in means only by the product of two errors: that of q, and the distance of c from (1-q) m_1 + q m_0. A
# pooled centre is the mean outcome of everyone. A centre of both arms is made of their means, which cost one sum
# together and centre arms of unequal size rightly however large the effect is (docs/decisions/0010-contrast.md).
#
# With q known, psi would be the inverse-probability-weighted (Horvitz-Thompson) contrast of the centred outcomes, whose
# variance has chance in the number treated in it: a declared share is joined with the released one instead.


# Where outcomes are centred: the mean of everyone, or the means of both arms.
POOLED, ARMS = "pooled", "arms"
PAGES = {
    POOLED: ("rows/moments/centred_contrast.proof.md",),
    ARMS: ("rows/moments/centred_contrast.proof.md", "rows/moments/arm_sums.proof.md"),
}
# The mechanism of the arms' sums, beside that of the other releases.
CENTRES_MECHANISM = "laplace"
# From this many rows times epsilon on, centres for both arms are worth their price; like the shares of
# `_arms_plan`, found by `python -m experiments.record_level.centres`.
_LEAST_SIZE = 400
# How far the centre goes from its best place to the middle of the range, where sensitivity is least.
_MOVES = [Fraction(k, 16) for k in range(17)]


@dataclass(frozen=True, slots=True)
class Setting:
    """Share and centre of the contrast, both public by now, and the variances of their errors."""

    share: Fraction
    share_variance: float
    centre: Fraction
    centre_shift: float  # released mean minus centre
    centre_sd: float  # standard deviation of the released mean's noise

    def arm_sizes(self, rows: int) -> tuple[float, float]:
        """Return about how many people are in each arm, treated first."""
        return rows * float(self.share), rows * float(1 - self.share)


@dataclass(frozen=True, slots=True)
class Contrast:
    """What was released: where psi was centred, its mean and second moment, and the noise of its variance."""

    setting: Setting
    sensitivity: CentredContrast
    effect: Released
    square: Released
    variance_noise: NoiseDistribution

    def uncertainty(self, centre: str = POOLED) -> Uncertainty:
        """Return the uncertainty of the contrast."""
        setting = self.setting
        rows = self.sensitivity.rows
        q = float(setting.share)
        estimate = float(self.effect)
        noise = self.effect.noise
        # E[estimate^2] includes the noise variance; subtract it.
        variance = (float(self.square) - estimate**2 + noise.variance) / rows
        # How far the centre is from where an error in the share would do no harm, (1-q) m1 + q m0.
        off = setting.centre_shift + (1 - 2 * q) * estimate if centre == POOLED else setting.centre_shift
        extra = setting.share_variance * (off**2 + setting.centre_sd**2) / (q * (1 - q)) ** 2
        # The share is the realised one: chance in who was treated does not move the contrast, but the moment of psi
        # counts it. What is certain of that part, given the noise of the centre, is taken off.
        counted = max(abs(off) - setting.centre_sd, 0.0) ** 2
        variance -= counted / (q * (1 - q)) / rows
        cap = float(self.sensitivity.variance_cap) / rows
        return Uncertainty(noise, variance, cap, self.variance_noise, extra)

    def both_means(self, mean_noise: NoiseDistribution, ends: tuple[float, float]) -> JointArmMeans:
        """Return both arms' means with their joint error, for outcomes in this range and a pooled centre."""
        setting = self.setting
        return JointArmMeans(
            mean=ends[0] + float(setting.centre) + setting.centre_shift,
            mean_noise=mean_noise,
            difference=float(self.effect),
            known=self.uncertainty(),
            share=float(setting.share),
            share_sd=sqrt(setting.share_variance),
            rows=self.sensitivity.rows,
            range=ends,
        )


def is_worthwhile(rows: int, budget: Budget, mechanism: str) -> bool:
    """Return whether centres of both arms leave less noise than a pooled one; public numbers only."""
    return mechanism != "gaussian" and rows * budget.epsilon >= _LEAST_SIZE


def compare(
    session: BaseSession, question: Question, centre: str, interval_target: Target | None = None
) -> Result:
    """Return the private difference in means; n is public and nothing else is.

    `interval_target` says what the interval is one for, where that is not the effect.
    """
    source, study = session.batches, session.study
    lo, hi = study.outcome_range
    plan = plan_of(centre, source.rows, question.budget, question.mechanism)

    def compute(gate: Gate) -> Facts:
        (sums,) = source.run(arm_sums)
        step = outcome_unit(study.outcome_bounds)
        contrast = release(
            gate, plan, TwoArms.of(sums, source.rows), step, hi - lo, study.treated_share, centre
        )
        return Facts(
            **facts_of(session, question, centre, contrast),
            method="difference in means (centred contrast)" if centre == POOLED else "unadjusted contrast",
            interval_target=interval_target,
        )

    drawn = None if centre == POOLED else (CENTRES_MECHANISM, question.mechanism)
    return answer_request(Result, session, question, plan, compute, pages=PAGES[centre], mechanisms=drawn)


def arm_sums(table: Table) -> Sums:
    """Return the six totals of both arms."""
    return (arm_totals(table.treated, table.outcome).sums,)


def plan_of(centre: str, rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split over share, centre, contrast and moment; reads public numbers only."""
    if centre == POOLED:
        return Plan.split(budget, pooled_shares(rows, budget, mechanism), mechanism)
    size = rows * budget.epsilon
    for_share = Fraction(1, 5) if size < 600 else Fraction(7, 50) if size < 2500 else Fraction(1, 10)
    shares = {"share": for_share, "centres": Fraction(2, 25), "moment": Fraction(1, 10)}
    shares["contrast"] = 1 - sum(shares.values(), Fraction(0))
    return Plan.split(budget, shares, mechanism, {"centres": Kind.CELLS})


@lru_cache(maxsize=64)
def pooled_shares(rows: int, budget: Budget, mechanism: str) -> dict[str, Fraction]:
    """Return the split with the smallest expected total variance.

    The expectation is taken for outcomes in [0, 1], balanced arms and a mean off the middle by a quarter of the range.
    """
    for_share = [Fraction(k, 20) for k in (1, 2, 4)]
    for_centre = [Fraction(k, 40) for k in (1, 2, 4)]
    for_moment = [Fraction(k, 20) for k in (1, 2, 3, 4)]

    def expected(shares: dict[str, Fraction]) -> float:
        plan = Plan.split(budget, shares, mechanism)
        off = plan.noise("centre", Fraction(1, rows)).variance + 0.1**2
        wrong_share = plan.noise("share", Fraction(1, rows)).variance
        contrast = plan.noise("contrast", Fraction(5, 2) / rows).variance
        moment = sqrt(plan.noise("moment", Fraction(9, 4) / rows).variance) / rows
        return contrast + moment + 16 * wrong_share * off

    splits = [
        {"share": share, "centre": centre, "contrast": 1 - share - centre - moment, "moment": moment}
        for share, centre, moment in product(for_share, for_centre, for_moment)
    ]
    return min(splits, key=expected)


def release(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    declared: Fraction | None,
    centre: str,
) -> Contrast:
    """Return the contrast around a released share and centre."""
    share = release_share(gate, arms, declared)
    centred = centred_on_everyone if centre == POOLED else _centred_on_arms
    return release_contrast(gate, arms, unit, width, centred(gate, plan, arms, unit, width, *share))


def release_contrast(
    gate: Gate,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    setting: Setting,
    names: tuple[str, str] = ("contrast", "moment"),
) -> Contrast:
    """Return the released mean of psi and mean of its square, under these names."""
    sensitivity = CentredContrast(width, arms.count, setting.share, setting.centre)
    first, second = moments(arms, unit, setting)
    effect = gate.release(names[0], first, sensitivity.mean)
    square = gate.release(names[1], second, sensitivity.second_moment)
    noise = gate.noise(names[1], sensitivity.second_moment / arms.count)
    return Contrast(setting, sensitivity, effect, square, noise)


def release_share(gate: Gate, arms: TwoArms, declared: Fraction | None) -> tuple[Fraction, float]:
    """Return the share treated, inside its bounds, and the variance of its error.

    A declared share is the chance of being treated, from which the share that was treated differs by chance: it is
    joined with the released one by the variances of both.
    """
    share = Fraction(arms.treated.count, arms.count)
    noisy = gate.release("share", share, mean_of_everyone(Fraction(1), arms.count))
    share = noisy.value
    variance = noisy.noise.variance
    if declared is not None:
        chance = float(declared * (1 - declared)) / arms.count
        shrinkage = 1 / (1 + chance / variance)
        share += Fraction(shrinkage).limit_denominator(1 << 20) * (declared - share)
        variance = shrinkage * chance
    return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE), variance


def centred_on_everyone(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    share: Fraction,
    share_variance: float,
    names: tuple[str, str] = ("centre", "contrast"),
) -> Setting:
    """Return the centre between the released mean outcome and the middle with the least expected error.

    At the released mean an error in the share does no harm; in the middle of the range the contrast has its smallest
    sensitivity. Post-processing of released numbers. `names` are those of the releases of centre and contrast.
    """
    pooled = Fraction(arms.treated.total + arms.control.total, arms.count) * unit
    mean = gate.release(names[0], pooled, mean_of_everyone(width, arms.count))
    start = min(max(mean.value, Fraction(0)), width)
    unit_variance = plan.noise(names[1], Fraction(1)).variance
    centre = least_error_centre(start, width, arms.count, share, share_variance, unit_variance)
    return Setting(share, share_variance, centre, float(start - centre), sqrt(mean.noise.variance))


def least_error_centre(
    start: Fraction, width: Fraction, rows: int, share: Fraction, share_variance: float, unit_variance: float
) -> Fraction:
    """Return the centre between a released mean and the middle; `unit_variance` is that of the contrast's noise."""
    weight = share_variance / float(share * (1 - share)) ** 2

    def expected(centre: Fraction) -> float:
        sensitivity = float(CentredContrast(width, rows, share, centre).mean)
        return unit_variance * sensitivity**2 + weight * float(centre - start) ** 2

    return min((start + part * (width / 2 - start) for part in _MOVES), key=expected)


def _centred_on_arms(
    gate: Gate,
    plan: Plan,
    arms: TwoArms,
    unit: Fraction,
    width: Fraction,
    share: Fraction,
    share_variance: float,
) -> Setting:
    """Return the same between the centre that both arms' released means make and the middle."""
    means, variance = release_means(gate, arms, unit, width, share)
    q = share
    best = (1 - q) * means[0] + q * means[1]
    # Noise of the centre: that of each mean is its sum's divided by the (released) size of the arm.
    squares = float((1 - q) / q) ** 2 + float(q / (1 - q)) ** 2
    centre_sd = (variance * squares) ** 0.5 / arms.count
    unit_variance = plan.noise("contrast", Fraction(1)).variance
    centre = least_error_centre(best, width, arms.count, q, share_variance, unit_variance)
    return Setting(q, share_variance, centre, float(best - centre), centre_sd)


def release_means(
    gate: Gate, arms: TwoArms, unit: Fraction, width: Fraction, share: Fraction
) -> tuple[tuple[Fraction, Fraction], float]:
    """Return both arms' means (treated first), inside the range, and the variance of the sums' noise."""
    middle = width / 2
    sums = [arm.total * unit - arm.count * middle for arm in (arms.treated, arms.control)]
    noisy = gate.release_cells("centres", sums, both_sums(width))
    sizes = (arms.count * share, arms.count * (1 - share))
    means = [middle + total / size for total, size in zip(noisy.values, sizes, strict=True)]
    treated, control = (min(max(mean, Fraction(0)), width) for mean in means)
    return (treated, control), noisy.variance


def moments(arms: TwoArms, unit: Fraction, setting: Setting) -> tuple[Fraction, Fraction]:
    """Return the exact means of psi and of psi squared."""
    q = setting.share
    centre = setting.centre / unit
    first = arms.treated.centred_total(centre) / q - arms.control.centred_total(centre) / (1 - q)
    second = arms.treated.centred_squares(centre) / q**2 + arms.control.centred_squares(centre) / (1 - q) ** 2
    return first * unit / arms.count, second * unit**2 / arms.count


def facts_of(session: BaseSession, question: Question, centre: str, contrast: Contrast) -> Facts:
    """Return the effect and what is said of it, from what was released of the contrast."""
    study = session.study
    rows = session.batches.rows
    setting = contrast.setting
    return Facts(
        estimate=float(contrast.effect),
        uncertainty=with_rare_events(
            contrast.uncertainty(centre), study.outcome_range, setting.arm_sizes(rows)
        ),
        releases=releases(centre, contrast.sensitivity),
        not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
        details={
            "rows": rows,
            "share_treated": float(setting.share),
            "mechanism": contrast.effect.noise.name,
        },
    )


def releases(centre: str, sensitivity: CentredContrast) -> tuple[tuple[str, str], ...]:
    """Return what is released, in words, with the sensitivity of each."""
    width = float(sensitivity.width)
    centres = {
        POOLED: ("mean outcome", f"sensitivity {width / sensitivity.rows:.6g}; centres the contrast"),
        ARMS: ("sums of both arms", f"sensitivity {width:.6g}; they centre the contrast"),
    }
    return (
        ("share treated", f"sensitivity {1 / sensitivity.rows:.6g}"),
        centres[centre],
        ("centred contrast", f"sensitivity {float(sensitivity.mean):.6g}"),
        ("its second moment", f"sensitivity {float(sensitivity.second_moment):.6g}"),
    )


# At a ratio of 2 of equal arms the contrast enters 1.5 times, with twice the sensitivity of the mean, which enters
# once: the errors of both add up to least if the mean has about a third of what they share. At ratios nearer to 1 it
# matters less.
MEAN_PART = Fraction(1, 5)


def trial_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of the arms' means; n is public and nothing else is."""
    source, study = session.batches, session.study
    settings = question.settings or Trial()
    if settings.adjustment == "covariates":
        raise no_means("trial", "settings with adjustment='covariates'")
    plan = means_plan(source.rows, question.budget, question.mechanism)
    lo, hi = study.outcome_range

    def compute(gate: Gate) -> Facts:
        (sums,) = source.run(arm_sums)
        means = released_means(gate, plan, TwoArms.of(sums), outcome_unit(study.outcome_bounds), (lo, hi))
        treated, control = means.values
        sensitivity = CentredContrast(hi - lo, means.rows, Fraction(means.share), (hi - lo) / 2)
        return Facts(
            measure=question.measure,
            numbers=means,
            method="means of both arms (centred contrast and mean of everyone)",
            releases=releases(POOLED, sensitivity),
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

    return answer_request(MeasureResult, session, question, plan, compute, pages=PAGES[POOLED])


def means_plan(rows: int, budget: Budget, mechanism: str) -> Plan:
    """Return the split over share, mean of everyone, contrast and moment; reads public numbers only."""
    plain = pooled_shares(rows, budget, mechanism)
    remaining = (1 - MEAN_PART) / (1 - plain["centre"])
    shares = {name: part * remaining for name, part in plain.items()} | {"centre": MEAN_PART}
    return Plan.split(budget, shares, mechanism)


def released_means(
    gate: Gate, plan: Plan, arms: TwoArms, unit: Fraction, bounds: tuple[Fraction, Fraction]
) -> JointArmMeans:
    """Return both arms' means with their joint error."""
    width = bounds[1] - bounds[0]
    contrast = release(gate, plan, arms, unit, width, None, POOLED)
    mean_noise = plan.noise("centre", mean_of_everyone(width, arms.count))
    return contrast.both_means(mean_noise, (float(bounds[0]), float(bounds[1])))


# How a trial's budget is split between a model of its outcomes and the comparison, and whether the model is worthwhile.
#
# All of it reads public numbers alone. Sizes are those of outcomes with standard deviation one and standardised
# covariates; what is assumed about the data steers the split, and neither the privacy nor the interval rests on it.


# Sizes of this rule were chosen on seeds below 10 of `python -m experiments.every_method.trials`.
# Parts of the model's own budget, by what is released about covariates with outcomes: their cross moments (a line
# along these), or all second moments (a model that knows how covariates go together).
FORMS = {
    "line": {"centre": 25, "norms": 10, "model": 50, "fit": 15},
    "gram": {"centre": 15, "norms": 5, "model": 65, "fit": 15},
}
_PARTS = tuple(Fraction(k, 100) for k in (5, 10, 15, 20, 30, 40))
# Squared length of the outcome in the second moments, beside that of a row of covariates.
OUTCOME_LENGTH = 0.7
# What is assumed: standard deviation of the outcome in parts of its range, share of the smaller arm, squared length
# of standardised rows a feature, bound of the outcome in standard deviations, what one line explains of what all
# covariates do, how much of that a noisy matrix of second moments takes away.
_SD, _SHARE, _LENGTH, _BOUND, _LINE, _BLUR = 0.1, Fraction(2, 5), 1.4, 2.2, 0.85, 1.4
# Parts of the outcome's variance that covariates may explain, all equally likely beforehand.
_EXPLAINED = (0.0, 0.3, 0.9)
# The widest that the interval may become where covariates explain nothing.
_MOST_COST = 1.02
# Part of the standard deviation of a released variance that is added to it, about.
_INFLATION = 0.4
# Where the line's own moments are clipped, in standard deviations, and how large they have to be beside their noise.
LINE_CLIP_SDS, LEAST_SIGNAL = 4.0, 2.0


@dataclass(frozen=True, slots=True)
class TrialNumbers:
    """The public numbers of a trial; `features` leaves the constant out."""

    rows: int
    features: int
    budget: Budget
    mechanism: str

    def design(self, part: Fraction) -> Design:
        """Return the public numbers of the model, on its part of the budget: Gaussian noise where there is a delta."""
        mechanism = self.mechanism if self.budget.pure else "gaussian"
        return Design(
            self.rows, self.features, Budget(part * self.budget.epsilon, self.budget.delta), mechanism
        )


@dataclass(frozen=True, slots=True)
class Split:
    """The model's part of epsilon and its form, and by how much the interval is expected to change."""

    part: Fraction
    form: str
    cost: float  # width beside that of the plain comparison where covariates explain nothing
    gain: float  # mean log of that over what covariates may explain

    @property
    def is_worthwhile(self) -> bool:
        """Whether the model is expected to shorten intervals and costs little where it does not."""
        return self.cost <= _MOST_COST and self.gain < 0

    def plan(self, numbers: TrialNumbers) -> Plan:
        """Return the plan of all releases."""
        form = FORMS[self.form]
        shares = {name: self.part * Fraction(size, 100) for name, size in form.items()}
        comparison = plan_of(ARMS, numbers.rows, numbers.budget, numbers.mechanism)
        amount_left = (1 - self.part) / numbers.budget.epsilon
        shares |= {name: amount_left * amount for name, amount in comparison.amounts}
        pure = {name: Kind.CELLS if name == "norms" else Kind.VECTOR for name in form}
        kinds = pure if numbers.budget.pure else dict.fromkeys(form, Kind.NORMAL)
        return Plan.split(numbers.budget, shares, numbers.mechanism, kinds | dict(comparison.kinds))


def adjustment_is_worthwhile(numbers: TrialNumbers) -> bool:
    """Return whether a model of the outcomes is expected to shorten the interval of a trial."""
    if not numbers.features or not is_worthwhile(numbers.rows, numbers.budget, numbers.mechanism):
        return False
    return split(numbers).is_worthwhile


@lru_cache(maxsize=256)
def split(numbers: TrialNumbers) -> Split:
    """Return the split with the shortest expected interval."""
    splits = []
    for part in _PARTS:
        design = numbers.design(part)
        for form in FORMS:
            ratios = [sqrt(_ratio(design, form, part, explained, numbers)) for explained in _EXPLAINED]
            gain = sum(log(ratio) for ratio in ratios) / len(ratios)
            splits.append(Split(part, form, ratios[0], gain))
    return min(splits, key=lambda one: (not one.is_worthwhile, one.gain))


def _ratio(design: Design, form: str, part: Fraction, explained: float, numbers: TrialNumbers) -> float:
    """Return the expected squared width beside that of the plain comparison."""
    reached = _reached(design, form, explained)
    # Predictions are cut at about two of their standard deviations, by which the outcome's range becomes longer.
    width = 1 / _SD + 4 * sqrt(reached)
    ours = (1 - reached) + _noise(numbers, 1 - part, width)
    return ours / (1 + _noise(numbers, Fraction(1), 1 / _SD))


def _noise(numbers: TrialNumbers, part: Fraction, width: float) -> float:
    """Return what noise adds to the squared width beside what sampling does, for outcomes of this range."""
    plan = plan_of(ARMS, numbers.rows, numbers.budget, numbers.mechanism)
    sampling = float(_SHARE * (1 - _SHARE)) * numbers.rows
    return (
        noise_of_comparison(plan, Fraction(round(1000 * width), 1000) / part, _SHARE, numbers.rows) * sampling
    )


def noise_of_comparison(plan: Plan, width: Fraction, share: Fraction, rows: int) -> float:
    """Return what noise adds to the variance of a comparison of outcomes of this range, its centre in the middle.

    The noise of the released variance lengthens intervals too, by about as much as part of its standard deviation.
    """
    sensitivity = CentredContrast(width, rows, share, width / 2)
    second = plan.noise("moment", sensitivity.second_moment / rows)
    return plan.noise("contrast", sensitivity.mean).variance + _INFLATION * sqrt(second.variance)


def _reached(design: Design, form: str, explained: float) -> float:
    """Return the part of the outcome's variance that the noisy model explains, about."""
    if not explained:
        return 0.0
    shares = FORMS[form]
    m = design.features + 1
    squared_norm = 1 + _LENGTH * design.features
    share = shares["model"] / 100
    if form == "line":
        noise = float(design.sd(share, m + 1, 2 * sqrt(squared_norm))) * _BOUND
        model_part = _LINE * explained
    else:
        entries = (m + 1) * (m + 2) // 2
        entry = float(design.sd(share, entries, (1 + OUTCOME_LENGTH) * squared_norm))
        noise = entry * _BOUND / sqrt(OUTCOME_LENGTH * squared_norm)
        model_part = explained / (1 + _BLUR * m * entry**2)
    explained_part = model_part**2 / (model_part + m * (noise**2 + 1 / design.rows))
    scale = float(design.sd(shares["fit"] / 100, 6, 3.0)) * LINE_CLIP_SDS * _BOUND
    return explained_part * max(0.0, 1 - LEAST_SIGNAL**2 * scale**2 / explained_part)


# Outcomes are whole steps in [0, 2**24], half their range is 2**23 of them.
HALF_RANGE = 1 << 23
# A direction counts where it is longer than noise alone by this many standard deviations of its length.
_LEAST_LENGTH = 1.5
# A covariance is at most this many times what the release that found the direction says.
_MOST_SEEN = 1.5
# Least variance of a line through standardised covariates.
_LEAST_VARIANCE = 0.3
# Where predictions are cut, in their standard deviations; 0 leaves outcomes as they are.
_CUTS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0)
# Least part of the outcome's variance that is taken to be left.
_LEAST_LEFT = 0.02


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction of standardised covariates along which outcomes rise, and where rows are clipped along it.

    `length` is that of the moments or coefficients it was made of, `covariance` that of outcomes with places along
    it, as far as the release that found it tells.
    """

    values: Floats
    clip: float
    length: float
    covariance: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """slope (p - middle), p being a row's place along a direction, cut to [-bound, bound]."""

    standard: Standard
    direction: Direction
    slope: float
    middle: float
    sd: float  # of what is predicted, before it is cut
    outcome_sd: float
    share: float  # of the treated, released
    bound: float = 0.0

    def steps(self, block: Part) -> NDArray[np.int64]:
        """Return what is predicted of every row of a block in whole steps of the outcome."""
        most = self.bound_steps
        p = _along(block.u(self.standard), self.direction)
        predicted = np.clip(np.rint(self.slope * (p - self.middle) * HALF_RANGE), -most, most)
        return np.asarray(predicted.astype(np.int64))

    @property
    def bound_steps(self) -> int:
        """The bound in whole steps; less than half the range, so that what is left stays below twice the range."""
        return min(int(self.bound * HALF_RANGE), HALF_RANGE - 1)

    def fitted(self, rows: int) -> Fraction:
        """Return n / (n - f), f being about how many coefficients were fitted to the rows they are used on.

        The fit takes a part f/n of the effect away with the outcomes, as chance makes the arms' covariates differ.
        """
        freedom = len(self.direction.values) * self.slope / self.direction.length if self.bound_steps else 0.0
        return 1 / (1 - Fraction(min(freedom / rows, 0.5)).limit_denominator(1 << 20))

    def cut(self, plan: Plan, rows: int) -> float:
        """Return the bound with the least expected error: a longer one explains more and needs more noise."""
        q = self.share
        share = Fraction(round(1000 * min(q, 1 - q)), 1000)
        residual_variance = max(self.outcome_sd**2 - self.sd**2, _LEAST_LEFT * self.outcome_sd**2)

        def expected(cut: float) -> float:
            outcome_variance = residual_variance + _beyond(cut) * self.sd**2 if cut else self.outcome_sd**2
            width = 2 + 2 * Fraction(round(1000 * min(cut * self.sd, 1.0)), 1000)
            return outcome_variance / (q * (1 - q)) / rows + noise_of_comparison(plan, width, share, rows)

        return min(_CUTS, key=expected) * self.sd


def learn(gate: Gate, records: Records, design: Design, form: str) -> Prediction:
    """Return a prediction of outcomes: centre, norms, a direction, then the line along it."""
    moments, standard = standard_rows(gate, records, design)
    scaling = scaling_of(moments, 1 + standard.squared_length, 1.0, OUTCOME_LENGTH)
    find = _from_products if form == "gram" else _from_cross_moments
    direction = find(gate, records, standard, scaling)
    return _line(gate, records, standard, scaling, direction)


def _from_cross_moments(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the direction of the moments of covariates with outcomes."""
    nothing = np.zeros(records.features.size + 1)
    models = LinearModels(scaling.share, scaling.mean, nothing, nothing, nothing, 0.0)
    cross_moments = release_residuals(gate, "model", records, standard, models, scaling.outcome_bound)
    outcome_sd = sqrt(max(cross_moments.square, 0.0) + cross_moments.square_sd)
    raw = cross_moments.products[1:]
    noise = (cross_moments.sd**2 + outcome_sd**2 / records.count) * len(raw)
    # Outcomes have at most correlation one with the line, so that its standard deviation is no less than this.
    least = float(np.linalg.norm(raw)) / max(outcome_sd, 1e-3)
    return _stands_out(raw, noise, LINE_CLIP_SDS * max(1.0, least), 1.0, standard)


def _from_products(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the coefficients of the outcome on all covariates, from released second moments."""
    root = sqrt(scaling.b)
    squared_max_norm = Fraction(standard.squared_length) + 1 + Fraction(scaling.b)
    largest = max(standard.limit, root, 1.0)
    matrix, sd = release_products(
        gate, "model", records, rows_with_outcomes, (standard, scaling), largest, squared_max_norm
    )
    gram = denoised(matrix[:-1, :-1], sd)
    unit = scaling.outcome_bound / root
    raw = (gram.inverse @ matrix[:-1, -1] * unit)[1:]
    outcome_variance = max(float(matrix[-1, -1]), 0.0) * unit**2
    noise = (sd * unit) ** 2 * gram.squares + outcome_variance * gram.trace / records.count
    variance = float(raw @ gram.matrix[1:, 1:] @ raw) / max(float(raw @ raw), 1e-12)
    variance = max(variance, _LEAST_VARIANCE)
    return _stands_out(raw, noise, LINE_CLIP_SDS * sqrt(variance), variance, standard)


def _stands_out(
    raw: Floats, noise: float, largest_direction: float, unit: float, standard: Standard
) -> Direction:
    """Return the direction at length one, or nothing where it could be noise; `unit` turns lengths to covariances."""
    squared = float(raw @ raw)
    if squared <= noise * (1 + _LEAST_LENGTH * sqrt(2 / len(raw))):
        return Direction(np.zeros(len(raw)), 1.0, 1.0, 0.0)
    length = sqrt(squared)
    covariance = (squared - noise) / length * unit
    return Direction(raw / length, min(largest_direction, sqrt(standard.squared_length)), length, covariance)


def _line(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, direction: Direction
) -> Prediction:
    """Return the regression of outcomes on their position along a direction, its slope shrunk by the noise's share."""
    arguments = (standard, scaling, direction)
    matrix, sd = release_products(gate, "fit", records, places_with_outcomes, arguments, 1.0, Fraction(3))
    # In units of the bounds: means of the place and the outcome, then moments around them.
    mean_position, mean = float(matrix[0, 1]), float(matrix[0, 2])
    floor = _LEAST_VARIANCE / direction.clip**2
    variance = max(float(matrix[1, 1]) - mean_position**2, floor) + sd / 2
    most = _MOST_SEEN * direction.covariance / direction.clip / scaling.outcome_bound
    covariance = min(float(matrix[1, 2]) - mean_position * mean, most)
    outcome_variance = max(float(matrix[2, 2]) - mean**2, 0.0) + sd
    signal = max(1 - (LEAST_SIGNAL * sd / covariance) ** 2, 0.0) if covariance > 0 else 0.0
    # Whatever the noise says, a line explains no more than there is.
    slope = min(signal * covariance / variance, sqrt(outcome_variance / variance))
    unit = scaling.outcome_bound
    return Prediction(
        standard,
        direction,
        slope * unit / direction.clip,
        mean_position * direction.clip,
        slope * sqrt(variance) * unit,
        sqrt(outcome_variance) * unit,
        scaling.share,
    )


def rows_with_outcomes(records: TableRecords, standard: Standard, scaling: Scaling) -> Iterator[Floats]:
    """Yield (u, sqrt(b) y) of all rows, a block at a time."""
    root = sqrt(scaling.b)
    for u, t, y in records.models(standard):
        yield np.vstack((u.T, root * scaling.columns(t, y)[1])).T


def places_with_outcomes(
    records: TableRecords, standard: Standard, scaling: Scaling, direction: Direction
) -> Iterator[Floats]:
    """Yield (1, place along the direction, y) of all rows in parts of their bounds, a block at a time."""
    for u, t, y in records.models(standard):
        p = _along(u, direction) / direction.clip
        yield np.column_stack((np.ones(len(u)), p, scaling.columns(t, y)[1]))


def _along(u: Floats, direction: Direction) -> Floats:
    """Return every row's position along the direction, clipped."""
    return np.asarray(np.clip(projected(u[:, 1:], direction.values), -direction.clip, direction.clip))


def _beyond(cut: float) -> float:
    """Return the mean of (|z| - cut)^2 over the normal |z| beyond the cut."""
    return (1 + cut * cut) * erfc(cut / sqrt(2)) - cut * sqrt(2 / pi) * exp(-cut * cut / 2)


_PAGES = (
    *PAGES[ARMS],
    "rows/moments/record_moments.proof.md",
    "rows/histogram.proof.md",
    "rows/moments/free_gram.proof.md",
)
_WORDS = {
    "centre": "means and mean squares of covariates, treatment and outcome",
    "norms": "histogram of the rows' lengths",
    "model": "moments of covariates with outcomes",
    "fit": "regression of outcomes on one direction",
}


def trial(session: BaseSession, question: Question) -> Result:
    """Return the private effect in a trial, adjusted for covariates or not; n is public and nothing else is.

    In a study that is not declared a trial it is a comparison, whose interval is not one for the effect.
    """
    settings = question.settings or Trial()
    if "auto" in (settings.adjustment, settings.centre) and settings.adjustment != "covariates":
        settings = chosen(session, question, settings)
    if settings.adjustment == "covariates":
        return _adjusted(session, question)
    # Changes are compared under parallel trends, which the answer names.
    is_trial = session.study.randomised is True or session.study.before is not None
    return compare(session, question, settings.centre, None if is_trial else Target.CONFOUNDED_DIFFERENCE)


def chosen(session: BaseSession, question: Question, settings: Trial) -> Trial:
    """Return the settings with what they leave open chosen from public numbers."""
    is_open = settings.adjustment == "auto" and session.study.randomised is True
    if is_open and adjustment_is_worthwhile(numbers_of(session, question)):
        return Trial("covariates")
    centred = is_worthwhile(session.batches.rows, question.budget, question.mechanism)
    return Trial("none", ARMS if centred else POOLED)


def _adjusted(session: BaseSession, question: Question) -> Result:
    study = session.study
    refuse_undeclared_trial(study)
    require_covariates(study, "trial")
    # One delta serves the model; numbers have the smaller, pure noise.
    question = replace(question, mechanism="staircase") if question.open_noise else question
    numbers = numbers_of(session, question)
    shares = split(numbers)
    plan = shares.plan(numbers)
    records = Records(session.batches, feature_map(study, 1))

    pages = _PAGES if shares.form == "gram" else (*_PAGES, "rows/moments/orthogonal_score.proof.md")
    # The page of what joins pure and Gaussian draws.
    pages = pages if question.budget.pure else (*pages, "accounting/filters.proof.md")
    model_mechanism = "ball" if question.budget.pure else "gaussian"

    def compute(gate: Gate) -> Facts:
        prediction = learn(gate, records, numbers.design(shares.part), shares.form)
        prediction = replace(prediction, bound=prediction.cut(plan, numbers.rows))
        return _compared(gate, session, question, plan, shares, records, prediction)

    drawn = (model_mechanism, CENTRES_MECHANISM, question.mechanism)
    return answer_request(Result, session, question, plan, compute, pages=pages, mechanisms=drawn)


def numbers_of(session: BaseSession, question: Question) -> TrialNumbers:
    """Return the public numbers that the split depends on."""
    study = session.study
    features = feature_map(study, 1).size
    return TrialNumbers(session.batches.rows, features, question.budget, question.mechanism)


def residual_arm_sums(records: TableRecords, prediction: Prediction) -> Sums:
    """Return both arms' totals of outcomes less what is predicted of them, moved by the bound to start at zero."""
    residuals = [part.steps - prediction.steps(part) + prediction.bound_steps for part in records.parts()]
    return (arm_totals(records.table.treated, np.concatenate(residuals)).sums,)


def residual_totals(records: Records, prediction: Prediction) -> tuple[TwoArms, Fraction, Fraction]:
    """Return both arms' totals of outcomes less what is predicted of them, their unit and their public range."""
    (totals,) = records.run(residual_arm_sums, prediction)
    study = records.source.study
    low, high = study.outcome_range
    step = outcome_unit(study.outcome_bounds)
    fitted = prediction.fitted(records.count)
    width = (high - low + 2 * prediction.bound_steps * step) * fitted
    return TwoArms.of(totals), step * fitted, width


def _compared(
    gate: Gate,
    session: BaseSession,
    question: Question,
    plan: Plan,
    shares: Split,
    records: Records,
    prediction: Prediction,
) -> Facts:
    """Return the contrast of outcomes less what is predicted of them."""
    arms, unit, width = residual_totals(records, prediction)
    released = release(gate, plan, arms, unit, width, session.study.treated_share, ARMS)
    plain = facts_of(session, question, ARMS, released)
    used = prediction.bound_steps > 0
    explained = (prediction.sd / prediction.outcome_sd) ** 2 if used else 0.0
    drawn = dict.fromkeys(_WORDS, "l2-ball") | {"norms": "Laplace"}
    if not question.budget.pure:
        drawn = dict.fromkeys(_WORDS, "Gaussian")
    plain["releases"] = (
        *((said, f"{drawn[name]} noise") for name, said in _WORDS.items()),
        *plain["releases"],
    )
    plain["method"] = (
        "contrast adjusted for covariates" if used else "contrast; covariates explain too little"
    )
    plain["details"] |= {
        "adjusted": used,
        "features": records.features.size,
        "model_budget_share": float(shares.part),
        "explained_variance": min(explained, 1.0),
    }
    return plain


# Effects on several outcomes, and by period, where everything about a person is private.
#
# The share treated is released once; then the mean of everyone, the contrast and its second moment of all outcomes,
# each of the three for all outcomes together.


PAGE = "rows/moments/several_outcomes.proof.md"
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
        releases = release_effects(gate, plan, arms, chosen, study.treated_share)
        pages = (PAGE, *PAGES[POOLED], *((EARLIER_PAGE,) if chosen.slopes else ()))
        drawn = (*chosen.mechanisms(question.mechanism), question.mechanism)
        return Facts(
            guarantee=question.guarantee(session, pages, mechanisms=drawn),
            released=tuple(
                OutcomeEffect(name, None, _numbers(*one, ends, means))
                for name, one, ends in zip(chosen.names, releases, chosen.ranges, strict=True)
            ),
            measure=question.measure,
            method=f"difference in means (centred contrast){', less earlier numbers' if chosen.slopes else ''}",
            releases=_releases(chosen, rows),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details=slopes_said(chosen)
            | {
                "rows": rows,
                "share_treated": float(releases[0][0].setting.share),
                "mechanism": chosen.drawn(question.mechanism),
            },
            interval_target=None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
        )

    description = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return answer_request(OutcomesResult, session, question, plan, compute, said=description)


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
    noise_factor = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(noise_factor).limit_denominator(10**6)
    shares = dict(pooled_shares(rows, Budget(epsilon, question.budget.delta), question.mechanism))
    if question.measure in OF_MEANS:
        remaining = (1 - MEAN_PART) / (1 - shares["centre"])
        shares = {name: one * remaining for name, one in shares.items()} | {"centre": MEAN_PART}
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
def release_effects(
    gate: Gate, plan: Plan, arms: Sequence[TwoArms], outcomes: Outcomes, declared: Fraction | None
) -> list[tuple[Contrast, Released]]:
    """Return the released contrast and mean of every outcome."""
    rows = arms[0].count
    weights = outcomes.weights
    widths = outcomes.widths
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
    for mean, width, mean_noise in zip(means, widths, noise, strict=True):
        start = min(max(mean.value, Fraction(0)), width)
        centre = least_error_centre(start, width, rows, share, share_variance, mean_noise.variance)
        shift = float(start - centre)
        spread = sqrt(mean.noise.variance)
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
    contrasts = []
    for index, released_effect in enumerate(zip(settings, bounds, effects, squares, strict=True)):
        of_variance = plan.several_noise("moment", [limits[index] / rows] * len(limits), weights)[index]
        contrasts.append((Contrast(*released_effect, of_variance), means[index]))
    return contrasts


def _numbers(
    contrast: Contrast, mean: Released, outcome_range: tuple[Fraction, Fraction], means: bool
) -> Linear | JointArmMeans:
    """Return what is known of one outcome: the difference, or both arms' means."""
    low, high = map(float, outcome_range)
    if means:
        return contrast.both_means(mean.noise, (low, high))
    sizes = contrast.setting.arm_sizes(contrast.sensitivity.rows)
    uncertainty = with_rare_events(contrast.uncertainty(), outcome_range, sizes)
    return Linear(float(contrast.effect), uncertainty, (low - high, high - low))


# Effects by period where everything about a person is private: a centred contrast of changes for each period.
#
# The share treated is released once, and then for each period a centre, the contrast and its second moment. A
# person is in all of them, so that the budget is divided: of Gaussian noise, its square.


EVENT_STUDY_PAGE = "rows/moments/event_study.proof.md"


def record_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; n is public and nothing else is."""
    study = session.study
    before = session.study.before
    assert before is not None
    source = session.batches
    rows, _ = complete_sizes(source)
    others = [period for period in range(study.measured) if period != place]
    plan = periods_plan(question, rows, others)

    labels = before.labels(study.outcome)
    unit = change_unit(study)
    width = float(unit * OUTCOME_STEPS)
    reference = labels[place]

    def compute(gate: Gate) -> Facts:
        _, since = period_totals(source, place)
        share = release_share(gate, since[place], study.treated_share)
        effects = []
        for period in others:
            contrast = release_periods(gate, plan, since[period], unit, share, period)
            linear = Linear(*contrast, (-width, width))
            effects.append(Effect(labels[period], linear, question.level, len(others)))
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
                    (f"centre, contrast and second moment at {one.name}", "one release_effects each")
                    for one in effects
                ),
            ),
            not_covered=(*causal_caveats(study, question.estimand), SmallArms(float(LEAST_SHARE))),
            details={"rows": rows, "share_treated": float(share[0]), "mechanism": question.mechanism},
        )

    description = {"question": "event_study", "reference": place}
    return answer_request(EventStudyResult, session, question, plan, compute, said=description)


def periods_plan(question: Question, rows: int, periods: list[int]) -> Plan:
    """Return the split over the share treated and, alike for all periods, centre, contrast and moment."""
    pooled = pooled_shares(rows, question.budget, question.mechanism)
    shares = {"share": pooled["share"]}
    for period in periods:
        shares |= {
            f"{what} {period}": part / len(periods) for what, part in pooled.items() if what != "share"
        }
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
    found = release_contrast(gate, arms, unit, width, setting, (contrast, moment))
    return float(found.effect), found.uncertainty()


# Means of several arms where everything about a person is private: one vector, for one outcome or several.
#
# With r in [-1, 1] an outcome in parts of half its range, a row adds (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 to the three
# sums of its arm, so that numbers of rows and squares come with the sums of outcomes.


# Proof: arms.proof.md


ARM_MEANS_PAGES = ("rows/moments/arms.proof.md", "rows/moments/group_scores.proof.md")
NAME = "cells"
# An arm of fewer rows than so many standard deviations of their noise is lost in it: its mean may be anywhere.
_LOST = 4.0


@dataclass(frozen=True, slots=True)
class CellMean:
    """The mean of an arm's outcomes in [low, low + width], from its three released sums, each with this noise."""

    sums: Floats
    noise: NoiseDistribution
    low: float
    width: float

    @property
    def size_sd(self) -> float:
        """Standard deviation of the noise of the number of rows."""
        return sqrt(3 * self.noise.variance)

    @property
    def size(self) -> float:
        """The number of rows, not below where it is lost in its noise."""
        return max(float(self.sums.sum()), _LOST * self.size_sd)

    @property
    def _place(self) -> float:
        """The mean of r."""
        return min(max(float(self.sums[2] - self.sums[0]) / self.size, -1.0), 1.0)

    @property
    def estimate(self) -> float:
        """The mean outcome."""
        return self.low + self.width * (1 + self._place) / 2

    @property
    def error(self) -> Uncertainty:
        """The error of the mean; the noise of its number of rows makes it larger by Fieller's factor."""
        r = self._place
        size = self.size
        unit = self.width / 2
        factor = 1 / (1 - (2 * self.size_sd / size) ** 2)
        weights = np.array([1 + r, abs(r), 1 - r]) / size
        squares = np.array([(1 + r) ** 2, 1 - r * r, (1 - r) ** 2]) / size**2
        noise_variance = float(weights @ weights) * self.noise.variance
        variance = (float(self.sums @ (1.0, -1.0, 1.0)) / size - r * r + noise_variance) / size
        return Uncertainty(
            noise=weighted_sum(sqrt(factor) * unit * weights, [self.noise] * 3),
            variance=factor * unit**2 * variance,
            variance_cap=factor * unit**2 / size,
            variance_noise=weighted_sum(factor * unit**2 * squares, [self.noise] * 3),
            bias=self.width if float(self.sums.sum()) < size else 0.0,
        )


@silence()
def record_arms(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private means of all arms; n is public and nothing else is."""
    study = session.study
    low, high = study.outcome_range
    outcome = Outcomes((study.outcome_name,), ((low, high),), (Fraction(1),))
    question = with_noise(session, question, outcome)
    plan = arms_plan(question, outcome)

    def compute(gate: Gate) -> Facts:
        (found,) = release_cell_means(gate, plan, outcome, totals_by_arm(session.batches, outcome))
        ends = float(low), float(high)
        means = tuple(
            Effect(
                label, Linear(one.estimate, known, ends), question.level, size=one.size, size_sd=one.size_sd
            )
            for label, one in zip(study.treatment_labels, found, strict=True)
            for known in (with_rare_events(one.error, ends, (one.size,)),)
        )
        return Facts(_said(session, question, outcome), means=means)

    drawn = (question.mechanism,)
    description = {"question": "arms"}
    return answer_request(
        ArmsResult,
        session,
        question,
        plan,
        compute,
        pages=ARM_MEANS_PAGES,
        mechanisms=drawn,
        said=description,
    )


@silence()
def record_arm_effects(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects of all arms on all outcomes; n is public and nothing else is."""
    source = session.batches
    labels = session.study.treatment_labels
    question = with_noise(session, question, outcomes)
    plan = arms_plan(question, outcomes)

    def compute(gate: Gate) -> Facts:
        chosen = outcomes
        if outcomes.measured_before:
            size = source.rows / len(labels)
            noise = [float(one.variance) / size**2 for one in cell_noise(plan, outcomes)]
            chosen = with_slopes(gate, source, outcomes, 2 / size, noise)
        found = release_cell_means(gate, plan, chosen, totals_by_arm(source, chosen))
        drawn = (question.mechanism, *(("box",) if chosen.slopes and plan.mechanism != "gaussian" else ()))
        pages = (*ARM_MEANS_PAGES, *((EARLIER_PAGE,) if chosen.slopes else ()))
        return Facts(
            _said(session, question, chosen),
            guarantee=question.guarantee(session, pages, mechanisms=drawn),
            released=tuple(
                OutcomeEffect(name, label, _both(means[arm], means[0], ends))
                for name, ends, means in zip(chosen.names, chosen.ranges, found, strict=True)
                for arm, label in enumerate(labels)
                if arm > 0
            ),
            measure=question.measure,
        )

    description = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return answer_request(OutcomesResult, session, question, plan, compute, said=description)


def _both(first: CellMean, second: CellMean, ends: tuple[Fraction, Fraction]) -> IndependentArmMeans:
    pair = (first.estimate, second.estimate), (first.error, second.error)
    return IndependentArmMeans(*pair, (float(ends[0]), float(ends[1])), (first.size, second.size))


def _said(session: BaseSession, question: Question, outcomes: Outcomes) -> dict[str, Any]:
    study, (total, length) = session.study, bounds(outcomes.weights)
    norm = f"length {float(length):.4g}" if question.mechanism == "gaussian" else f"sum {float(total):.4g}"
    earlier = (("moments with earlier numbers", "each moves by at most 1/rows"),) if outcomes.slopes else ()
    return {
        "method": f"means of all arms{', less earlier numbers' if outcomes.slopes else ''}",
        "releases": (*earlier, ("number, sum and squares of outcomes in every arm", f"changes of {norm}")),
        "not_covered": causal_caveats(study, Estimand.ATE),
        "details": slopes_said(outcomes) | {"rows": session.batches.rows, "mechanism": question.mechanism},
        "interval_target": None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
    }


def bounds(weights: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    """Return the largest sum of absolute changes of all weighted sums, and their largest Euclidean length."""
    squares = sum((weight**2 for weight in weights), Fraction(0))
    return SCORE_TERMS.absolute * sum(weights, Fraction(0)), SCORE_TERMS.euclidean * sqrt_up(squares)


def with_noise(session: BaseSession, question: Question, outcomes: Outcomes) -> Question:
    """Return the question with the smaller of Laplace and Gaussian noise where that is left open."""
    variants = [replace(question, mechanism=kind) for kind in count_mechanisms(session, question)]
    return min(variants, key=lambda variant: cell_noise(arms_plan(variant, outcomes), outcomes)[0].variance)


def arms_plan(question: Question, outcomes: Outcomes) -> Plan:
    """Return the plan: everything for the sums by arm, but for the slopes of earlier values."""
    kinds = {NAME: Kind.VECTOR if question.mechanism == "gaussian" else Kind.CELLS}
    shares = {NAME: Fraction(1)}
    if outcomes.measured_before:
        shares = {EARLIER: EARLIER_PART, NAME: 1 - EARLIER_PART}
        kinds = kinds | {EARLIER: Kind.SEVERAL}
    return Plan.split(question.budget, shares, question.mechanism, kinds)


def cell_noise(plan: Plan, outcomes: Outcomes) -> list[NoiseDistribution]:
    """Return the noise of each sum of every outcome; draws nothing."""
    total, length = bounds(outcomes.weights)
    if plan.mechanism == "gaussian":
        return [plan.coordinate_noise(NAME, length / weight) for weight in outcomes.weights]
    return [plan.cells_noise(NAME, total / weight) for weight in outcomes.weights]


def release_cell_means(
    gate: Gate, plan: Plan, outcomes: Outcomes, totals: Sequence[Sequence[Arm]]
) -> list[list[CellMean]]:
    """Return what is known of the mean of every outcome in every arm, from one vector."""
    total, length = bounds(outcomes.weights)
    exact = [
        weight * part
        for weight, arms in zip(outcomes.weights, totals, strict=True)
        for arm in arms
        for part in three_sums(arm)
    ]
    noisy = release_sums(gate, NAME, exact, plan.mechanism != "gaussian", total, length)
    sums = noisy.floats().reshape(len(totals), -1, 3)
    numbers = zip(
        sums, outcomes.weights, cell_noise(plan, outcomes), outcomes.ranges, outcomes.widths, strict=True
    )
    return [
        [CellMean(arm / float(weight), noise, float(ends[0]), float(width)) for arm in arms]
        for arms, weight, noise, ends, width in numbers
    ]


def three_sums(arm: Arm) -> tuple[Fraction, Fraction, Fraction]:
    """Return an arm's sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4, r = 2 y - 1 for y in parts of the range; exact."""
    first = Fraction(arm.total, OUTCOME_STEPS)
    second = Fraction(arm.squares, OUTCOME_STEPS**2)
    return arm.count - 2 * first + second, 2 * (first - second), second
