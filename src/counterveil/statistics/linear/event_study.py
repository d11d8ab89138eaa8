"""Effects by period where only outcomes are private: a vector of weighted sums with the same public weights.

Lineage: two-way fixed effects with leads and lags of a common adoption date, which for a balanced panel are
differences of means of each person's own changes (Borusyak, Jaravel and Spiess 2024; Roth et al. 2023). Measurements
are released, not changes: one person moves P measurements by W each, so that a difference of two has noise of
W sqrt(2 P), where changes, which move by 2 W, would have 2 W sqrt(P - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Table
from counterveil.data.outcomes import Before
from counterveil.data.panels import (
    changes,
    changes_from,
    complete,
    complete_sizes,
    period_totals,
    study_of_changes,
)
from counterveil.inference import Uncertainty
from counterveil.numerics.arms import TwoArms
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.privacy import Budget
from counterveil.results.answering import Facts, settled
from counterveil.results.effect import Effect, Linear
from counterveil.results.event_study import EventStudyResult
from counterveil.results.question import Question, causal_caveats
from counterveil.session import BaseSession, Gate, Plan, Released
from counterveil.statistics.linear import difference_in_means
from counterveil.statistics.linear import effect as linear_effects
from counterveil.statistics.linear.effect import LinearEffect, VarianceForm
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.sensitivity import LinearEstimate, MeanContrast
from counterveil.statistics.linear.weighting import weighted_effect

PAGE = "statistics/linear/event_study.proof.md"
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class PeriodForm:
    """A public comparison of the arms by weights: a weighted sum of any numbers of these rows, and its variance.

    The width of its sensitivity is that of one change.
    """

    table: Table
    sensitivity: LinearEstimate
    share: Fraction
    form: LinearForm
    variance_form: VarianceForm
    effect: LinearEffect

    @property
    def largest(self) -> Fraction:
        """How far a number that moves by one moves the comparison."""
        return self.sensitivity.estimate / self.sensitivity.width

    @property
    def sizes(self) -> tuple[int, int]:
        """How many people are compared, and how many of them are treated."""
        return self.table.rows, int(self.table.treated.sum())

    def value(self, numbers: NDArray[np.int64]) -> Fraction:
        """Return the comparison of whole numbers, exact."""
        return self.form.total(numbers)

    def variance(self, changes: NDArray[np.int64]) -> Fraction:
        """Return the variance of the comparison of changes in steps of their range."""
        return self.variance_form.value(changes, _STEP_BITS) * self.sensitivity.width**2

    def compared(self, place: int, by_change: bool) -> ComparedPeriods:
        """Return the comparison of every period's measurements, or changes, and variances of the changes."""
        since = [changes(self.table, period, place) for period in range(len(self.table.measures))]
        return ComparedPeriods(
            [self.value(numbers) for numbers in (since if by_change else self.table.measures)],
            [self.variance(numbers) for numbers in since] if self.share else [],
        )


@dataclass(frozen=True, slots=True)
class MeanChanges:
    """The difference of both arms' means, added up in passes; the width of its sensitivity is that of one change."""

    source: Backend
    sizes: tuple[int, int]
    sensitivity: MeanContrast
    share: Fraction

    @property
    def largest(self) -> Fraction:
        """How far a number that moves by one moves the comparison."""
        return self.sensitivity.estimate / self.sensitivity.width

    def compared(self, place: int, by_change: bool) -> ComparedPeriods:
        """Return the comparison of every period's measurements, or changes, and variances of the changes."""
        levels, since = period_totals(self.source, place)
        return ComparedPeriods(
            [arms.treated.mean() - arms.control.mean() for arms in (since if by_change else levels)],
            [self._variance(arms) for arms in since] if self.share else [],
        )

    def _variance(self, arms: TwoArms) -> Fraction:
        parts = (arm.variance() / arm.count for arm in (arms.treated, arms.control))
        return sum(parts, Fraction(0)) * (self.sensitivity.width / OUTCOME_STEPS) ** 2


@dataclass(frozen=True, slots=True)
class ComparedPeriods:
    """Exact numbers by the place of the period: comparisons in steps, and the variances of changes' comparisons.

    There are no variances where none is released.
    """

    values: list[Fraction]
    variances: list[Fraction]


def outcome_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; only outcomes are private."""
    study, before = session.study, session.study.before
    assert before is not None
    # Each of P measurements has about so much of the budget.
    count = study.measured
    part = Fraction(1, count)
    if question.mechanism == "gaussian":
        part = Fraction(count**-0.5).limit_denominator(10**6)
    one = replace(question, budget=Budget(question.budget.epsilon * part, question.budget.delta))
    made: PeriodForm | MeanChanges
    if question.method == "difference_in_means":
        made = mean_changes(session.batches, one)
    else:
        made = comparison(changes_from(complete(session.table), place), one)
    plan = periods_plan(question, count, place, made.share, before.change is not None)

    def compute(gate: Gate) -> Facts:
        released = release(gate, made, before, place)
        labels, cap = before.labels(study.outcome), float(made.sensitivity.variance_cap)
        width = float(made.sensitivity.width)
        reference = released.values.get(place)
        effects = []
        for period, label in enumerate(labels):
            if period == place:
                continue
            value, variance = released.values[period], released.variances.get(period)
            known = (cap, None) if variance is None else (float(variance), variance.noise)
            estimate = float(value.value - (0 if reference is None else reference.value))
            linear = Linear(estimate, Uncertainty(value.noise, known[0], cap, known[1]), (-width, width))
            effects.append(Effect(label, linear, question.level, len(labels) - 1))
        effect = made.effect if isinstance(made, PeriodForm) else None
        pages = (PAGE, *((difference_in_means.PAGE,) if effect is None else effect.pages))
        return Facts(
            periods=tuple(effects),
            reference=labels[place],
            place=place,
            outcome=study.outcome,
            earlier=before.earlier,
            reference_noise=None if reference is None else reference.noise,
            guarantee=question.guarantee(session, pages, reference=labels[place]),
            method="difference in means" if effect is None else effect.method,
            releases=_releases(labels, released),
            not_covered=causal_caveats(study, question.estimand) if effect is None else effect.not_covered,
            details=_details(session.batches.rows, question, made),
            diagnostics={} if effect is None else effect.diagnostics,
        )

    said = {"question": "event_study", "reference": place}
    return settled(EventStudyResult, session, question, plan, compute, said=said)


def mean_changes(source: Backend, question: Question) -> MeanChanges:
    """Return the difference of means of people with a measurement in every period."""
    rows, treated = complete_sizes(source)
    means = MeanContrast(study_of_changes(source.study).outcome_bounds.width, treated, rows - treated)
    share = difference_in_means.chosen_share(means, question)
    return MeanChanges(source, (rows, treated), means, share)


def comparison(table: Table, question: Question) -> PeriodForm:
    """Return the comparison by the weights that the question's method finds from public columns."""
    effect = (weighted_effect if question.method == "weighting" else matched_effect)(table, question)
    rows = effect.table or table
    form, variance_form = linear_form(effect.coefficients), effect.variance_form()
    bounds = linear_effects.sensitivity_of(rows, form, variance_form)
    share = effect.share
    if share is None:
        share = linear_effects.chosen_share(bounds, question, effect.expected_part)
    return PeriodForm(rows, bounds, share, form, variance_form, effect)


def periods_plan(question: Question, count: int, place: int, share: Fraction, by_change: bool) -> Plan:
    """Return the split over the measurements of all periods, or the changes, and the variances of the changes."""
    others = [period for period in range(count) if period != place]
    values = others if by_change else range(count)
    shares = {_name(period): (1 - share) / len(values) for period in values}
    shares |= {_name(period, "variance"): share / len(others) for period in others}
    return Plan.split(question.budget, shares, question.mechanism)


def _name(period: int, what: str = "period") -> str:
    return f"{what} {period}"


@dataclass(frozen=True, slots=True)
class ReleasedPeriods:
    """What was released: the comparison of each period by its place, and the variance of its change."""

    values: dict[int, Released]
    variances: dict[int, Released]


# Proof: event_study.proof.md
def release(gate: Gate, made: PeriodForm | MeanChanges, before: Before, place: int) -> ReleasedPeriods:
    """Return the released comparisons and, where they are paid for, the variances of changes since `place`."""
    exact = made.compared(place, before.change is not None)
    reach = before.levels[1] - before.levels[0] if before.change is None else made.sensitivity.width
    unit, values, variances = reach / OUTCOME_STEPS, {}, {}
    for period, value in enumerate(exact.values):
        if before.change is None or period != place:
            values[period] = gate.release(_name(period), value * unit, made.largest * reach)
    for period, variance in enumerate(exact.variances):
        if period != place:
            name = _name(period, "variance")
            variances[period] = gate.release(name, variance, made.sensitivity.variance)
    return ReleasedPeriods(values, variances)


def _releases(labels: Sequence[object], released: ReleasedPeriods) -> tuple[tuple[str, str], ...]:
    found = []
    for period, value in released.values.items():
        found.append((f"comparison at {labels[period]}", f"sensitivity {float(value.noise.sensitivity):.6g}"))
    for period, variance in released.variances.items():
        bound = float(variance.noise.sensitivity)
        found.append((f"variance of the change at {labels[period]}", f"sensitivity {bound:.6g}"))
    return tuple(found)


def _details(everyone: int, question: Question, made: PeriodForm | MeanChanges) -> dict[str, float | str]:
    rows, treated = made.sizes
    found: dict[str, float | str] = {"rows": rows, "treated": treated, "control": rows - treated}
    found |= made.effect.details if isinstance(made, PeriodForm) else {}
    if rows < everyone:
        found["rows_with_gaps"] = everyone - rows
    return found | {"mechanism": question.mechanism, "variance_budget_share": float(made.share)}
