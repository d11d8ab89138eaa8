"""Means of several arms where everything about a person is private: one vector, for one outcome or several.

With r in [-1, 1] an outcome in parts of half its range, a row adds (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 to the three
sums of its arm, so that numbers of rows and squares come with the sums of outcomes.
"""

# Proof: arms.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import OUTCOME_STEPS, silence
from counterveil.inference.convolution import NoiseDistribution, weighted_sum
from counterveil.inference.measures import ApartMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.columns import Arm
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Target
from counterveil.results.answering import Facts, settled
from counterveil.results.arms import ArmsResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, causal_caveats
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.statistics.histogram import count_mechanisms, release_sums
from counterveil.statistics.moments.sensitivity import SCORE_TERMS
from counterveil.statistics.outcome_place import NAME as EARLIER
from counterveil.statistics.outcome_place import PAGE as EARLIER_PAGE
from counterveil.statistics.outcome_place import PART as EARLIER_PART
from counterveil.statistics.outcome_place import Outcomes, slopes_said, totals_by_arm, with_slopes

PAGES = ("statistics/moments/arms.proof.md", "statistics/moments/group_scores.proof.md")
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
        r, size, unit = self._place, self.size, self.width / 2
        factor = 1 / (1 - (2 * self.size_sd / size) ** 2)
        weights = np.array([1 + r, abs(r), 1 - r]) / size
        squares = np.array([(1 + r) ** 2, 1 - r * r, (1 - r) ** 2]) / size**2
        own = float(weights @ weights) * self.noise.variance
        left = (float(self.sums @ (1.0, -1.0, 1.0)) / size - r * r + own) / size
        return Uncertainty(
            noise=weighted_sum(sqrt(factor) * unit * weights, [self.noise] * 3),
            variance=factor * unit**2 * left,
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
        (found,) = release(gate, plan, outcome, totals_by_arm(session.batches, outcome))
        ends = float(low), float(high)
        means = tuple(
            Effect(
                label, Linear(one.estimate, known, ends), question.level, size=one.size, size_sd=one.size_sd
            )
            for label, one in zip(study.treatment_labels, found, strict=True)
            for known in (with_rare_events(one.error, ends, (one.size,)),)
        )
        return Facts(_said(session, question, outcome), means=means)

    drawn, said = (question.mechanism,), {"question": "arms"}
    return settled(ArmsResult, session, question, plan, compute, pages=PAGES, mechanisms=drawn, said=said)


@silence()
def record_arm_effects(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects of all arms on all outcomes; n is public and nothing else is."""
    source, labels = session.batches, session.study.treatment_labels
    question = with_noise(session, question, outcomes)
    plan = arms_plan(question, outcomes)

    def compute(gate: Gate) -> Facts:
        chosen = outcomes
        if outcomes.measured_before:
            size = source.rows / len(labels)
            noise = [float(one.variance) / size**2 for one in cell_noise(plan, outcomes)]
            chosen = with_slopes(gate, source, outcomes, 2 / size, noise)
        found = release(gate, plan, chosen, totals_by_arm(source, chosen))
        drawn = (question.mechanism, *(("box",) if chosen.slopes and plan.mechanism != "gaussian" else ()))
        pages = (*PAGES, *((EARLIER_PAGE,) if chosen.slopes else ()))
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

    said = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return settled(OutcomesResult, session, question, plan, compute, said=said)


def _both(one: CellMean, other: CellMean, ends: tuple[Fraction, Fraction]) -> ApartMeans:
    pair = (one.estimate, other.estimate), (one.error, other.error)
    return ApartMeans(*pair, (float(ends[0]), float(ends[1])), (one.size, other.size))


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
    asked = [replace(question, mechanism=kind) for kind in count_mechanisms(session, question)]
    return min(asked, key=lambda one: cell_noise(arms_plan(one, outcomes), outcomes)[0].variance)


def arms_plan(question: Question, outcomes: Outcomes) -> Plan:
    """Return the plan: everything for the sums by arm, but for the slopes of earlier values."""
    kinds = {NAME: Kind.VECTOR if question.mechanism == "gaussian" else Kind.CELLS}
    shares = {NAME: Fraction(1)}
    if outcomes.measured_before:
        shares, kinds = {EARLIER: EARLIER_PART, NAME: 1 - EARLIER_PART}, kinds | {EARLIER: Kind.SEVERAL}
    return Plan.split(question.budget, shares, question.mechanism, kinds)


def cell_noise(plan: Plan, outcomes: Outcomes) -> list[NoiseDistribution]:
    """Return the noise of each sum of every outcome; draws nothing."""
    total, length = bounds(outcomes.weights)
    if plan.mechanism == "gaussian":
        return [plan.coordinate_noise(NAME, length / weight) for weight in outcomes.weights]
    return [plan.cells_noise(NAME, total / weight) for weight in outcomes.weights]


def release(
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
    first, second = Fraction(arm.total, OUTCOME_STEPS), Fraction(arm.squares, OUTCOME_STEPS**2)
    return arm.count - 2 * first + second, 2 * (first - second), second
