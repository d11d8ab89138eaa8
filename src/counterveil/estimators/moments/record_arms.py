"""Means of several private arms, for one outcome or several, from one released vector.

With r in [-1, 1] an outcome of a row in half ranges around the middle of its declared range, released are for
every outcome and arm the noisy sums L, M and H of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 over the arm's rows.
They make

    size N = L + M + H,    mean m of r = (H - L) / N,    mean square of r = (L - M + H) / N.

In: private rows (arm, outcomes); their number and the declared ranges are public. Out: means by arm and their
differences, in units of the outcome, with errors from sampling and noise.

Error of m, with v the noise variance of each sum. To first order m moves with noise by
((1-m) noise of H - m noise of M - (1+m) noise of L) / N, whose variance is

    V = ((1-m)^2 + m^2 + (1+m)^2) v / N^2,    sampling variance = (mean square of r - m^2 + V) / N.

V is added since the square of the noisy m is larger than that of the mean by V in expectation. Sizes are
noisy too, as arms are private, and m is a ratio: as in Fieller's interval (1954) both variances are
multiplied by

    1 / (1 - z^2 (3 v) / N^2),    z = 2,

3 v being the noise variance of N. An error is the same object for every confidence level, so that z is that
of about 95 percent at all of them; N is taken for no less than 4 sqrt(3 v), which keeps the factor to 4/3.
Where the released N is less the mean is lost in noise: the whole range is added as a bias.

Why it is private: the three terms of a row are not negative and add up to one, so that with weights w_j of
the outcomes a replaced row moves the vector by at most sqrt(2 sum w_j^2) in length and 2 sum w_j in absolute
changes. Proofs: `rows/moments/arms.proof.md`, and `rows/moments/group_scores.proof.md` on which it rests;
where outcomes are adjusted for earlier values `rows/earlier_values.proof.md`. What is made of the sums is
post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Study
from counterveil.data.domains import Label
from counterveil.estimators.earlier_values import PAGE as EARLIER_PAGE
from counterveil.estimators.earlier_values import PART as EARLIER_PART
from counterveil.estimators.earlier_values import slope_details, with_slopes
from counterveil.estimators.histogram import count_mechanisms
from counterveil.estimators.method import Prepared
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Target
from counterveil.privacy.provenance import ArmTotalChange, Bounded, Estimator, LessEarlierNumbers, Quantity
from counterveil.results.answering import Facts
from counterveil.results.arms import ArmsResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.earlier_values import NAME as EARLIER
from counterveil.rows.moments.arms import NAME, bounds, release_arm_cells
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan

ARM_MEANS_PAGES = ("rows/moments/arms.proof.md", "rows/moments/group_scores.proof.md")
# An arm of fewer rows than so many standard deviations of their noise is lost in it: its mean may be anywhere.
_LOST_SDS = 4.0


@dataclass(frozen=True, slots=True)
class CellMean:
    """The mean of an arm's outcomes in [low, low + width], from its three released sums, each with this noise.

    With L, M and H the sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4, r in [-1, 1] an outcome in parts of half its range,

        N = L + M + H,    mean of r = (H - L) / N,    mean of r^2 = (L - M + H) / N.

    Attributes
    ----------
    sums : ndarray of float64, (3,)
        L, M and H, with their noise.
    noise : NoiseDistribution
        The noise of each.
    low, width : float
        Of the outcome's range, in its units.
    """

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
        return max(float(self.sums.sum()), _LOST_SDS * self.size_sd)

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
        """The error of the mean, in units of the outcome, with Fieller's factor for the noise of its size."""
        r = self._place
        size = self.size
        unit = self.width / 2
        # Two standard errors, whatever the level of the interval; `size` keeps the factor to 4/3 at most.
        factor = 1 / (1 - (2 * self.size_sd / size) ** 2)
        weights = np.array([1 + r, abs(r), 1 - r]) / size
        squares = np.array([(1 + r) ** 2, 1 - r * r, (1 - r) ** 2]) / size**2
        noise_variance = float(weights @ weights) * self.noise.variance
        # The square of the noisy mean is too large by its noise's variance, which is added back.
        variance = (float(self.sums @ (1.0, -1.0, 1.0)) / size - r * r + noise_variance) / size
        return Uncertainty(
            noise=weighted_sum(sqrt(factor) * unit * weights, [self.noise] * 3),
            variance=factor * unit**2 * variance,
            variance_cap=factor * unit**2 / size,
            variance_noise=weighted_sum(factor * unit**2 * squares, [self.noise] * 3),
            bias=self.width if float(self.sums.sum()) < size else 0.0,
        )


def record_arms(public: PublicData, question: Question) -> Prepared[ArmsResult]:
    """Return the means of all arms; n is public and nothing else is."""
    study = public.study
    low, high = study.outcome_range
    outcome = Outcomes((study.outcome_name,), ((low, high),), (Fraction(1),))
    question = with_noise(public, question, outcome)
    plan = arms_plan(question, outcome)
    ends = float(low), float(high)

    def arm_mean(label: Label, mean: CellMean) -> Effect:
        error = with_rare_events(mean.error, ends, (mean.size,))
        return Effect(
            label, Linear(mean.estimate, error, ends), question.level, size=mean.size, size_sd=mean.size_sd
        )

    def estimate(gate: Gate) -> Facts:
        (arms,) = release_cell_means(gate, plan, outcome)
        means = tuple(arm_mean(label, mean) for label, mean in zip(study.treatment_labels, arms, strict=True))
        return Facts(_common_facts(study, public.rows, question, outcome), means=means)

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=ArmsResult,
        pages=ARM_MEANS_PAGES,
        mechanisms=(question.mechanism,),
        description={"question": "arms"},
    )


def record_arm_effects(
    public: PublicData, question: Question, outcomes: Outcomes
) -> Prepared[OutcomesResult]:
    """Return the effects of all arms on all outcomes; n is public and nothing else is."""
    study = public.study
    rows = public.rows
    labels = study.treatment_labels
    question = with_noise(public, question, outcomes)
    plan = arms_plan(question, outcomes)

    def estimate(gate: Gate) -> Facts:
        compared = outcomes
        if outcomes.measured_before:
            size = rows / len(labels)
            noise = [float(each.variance) / size**2 for each in cell_noise(plan, outcomes)]
            # Squared coefficients of a difference of means of arms of equal size: 1/size + 1/size.
            compared = with_slopes(gate, outcomes, 2 / size, noise)
        released = release_cell_means(gate, plan, compared)
        return Facts(
            _common_facts(study, rows, question, compared),
            released=tuple(
                OutcomeEffect(name, label, _both(means[arm], means[0], ends))
                for name, ends, means in zip(compared.names, compared.ranges, released, strict=True)
                for arm, label in enumerate(labels)
                if arm > 0
            ),
            measure=question.measure,
        )

    slopes = bool(outcomes.measured_before)
    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=OutcomesResult,
        pages=(*ARM_MEANS_PAGES, *((EARLIER_PAGE,) if slopes else ())),
        mechanisms=(question.mechanism, *(("box",) if slopes and plan.mechanism != "gaussian" else ())),
        description={
            "question": "outcomes",
            "importance": [str(weight) for weight in outcomes.weights],
        },
    )


def _both(first: CellMean, second: CellMean, ends: tuple[Fraction, Fraction]) -> IndependentArmMeans:
    estimates = first.estimate, second.estimate
    errors = first.error, second.error
    sizes = first.size, second.size
    return IndependentArmMeans(estimates, errors, (float(ends[0]), float(ends[1])), sizes)


def _common_facts(study: Study, rows: int, question: Question, outcomes: Outcomes) -> dict[str, Any]:
    """Return what is said of one outcome and of several alike."""
    total, length = bounds(outcomes.weights)
    gaussian = question.mechanism == "gaussian"
    change = ArmTotalChange(float(length if gaussian else total), length=gaussian)
    earlier = ((Quantity.EARLIER_MOMENTS, Bounded.ONE_OVER_ROWS),) if outcomes.slopes else ()
    means = Estimator.MEANS_OF_ALL_ARMS
    return {
        "method": LessEarlierNumbers(means) if outcomes.slopes else means,
        "releases": (*earlier, (Quantity.ARM_TOTALS, change)),
        "not_covered": causal_caveats(study, Estimand.ATE),
        "details": slope_details(outcomes) | {"rows": rows, "mechanism": question.mechanism},
        "interval_target": None if study.randomised is True else Target.CONFOUNDED_DIFFERENCE,
    }


def with_noise(public: PublicData, question: Question, outcomes: Outcomes) -> Question:
    """Return the question with the smaller of Laplace and Gaussian noise where that is left open."""
    variants = [replace(question, mechanism=kind) for kind in count_mechanisms(public, question)]
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


def release_cell_means(gate: Gate, plan: Plan, outcomes: Outcomes) -> list[list[CellMean]]:
    """Return what is known of the mean of every outcome in every arm, from one vector."""
    sums = release_arm_cells(gate, outcomes, plan.mechanism != "gaussian")
    by_outcome = zip(
        sums, outcomes.weights, cell_noise(plan, outcomes), outcomes.ranges, outcomes.widths, strict=True
    )
    return [
        [CellMean(arm / float(weight), noise, float(ends[0]), float(width)) for arm in arms]
        for arms, weight, noise, ends, width in by_outcome
    ]
