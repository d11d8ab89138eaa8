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

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.panels import changes, changes_from, complete, declared_change
from counterveil.inference import Uncertainty
from counterveil.numerics.arms import arm_totals
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.privacy import Budget
from counterveil.results.effect import Effect, Linear
from counterveil.results.event_study import EventStudyResult
from counterveil.results.question import Question, causal_caveats
from counterveil.session import Gate, Plan, Released, Session
from counterveil.statistics.linear import difference_in_means
from counterveil.statistics.linear import effect as linear_effects
from counterveil.statistics.linear.effect import LinearEffect, VarianceForm
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.sensitivity import DifferenceInMeans, LinearEstimate
from counterveil.statistics.linear.weighting import weighted_effect

PAGE = "statistics/linear/event_study.proof.md"
_STEP_BITS = OUTCOME_STEPS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """A public comparison of the arms: a weighted sum of any numbers of these rows, and its variance.

    `width` is that of one change. Without a `form` the arms' means are compared.
    """

    table: Table
    sensitivity: DifferenceInMeans | LinearEstimate
    share: Fraction
    form: LinearForm | None = None
    variance_form: VarianceForm | None = None
    effect: LinearEffect | None = None

    @property
    def largest(self) -> Fraction:
        """How far a number that moves by one moves the comparison."""
        return self.sensitivity.estimate / self.sensitivity.width

    def value(self, numbers: NDArray[np.int64]) -> Fraction:
        """Return the comparison of whole numbers, exact."""
        if self.form is not None:
            return self.form.total(numbers)
        arms = arm_totals(self.table.treated, numbers)
        return arms.treated.mean() - arms.control.mean()

    def variance(self, changes: NDArray[np.int64]) -> Fraction:
        """Return the variance of the comparison of changes in steps of their range."""
        if self.variance_form is not None:
            return self.variance_form.value(changes, _STEP_BITS) * self.sensitivity.width**2
        arms = arm_totals(self.table.treated, changes)
        parts = (arm.variance() / arm.count for arm in (arms.treated, arms.control))
        return sum(parts, Fraction(0)) * (self.sensitivity.width / OUTCOME_STEPS) ** 2


def outcome_event_study(session: Session, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; only outcomes are private."""
    table = complete(session.table)
    # Each of P measurements has about so much of the budget.
    count = len(table.measures)
    part = Fraction(1, count)
    if question.mechanism == "gaussian":
        part = Fraction(count**-0.5).limit_denominator(10**6)
    budget = Budget(question.budget.epsilon * part, question.budget.delta)
    made = comparison(changes_from(table, place), replace(question, budget=budget))
    plan = periods_plan(question, count, place, made.share, declared_change(table))

    def compute(gate: Gate) -> dict[str, object]:
        released = release(gate, made, place)
        return _result(session, question, place, made, released).stored()

    request = question.request(plan, session.study, question="event_study", reference=place)
    return EventStudyResult.from_dict(session.run(request, compute))


def comparison(table: Table, question: Question) -> Comparison:
    """Return the comparison that the question's method makes of public columns."""
    width = table.study.outcome_bounds.width
    if question.method == "difference_in_means":
        treated = int(table.treated.sum())
        means = DifferenceInMeans(width, treated, table.rows - treated)
        return Comparison(table, means, difference_in_means.chosen_share(means, question))
    effect = (weighted_effect if question.method == "weighting" else matched_effect)(table, question)
    rows = effect.table or table
    form, variance_form = linear_form(effect.coefficients), effect.variance_form()
    bounds = linear_effects.sensitivity_of(rows, form, variance_form)
    share = effect.share
    if share is None:
        share = linear_effects.chosen_share(bounds, question, effect.expected_part, effect.slack)
    return Comparison(rows, bounds, share, form, variance_form, effect)


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
def release(gate: Gate, made: Comparison, place: int) -> ReleasedPeriods:
    """Return the released comparisons and, where they are paid for, the variances of changes since `place`."""
    table = made.table
    before = table.study.before
    assert before is not None
    count, values, variances = len(table.measures), {}, {}
    unit, reach = (before.levels[1] - before.levels[0]) / OUTCOME_STEPS, before.levels[1] - before.levels[0]
    if before.change is not None:
        reach = made.sensitivity.width
        unit = reach / OUTCOME_STEPS
    for period in range(count):
        if before.change is None or period != place:
            numbers = table.measures[period] if before.change is None else changes(table, period, place)
            values[period] = gate.release(_name(period), made.value(numbers) * unit, made.largest * reach)
    for period in range(count):
        if made.share and period != place:
            value = made.variance(changes(table, period, place))
            variances[period] = gate.release(_name(period, "variance"), value, made.sensitivity.variance)
    return ReleasedPeriods(values, variances)


def _result(
    session: Session, question: Question, place: int, made: Comparison, released: ReleasedPeriods
) -> EventStudyResult:
    study, before = session.study, session.study.before
    assert before is not None
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
        uncertainty = Uncertainty(value.noise, known[0], cap, known[1])
        effects.append(
            Effect(label, Linear(estimate, uncertainty, (-width, width)), question.level, len(labels) - 1)
        )
    pages = (PAGE, *((difference_in_means.PAGE,) if made.effect is None else made.effect.pages))
    return EventStudyResult(
        periods=tuple(effects),
        reference=labels[place],
        place=place,
        earlier=before.earlier,
        estimand=question.estimand,
        reference_noise=None if reference is None else reference.noise,
        guarantee=question.guarantee(session, pages, reference=labels[place]),
        method="difference in means" if made.effect is None else made.effect.method,
        **(question.terms(study) | {"outcome": study.outcome}),
        releases=_releases(labels, released),
        not_covered=causal_caveats(study, question.estimand)
        if made.effect is None
        else made.effect.not_covered,
        details=_details(session, question, made),
        diagnostics={} if made.effect is None else made.effect.diagnostics,
    )


def _releases(labels: Sequence[object], released: ReleasedPeriods) -> tuple[tuple[str, str], ...]:
    found = []
    for period, value in released.values.items():
        found.append((f"comparison at {labels[period]}", f"sensitivity {float(value.noise.sensitivity):.6g}"))
    for period, variance in released.variances.items():
        bound = float(variance.noise.sensitivity)
        found.append((f"variance of the change at {labels[period]}", f"sensitivity {bound:.6g}"))
    return tuple(found)


def _details(session: Session, question: Question, made: Comparison) -> dict[str, float | str]:
    treated = int(made.table.treated.sum())
    found: dict[str, float | str] = {
        "rows": made.table.rows,
        "treated": treated,
        "control": made.table.rows - treated,
    }
    found |= {} if made.effect is None else made.effect.details
    if made.table.rows < session.table.rows:
        found["rows_with_gaps"] = session.table.rows - made.table.rows
    return found | {"mechanism": question.mechanism, "variance_budget_share": float(made.share)}
