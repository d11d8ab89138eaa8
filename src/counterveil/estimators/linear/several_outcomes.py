"""Effects on several outcomes, and by period, where only outcomes are private.

Lineage: two-way fixed effects with leads and lags of a common adoption date, which for a balanced panel are
differences of means of each person's own changes (Borusyak, Jaravel and Spiess 2024; Roth et al. 2023). Measurements
are released, not changes: one person moves P measurements by W each, so that a difference of two has noise of
W sqrt(2 P), where changes, which move by 2 W, would have 2 W sqrt(P - 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Table, silence
from counterveil.data.domains import Label
from counterveil.data.outcomes import Before
from counterveil.data.panels import (
    changes,
    changes_from,
    complete,
    complete_sizes,
    period_totals,
    study_of_changes,
)
from counterveil.estimators.linear import difference_in_means
from counterveil.estimators.linear import effect as linear_effects
from counterveil.estimators.linear.arm_means import PAGES as ARM_PAGES
from counterveil.estimators.linear.arm_means import (
    Bounds,
    WeightedArm,
    design_of,
    share_of,
    split_arm,
)
from counterveil.estimators.linear.effect import LinearEffect, VarianceForm, values_of
from counterveil.estimators.linear.weighting import matched_effect, weighted_effect
from counterveil.estimators.outcome_place import NAME as EARLIER
from counterveil.estimators.outcome_place import PAGE as EARLIER_PAGE
from counterveil.estimators.outcome_place import PART as EARLIER_PART
from counterveil.estimators.outcome_place import (
    Outcomes,
    sizes_by_arm,
    slopes_said,
    totals_by_arm,
    with_slopes,
)
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.numerics.arm_totals import Arm, TwoArms
from counterveil.numerics.balance import effective_size
from counterveil.privacy import Budget
from counterveil.privacy.caveats import Fact
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import EventStudyResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.question import Question, causal_caveats
from counterveil.rows.linear.sensitivity import ArmMean, LinearEstimate, MeanContrast
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.session.session import in_parallel

PAGE = "rows/linear/event_study.proof.md"
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
        """How many of those who are compared are treated, and how many are not."""
        treated = int(self.table.treated.sum())
        return treated, self.table.rows - treated

    def value(self, numbers: NDArray[np.int64]) -> Fraction:
        """Return the comparison of whole numbers, exact."""
        return self.form.total(numbers)

    def variances(self, changes: Sequence[NDArray[np.int64]]) -> list[Fraction]:
        """Return the variance of the comparison of each of some changes, in steps of their range."""
        values = values_of(self.variance_form, changes, _STEP_BITS)
        return [one * self.sensitivity.width**2 for one in values]

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released comparison of the table's outcomes and, where it is paid for, its variance."""
        variance_form = self.variance_form if self.share > 0 else None
        return linear_effects.release(gate, self.table, self.form, variance_form, self.sensitivity, names)

    def compared(self, place: int, by_change: bool) -> ComparedPeriods:
        """Return the comparison of every period's measurements, or changes, and variances of the changes."""
        since = [changes(self.table, period, place) for period in range(len(self.table.measures))]
        return ComparedPeriods(
            [self.value(numbers) for numbers in (since if by_change else self.table.measures)],
            self.variances(since) if self.share else [],
        )


@dataclass(frozen=True, slots=True)
class MeanChanges:
    """The difference of both arms' means, added up in passes; the width of its sensitivity is that of one change."""

    source: Backend
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
        variances = (arm.variance() / arm.count for arm in (arms.treated, arms.control))
        return sum(variances, Fraction(0)) * (self.sensitivity.width / OUTCOME_STEPS) ** 2


@dataclass(frozen=True, slots=True)
class ComparedPeriods:
    """Exact numbers by the place of the period: comparisons in steps, and the variances of changes' comparisons.

    There are no variances where none is released.
    """

    values: list[Fraction]
    variances: list[Fraction]


def outcome_event_study(session: BaseSession, question: Question, place: int) -> EventStudyResult:
    """Return the private effects of all periods relative to the one at `place`; only outcomes are private."""
    study = session.study
    before = session.study.before
    assert before is not None
    # Each of P measurements has about so much of the budget.
    count = study.measured
    share = Fraction(1, count)
    if question.mechanism == "gaussian":
        share = Fraction(count**-0.5).limit_denominator(10**6)
    for_one = replace(question, budget=Budget(question.budget.epsilon * share, question.budget.delta))
    changes: PeriodForm | MeanChanges
    if question.method == "difference_in_means":
        changes = mean_changes(session.batches, for_one)
    else:
        changes = comparison(changes_from(complete(session.table), place), for_one)
    plan = periods_plan(question, count, place, changes.share, before.change is not None)

    def compute(gate: Gate) -> Facts:
        released = release_periods(gate, changes, before, place)
        labels = before.labels(study.outcome)
        cap = changes.sensitivity.variance_cap
        width = float(changes.sensitivity.width)
        reference = released.values.get(place)
        effects = []
        for period, label in enumerate(labels):
            if period == place:
                continue
            value = released.values[period]
            variance = released.variances.get(period)
            estimate = float(value.value - (0 if reference is None else reference.value))
            linear = Linear(estimate, linear_effects.known_error(value, variance, cap), (-width, width))
            effects.append(Effect(label, linear, question.level, len(labels) - 1))
        effect = changes.effect if isinstance(changes, PeriodForm) else None
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
            details=_details(session.batches.rows, question, changes),
            diagnostics={} if effect is None else effect.diagnostics,
        )

    description = {"question": "event_study", "reference": place}
    return answer_request(EventStudyResult, session, question, plan, compute, said=description)


def mean_changes(source: Backend, question: Question) -> MeanChanges:
    """Return the difference of means of people with a measurement in every period."""
    rows, treated = complete_sizes(source)
    means = MeanContrast(study_of_changes(source.study).outcome_bounds.width, treated, rows - treated)
    return MeanChanges(source, means, difference_in_means.chosen_share(means, question))


def public_effect(table: Table, question: Question) -> LinearEffect:
    """Return the estimator of the question's method."""
    by_weights = {"weighting": weighted_effect, "matching": matched_effect}
    return by_weights.get(question.method, difference_in_means.by_rows)(table, question)


def comparison(table: Table, question: Question) -> PeriodForm:
    """Return the comparison by the weights that the question's method finds from public columns."""
    effect = public_effect(table, question)
    # Without covariates, which have been read: there may be many comparisons.
    rows = replace(effect.table or table, covariates={})
    form = linear_form(effect.coefficients)
    variance_form = effect.variance_form()
    bounds = linear_effects.sensitivity_of(rows, form, variance_form)
    share = effect.share
    if share is None:
        share = linear_effects.chosen_share(bounds, question, effect.expected_part)
    return PeriodForm(rows, bounds, share, form, variance_form, replace(effect, table=rows))


def periods_plan(question: Question, count: int, place_share: int, share: Fraction, by_change: bool) -> Plan:
    """Return the split over the measurements of all periods, or the changes, and the variances of the changes."""
    others = [period for period in range(count) if period != place_share]
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
def release_periods(
    gate: Gate, changes: PeriodForm | MeanChanges, before: Before, place: int
) -> ReleasedPeriods:
    """Return the released comparisons and, where they are paid for, the variances of changes since `place`."""
    exact = changes.compared(place, before.change is not None)
    width = before.levels[1] - before.levels[0] if before.change is None else changes.sensitivity.width
    unit = width / OUTCOME_STEPS
    values = {}
    variances = {}
    for period, value in enumerate(exact.values):
        if before.change is None or period != place:
            values[period] = gate.release(_name(period), value * unit, changes.largest * width)
    for period, variance in enumerate(exact.variances):
        if period != place:
            name = _name(period, "variance")
            variances[period] = gate.release(name, variance, changes.sensitivity.variance)
    return ReleasedPeriods(values, variances)


def _releases(labels: Sequence[object], released: ReleasedPeriods) -> tuple[tuple[str, str], ...]:
    releases = []
    for period, value in released.values.items():
        releases.append(
            (f"comparison at {labels[period]}", f"sensitivity {float(value.noise.sensitivity):.6g}")
        )
    for period, variance in released.variances.items():
        bound = float(variance.noise.sensitivity)
        releases.append((f"variance of the change at {labels[period]}", f"sensitivity {bound:.6g}"))
    return tuple(releases)


def _details(everyone: int, question: Question, changes: PeriodForm | MeanChanges) -> dict[str, float | str]:
    treated, control = changes.sizes if isinstance(changes, PeriodForm) else changes.sensitivity.sizes
    rows = treated + control
    details: dict[str, float | str] = {"rows": rows, "treated": treated, "control": control}
    details |= changes.effect.details if isinstance(changes, PeriodForm) else {}
    if rows < everyone:
        details["rows_with_gaps"] = everyone - rows
    return details | {"mechanism": question.mechanism, "variance_budget_share": float(changes.share)}


# Effects on several outcomes where only outcomes are private: one comparison of public columns, used for all of them.
#
# All outcomes of a row may change at once, each within its own range, so that the numbers are released together
# (`session/session.py`, several numbers). Of two arms the differences are released, of several arms, or for ratios, the
# means of every arm in parallel.


SEVERAL_OUTCOMES_PAGE = "rows/linear/several_outcomes.proof.md"
Pair = tuple[Fraction, Fraction]
_BOTH = ("control", "treated")


# Proof: several_outcomes.proof.md
@dataclass(frozen=True, slots=True)
class Group:
    """A comparison of both arms, or the mean of one: what a change of an outcome by its range does to both numbers.

    `largest` bounds the value, `variance` the variance, `cap` is the largest variance; all for outcomes of range one.
    Where there is no weighted `statistic`, `arms` are the numbers of the arm whose mean it is and, for a difference, of
    the arm whose mean is taken off. `sizes` are the effective sample sizes of the arms that are in it.
    """

    name: str
    largest: Fraction
    variance: Fraction
    cap: Fraction
    statistic: PeriodForm | WeightedArm | None = None
    arms: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, statistic: PeriodForm | WeightedArm) -> Group:
        """Return the group of a weighted statistic."""
        group = replace(cls.plain(name, statistic.sensitivity), statistic=statistic)
        if not isinstance(statistic, PeriodForm):
            return group
        weights = np.abs(statistic.effect.coefficients)
        return replace(group, sizes=effective_size(statistic.table.treated, weights))

    @classmethod
    def plain(cls, name: str, bounds: Bounds | MeanContrast, *arms: int) -> Group:
        """Return the group of plain means."""
        width = bounds.width
        spread = bounds.width**2
        sensitivities = bounds.estimate / width, bounds.variance / spread, bounds.variance_cap / spread
        if isinstance(bounds, MeanContrast):
            return cls(name, *sensitivities, None, arms, (bounds.treated, bounds.control))
        return cls(name, *sensitivities, None, arms, (float(1 / bounds.squares),))

    def of_totals(self, totals: Sequence[Arm]) -> Pair:
        """Return value and variance from all arms' totals in steps, in units of the range."""
        means = [totals[arm].mean() for arm in self.arms]
        spread = [totals[arm].variance() / totals[arm].count for arm in self.arms]
        value = means[0] - sum(means[1:], Fraction(0))
        return value / OUTCOME_STEPS, sum(spread, Fraction(0)) / OUTCOME_STEPS**2

    def exact(self, table: Table, outcomes: Sequence[NDArray[np.int64]]) -> list[Pair]:
        """Return value and variance of each of some outcomes in steps, in units of its range."""
        statistic = self.statistic
        assert statistic is not None  # plain means are added up in passes
        width = statistic.sensitivity.width
        if isinstance(statistic, PeriodForm):
            values = [statistic.value(numbers) / OUTCOME_STEPS for numbers in outcomes]
            return list(zip(values, [each / width**2 for each in statistic.variances(outcomes)], strict=True))
        found = (statistic.values(replace(table, outcome=numbers)) for numbers in outcomes)
        return [(value / width, variance / width**2) for value, variance in found]


@dataclass(frozen=True, slots=True)
class ComparedOutcomes:
    """What public columns decide: the rows, the groups of releases, the split, and what to say."""

    source: Backend
    groups: tuple[Group, ...]
    labels: tuple[Label, ...]
    share: Fraction
    method: str
    pages: tuple[str, ...]
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str]
    diagnostics: dict[str, Any]

    @property
    def squares(self) -> float:
        """The sum of squared coefficients of a comparison, about: four times the largest variance."""
        return 4 * float(sum((group.cap for group in self.groups[:2]), Fraction(0)))

    def exact(self, outcomes: Outcomes) -> list[list[Pair]]:
        """Return for every group the value and the variance of each outcome, in units of its range."""
        if all(group.statistic is None for group in self.groups):
            totals = totals_by_arm(self.source, outcomes)
            return [[group.of_totals(one) for one in totals] for group in self.groups]
        table = self.source
        assert isinstance(table, Table)
        return [group.exact(table, outcomes.numbers(table)) for group in self.groups]


@silence()
def outcome_effects(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects on all outcomes; only outcomes are private."""
    compared = design(session.batches, question, outcomes)
    adjusts = bool(outcomes.measured_before)
    plan = effects_plan(question, compared, adjusts)

    def compute(gate: Gate) -> Facts:
        chosen = outcomes
        if adjusts:
            chosen = with_slopes(
                gate, compared.source, outcomes, compared.squares, _unit_noise(plan, compared, outcomes)
            )
        released = release(gate, compared, chosen)
        return Facts(
            guarantee=question.guarantee(
                session,
                (*compared.pages, *((EARLIER_PAGE,) if chosen.slopes else ())),
                mechanisms=chosen.mechanisms(question.mechanism),
            ),
            released=tuple(_effects(compared, chosen, released)),
            measure=question.measure,
            method=compared.method + (", less earlier numbers" if chosen.slopes else ""),
            releases=_several_outcomes_releases(compared, chosen),
            not_covered=compared.not_covered,
            details=compared.details
            | slopes_said(chosen)
            | {"mechanism": chosen.drawn(question.mechanism), "variance_budget_share": float(compared.share)},
            diagnostics=compared.diagnostics,
        )

    description = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return answer_request(OutcomesResult, session, question, plan, compute, said=description)


def design(source: Backend, question: Question, outcomes: Outcomes) -> ComparedOutcomes:
    """Return the comparison that the question's method makes of public columns, for the noise of so many outcomes."""
    factor = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(factor).limit_denominator(10**6)
    for_one = replace(question, budget=Budget(epsilon, question.budget.delta))
    if source.study.arms is not None:
        return _several_arms(source, for_one)
    if question.method == "difference_in_means":
        return _plain(source, for_one)
    assert isinstance(source, Table)
    if question.measure in OF_MEANS:
        return _both_means(source, for_one)
    form = comparison(source, for_one)
    words = _said(source, form.effect)
    groups = (Group.of("the arms", form),)
    return ComparedOutcomes(
        form.table,
        groups,
        (),
        form.share,
        form.effect.method,
        (SEVERAL_OUTCOMES_PAGE, *form.effect.pages),
        **words,
    )


def _plain(source: Backend, question: Question) -> ComparedOutcomes:
    """Return the difference of two arms' plain means, or for ratios both means."""
    control, treated = sizes_by_arm(source)
    words: dict[str, Any] = {
        "not_covered": causal_caveats(source.study, question.estimand),
        "details": {"rows": source.rows, "treated": treated, "control": control},
        "diagnostics": {},
    }
    width = source.study.outcome_bounds.width
    if question.measure not in OF_MEANS:
        bounds = MeanContrast(width, treated, control)
        share = difference_in_means.chosen_share(bounds, question)
        pages = (SEVERAL_OUTCOMES_PAGE, difference_in_means.PAGE)
        both = Group.plain("the arms", bounds, 1, 0)
        return ComparedOutcomes(source, (both,), (), share, "difference in means", pages, **words)
    means = [ArmMean(width, size) for size in (control, treated)]
    groups = tuple(Group.plain(name, means[code], code) for code, name in enumerate(_BOTH))
    share = share_of(means, question)
    return ComparedOutcomes(
        source, groups, _BOTH, share, "means of both arms", (SEVERAL_OUTCOMES_PAGE, *ARM_PAGES), **words
    )


def _said(table: Table, effect: LinearEffect) -> dict[str, Any]:
    treated = int(table.treated.sum())
    sizes: dict[str, float | str] = {"rows": table.rows, "treated": treated, "control": table.rows - treated}
    return {
        "not_covered": effect.not_covered,
        "details": sizes | effect.details,
        "diagnostics": effect.diagnostics,
    }


def _both_means(table: Table, question: Question) -> ComparedOutcomes:
    """Return the weighted means of two arms, for ratios."""
    effect = (weighted_effect if question.method == "weighting" else matched_effect)(table, question)
    table = effect.table or table
    sides = ((~table.treated, -1.0), (table.treated, 1.0))
    arms = [split_arm(table, effect, *side) for side in sides]
    pages = (*effect.pages, "rows/linear/arm_pair.proof.md", "session/parallel.proof.md")
    share = share_of([arm.sensitivity for arm in arms], question, effect.expected_part)
    groups = tuple(Group.of(name, arm) for name, arm in zip(_BOTH, arms, strict=True))
    words = _said(table, effect)
    return ComparedOutcomes(
        table, groups, _BOTH, share, effect.method, (SEVERAL_OUTCOMES_PAGE, *pages), **words
    )


def _several_arms(source: Backend, question: Question) -> ComparedOutcomes:
    """Return the means of all arms, the reference first."""
    arms_design = design_of(source, question)
    labels = source.study.treatment_labels
    share = share_of([one.sensitivity for one in arms_design.statistics], question)
    groups = tuple(
        Group.of(repr(label), one)
        if isinstance(one, WeightedArm)
        else Group.plain(repr(label), one.sensitivity, code)
        for code, (label, one) in enumerate(zip(labels, arms_design.statistics, strict=True))
    )
    words: dict[str, Any] = {"not_covered": arms_design.not_covered, "diagnostics": arms_design.diagnostics}
    details = {"rows": source.rows} | arms_design.details
    return ComparedOutcomes(
        source,
        groups,
        labels,
        share,
        arms_design.method,
        (SEVERAL_OUTCOMES_PAGE, *ARM_PAGES),
        details=details,
        **words,
    )


def effects_plan(question: Question, compared: ComparedOutcomes, adjusts: bool = False) -> Plan:
    """Return the split over values and variances of all outcomes; groups are released in parallel.

    Where outcomes are adjusted for what was before, the moments that decide about it come first.
    """
    first = EARLIER_PART if adjusts else Fraction(0)
    shares = {"values": (1 - first) * (1 - compared.share), "variances": (1 - first) * compared.share}
    members = {what: [f"{what} of {group.name}" for group in compared.groups] for what in shares}
    if adjusts:
        shares = {EARLIER: first} | shares
        members = {EARLIER: [EARLIER]} | members
    plan = Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.SEVERAL))
    return in_parallel(plan, members)


def _unit_noise(plan: Plan, compared: ComparedOutcomes, outcomes: Outcomes) -> list[float]:
    """Return the variance of the noise of a comparison of each outcome, in units of its squared range."""
    total = [0.0] * len(outcomes.names)
    # A comparison of several arms is one of two.
    for group in compared.groups[:2]:
        bound = [group.largest] * len(outcomes.names)
        noises = plan.several_noise(f"values of {group.name}", bound, outcomes.weights)
        total = [sum(both) for both in zip(total, (one.variance for one in noises), strict=True)]
    return total


def release(
    gate: Gate, compared: ComparedOutcomes, outcomes: Outcomes
) -> list[list[tuple[Released, Released | None]]]:
    """Return for every group the released value of each outcome and, where it is paid for, its variance."""
    released = []
    widths = outcomes.widths
    weights = outcomes.weights
    for group, exact in zip(compared.groups, compared.exact(outcomes), strict=True):
        values = [value * width for (value, _), width in zip(exact, widths, strict=True)]
        bounds = [group.largest * width for width in widths]
        noisy = gate.release_several(f"values of {group.name}", values, bounds, weights)
        spread: Sequence[Released | None] = [None] * len(values)
        if compared.share:
            squares = [variance * width**2 for (_, variance), width in zip(exact, widths, strict=True)]
            limits = [group.variance * width**2 for width in widths]
            spread = gate.release_several(f"variances of {group.name}", squares, limits, weights)
        released.append(list(zip(noisy, spread, strict=True)))
    return released


def _effects(
    compared: ComparedOutcomes, outcomes: Outcomes, released: list[list[tuple[Released, Released | None]]]
) -> Iterator[OutcomeEffect]:
    """Yield what is known of every outcome: the difference, or the means of an arm and of the reference."""
    for index, (name, (low, high)) in enumerate(zip(outcomes.names, outcomes.ranges, strict=True)):
        width = outcomes.widths[index]
        uncertainties = [
            linear_effects.known_error(*pairs[index], group.cap * width**2)
            for group, pairs in zip(compared.groups, released, strict=True)
        ]
        values = [float(pairs[index][0]) for pairs in released]
        if not compared.labels:
            limits = float(low - high), float(high - low)
            with_events = with_rare_events(uncertainties[0], (low, high), compared.groups[0].sizes)
            yield OutcomeEffect(name, None, Linear(values[0], with_events, limits))
            continue
        for arm in range(1, len(values)):
            means = IndependentArmMeans(
                (float(low) + values[arm], float(low) + values[0]),
                (uncertainties[arm], uncertainties[0]),
                (float(low), float(high)),
                (compared.groups[arm].sizes[0], compared.groups[0].sizes[0]),
            )
            label = compared.labels[arm] if len(values) > 2 else None
            yield OutcomeEffect(name, label, means)


def _several_outcomes_releases(compared: ComparedOutcomes, outcomes: Outcomes) -> tuple[tuple[str, str], ...]:
    words = [("moments with earlier numbers", "one row moves each by at most 1/rows")] * bool(outcomes.slopes)
    for group in compared.groups:
        bound = f"each moves by at most {float(group.largest):.6g} of its range"
        words.append((f"{len(outcomes.names)} values of {group.name}", bound))
        if compared.share:
            bound = f"each moves by at most {float(group.variance):.6g} of its squared range"
            words.append((f"{len(outcomes.names)} variances of {group.name}", bound))
    return tuple(words)
