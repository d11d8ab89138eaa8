"""Effects on several outcomes where only outcomes are private: one comparison of public columns, used for all of them.

All outcomes of a row may change at once, each within its own range, so that the numbers are released together
(`session/plan.py`, several numbers). Of two arms the differences are released, of several arms, or for ratios, the
means of every arm in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table, silence
from counterveil.data.labels import Label
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.inference.measures import ApartMeans
from counterveil.privacy import Budget
from counterveil.results.effect import Linear
from counterveil.results.measures import OF_MEANS
from counterveil.results.outcomes import OutcomeEffect, OutcomesResult
from counterveil.results.question import Question, causal_caveats
from counterveil.session import Gate, Kind, Plan, Released, Session
from counterveil.session.plan import in_parallel
from counterveil.statistics.earlier_values import NAME as EARLIER
from counterveil.statistics.earlier_values import PAGE as EARLIER_PAGE
from counterveil.statistics.earlier_values import PART as EARLIER_PART
from counterveil.statistics.earlier_values import slopes_said, with_slopes
from counterveil.statistics.linear import difference_in_means
from counterveil.statistics.linear.arm_design import PlainArm, design_of
from counterveil.statistics.linear.arm_means import PAGES as ARM_PAGES
from counterveil.statistics.linear.arm_means import Bounds, share_of
from counterveil.statistics.linear.arm_pair import split_arm
from counterveil.statistics.linear.effect import LinearEffect
from counterveil.statistics.linear.event_study import Comparison, comparison
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.weighting import weighted_effect
from counterveil.statistics.outcome_list import Outcomes

PAGE = "statistics/linear/several_outcomes.proof.md"
Pair = tuple[Fraction, Fraction]


class ArmValues(Protocol):
    """A mean of one arm, of known sensitivity."""

    @property
    def sensitivity(self) -> Bounds:
        """How far one of the arm's outcomes moves the mean and its variance."""
        ...

    def values(self, table: Table) -> Pair:
        """Return the exact mean, above the outcome's lower bound, and its sampling variance."""
        ...


# Proof: several_outcomes.proof.md
@dataclass(frozen=True, slots=True)
class Group:
    """A comparison of both arms, or the mean of one: what a change of an outcome by its range does to both numbers.

    `largest` bounds the value, `variance` the variance, `cap` is the largest variance; all for outcomes of range one.
    """

    name: str
    statistic: Comparison | ArmValues
    largest: Fraction
    variance: Fraction
    cap: Fraction

    @classmethod
    def of(cls, name: str, statistic: Comparison | ArmValues) -> Group:
        """Return the group of a statistic."""
        bounds = statistic.sensitivity
        width = bounds.width
        return cls(
            name,
            statistic,
            bounds.estimate / width,
            bounds.variance / width**2,
            bounds.variance_cap / width**2,
        )

    def exact(self, table: Table, numbers: NDArray[np.int64]) -> Pair:
        """Return value and variance of outcomes in steps, in units of their range."""
        one = self.statistic
        if isinstance(one, Comparison):
            return one.value(numbers) / OUTCOME_STEPS, one.variance(numbers) / one.sensitivity.width**2
        value, variance = one.values(replace(table, outcome=numbers))
        width = one.sensitivity.width
        return value / width, variance / width**2


@dataclass(frozen=True, slots=True)
class Compared:
    """What public columns decide: the rows, the groups of releases, the split, and what to say."""

    table: Table
    groups: tuple[Group, ...]
    labels: tuple[Label, ...]
    share: Fraction
    method: str
    pages: tuple[str, ...]
    not_covered: tuple[str, ...]
    details: dict[str, float | str]
    diagnostics: dict[str, Any]

    @property
    def squares(self) -> float:
        """The sum of squared coefficients of a comparison, about: four times the largest variance."""
        return 4 * float(sum((group.cap for group in self.groups[:2]), Fraction(0)))


@silence()
def outcome_effects(session: Session, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects on all outcomes; only outcomes are private."""
    made = design(session.table, question, outcomes)
    adjusts = bool(outcomes.measured_before)
    plan = effects_plan(question, made, adjusts)

    def compute(gate: Gate) -> dict[str, object]:
        chosen = outcomes
        if adjusts:
            chosen = with_slopes(gate, made.table, outcomes, made.squares, _unit_noise(plan, made, outcomes))
        found = release(gate, made, chosen)
        return _result(session, question, made, chosen, found).stored()

    said = {"importance": [str(weight) for weight in outcomes.weights]}
    request = question.request(plan, session.study, question="outcomes", **said)
    return OutcomesResult.from_dict(session.run(request, compute))


def design(table: Table, question: Question, outcomes: Outcomes) -> Compared:
    """Return the comparison that the question's method makes of public columns, for the noise of so many outcomes."""
    part = 1 / outcomes.noise_factor(question.mechanism)
    epsilon = question.budget.epsilon * Fraction(part).limit_denominator(10**6)
    one = replace(question, budget=Budget(epsilon, question.budget.delta))
    if table.study.arms is not None:
        return _several_arms(table, one)
    if question.measure in OF_MEANS:
        return _both_means(table, one)
    made = comparison(table, one)
    said = _said(table, one, made.effect)
    pages = (difference_in_means.PAGE,) if made.effect is None else made.effect.pages
    groups = (Group.of("the arms", made),)
    method = "difference in means" if made.effect is None else made.effect.method
    return Compared(made.table, groups, (), made.share, method, (PAGE, *pages), **said)


def _said(table: Table, question: Question, effect: LinearEffect | None) -> dict[str, Any]:
    treated = int(table.treated.sum())
    sizes: dict[str, float | str] = {"rows": table.rows, "treated": treated, "control": table.rows - treated}
    if effect is None:
        return {
            "not_covered": causal_caveats(table.study, question.estimand),
            "details": sizes,
            "diagnostics": {},
        }
    return {
        "not_covered": effect.not_covered,
        "details": sizes | effect.details,
        "diagnostics": effect.diagnostics,
    }


def _both_means(table: Table, question: Question) -> Compared:
    """Return the means of two arms, for ratios."""
    arms: list[ArmValues]
    pages: tuple[str, ...] = ARM_PAGES
    if question.method == "difference_in_means":
        arms, effect = [PlainArm.of(table, code) for code in (0, 1)], None
        method, part = "means of both arms", 1.0
    else:
        effect = (weighted_effect if question.method == "weighting" else matched_effect)(table, question)
        table = effect.table or table
        sides = ((~table.treated, -1.0), (table.treated, 1.0))
        arms = [split_arm(table, effect, *side) for side in sides]
        method, part = effect.method, effect.expected_part
        pages = (*effect.pages, "statistics/linear/arm_pair.proof.md", "session/parallel.proof.md")
    said = _said(table, question, effect)
    share = share_of([arm.sensitivity for arm in arms], question, part)
    groups = tuple(Group.of(name, arm) for name, arm in zip(("control", "treated"), arms, strict=True))
    return Compared(table, groups, ("control", "treated"), share, method, (PAGE, *pages), **said)


def _several_arms(table: Table, question: Question) -> Compared:
    """Return the means of all arms, the reference first."""
    found, labels = design_of(table, question), table.study.treatment_labels
    share = share_of([one.sensitivity for one in found.statistics], question)
    groups = tuple(Group.of(repr(label), one) for label, one in zip(labels, found.statistics, strict=True))
    said: dict[str, Any] = {"not_covered": found.not_covered, "diagnostics": found.diagnostics}
    details = {"rows": table.rows} | found.details
    return Compared(table, groups, labels, share, found.method, (PAGE, *ARM_PAGES), details=details, **said)


def effects_plan(question: Question, made: Compared, adjusts: bool = False) -> Plan:
    """Return the split over values and variances of all outcomes; groups are released in parallel.

    Where outcomes are adjusted for what was before, the moments that decide about it come first.
    """
    first = EARLIER_PART if adjusts else Fraction(0)
    shares = {"values": (1 - first) * (1 - made.share), "variances": (1 - first) * made.share}
    members = {what: [f"{what} of {group.name}" for group in made.groups] for what in shares}
    if adjusts:
        shares, members = {EARLIER: first} | shares, {EARLIER: [EARLIER]} | members
    plan = Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(shares, Kind.SEVERAL))
    return in_parallel(plan, members)


def _unit_noise(plan: Plan, made: Compared, outcomes: Outcomes) -> list[float]:
    """Return the variance of the noise of a comparison of each outcome, in units of its squared range."""
    total = [0.0] * len(outcomes.names)
    # A comparison of several arms is one of two.
    for group in made.groups[:2]:
        bound = [group.largest] * len(outcomes.names)
        noises = plan.several_noise(f"values of {group.name}", bound, outcomes.weights)
        total = [sum(both) for both in zip(total, (one.variance for one in noises), strict=True)]
    return total


def release(gate: Gate, made: Compared, outcomes: Outcomes) -> list[list[tuple[Released, Released | None]]]:
    """Return for every group the released value of each outcome and, where it is paid for, its variance."""
    found, widths, weights = [], outcomes.widths, outcomes.weights
    for group in made.groups:
        exact = [group.exact(made.table, numbers) for numbers in outcomes.numbers(made.table)]
        values = [value * width for (value, _), width in zip(exact, widths, strict=True)]
        bounds = [group.largest * width for width in widths]
        noisy = gate.release_several(f"values of {group.name}", values, bounds, weights)
        spread: Sequence[Released | None] = [None] * len(values)
        if made.share:
            squares = [variance * width**2 for (_, variance), width in zip(exact, widths, strict=True)]
            limits = [group.variance * width**2 for width in widths]
            spread = gate.release_several(f"variances of {group.name}", squares, limits, weights)
        found.append(list(zip(noisy, spread, strict=True)))
    return found


def _known(group: Group, width: Fraction, pair: tuple[Released, Released | None]) -> Uncertainty:
    cap = float(group.cap * width**2)
    value, variance = pair
    if variance is None:
        return Uncertainty(value.noise, cap, cap)
    return Uncertainty(value.noise, float(variance), cap, variance.noise)


def _result(
    session: Session,
    question: Question,
    made: Compared,
    outcomes: Outcomes,
    found: list[list[tuple[Released, Released | None]]],
) -> OutcomesResult:
    effects = []
    for place, (name, (low, high)) in enumerate(zip(outcomes.names, outcomes.ranges, strict=True)):
        width = outcomes.widths[place]
        known = [_known(group, width, pairs[place]) for group, pairs in zip(made.groups, found, strict=True)]
        # Intervals of ratios make room for few events by themselves.
        if question.measure not in OF_MEANS:
            known = [
                with_rare_events(one, (low, high), (1 / (4 * float(group.cap)),))
                for one, group in zip(known, made.groups, strict=True)
            ]
        values = [float(pairs[place][0]) for pairs in found]
        if not made.labels:
            limits = float(low - high), float(high - low)
            effects.append(OutcomeEffect(name, None, Linear(values[0], known[0], limits)))
            continue
        for arm in range(1, len(values)):
            means = ApartMeans(
                (float(low) + values[arm], float(low) + values[0]),
                (known[arm], known[0]),
                (float(low), float(high)),
            )
            label = made.labels[arm] if len(values) > 2 else None
            effects.append(OutcomeEffect(name, label, means))
    return OutcomesResult(
        released=tuple(effects),
        measure=question.measure,
        estimand=question.estimand,
        guarantee=question.guarantee(
            session,
            (*made.pages, *((EARLIER_PAGE,) if outcomes.slopes else ())),
            mechanisms=outcomes.mechanisms(question.mechanism),
        ),
        method=made.method + (", less earlier numbers" if outcomes.slopes else ""),
        **question.terms(session.study),
        releases=_releases(made, outcomes),
        not_covered=made.not_covered,
        details=made.details
        | slopes_said(outcomes)
        | {"mechanism": outcomes.drawn(question.mechanism), "variance_budget_share": float(made.share)},
        diagnostics=made.diagnostics,
    )


def _releases(made: Compared, outcomes: Outcomes) -> tuple[tuple[str, str], ...]:
    found = [("moments with earlier numbers", "one row moves each by at most 1/rows")] * bool(outcomes.slopes)
    for group in made.groups:
        bound = f"each moves by at most {float(group.largest):.6g} of its range"
        found.append((f"{len(outcomes.names)} values of {group.name}", bound))
        if made.share:
            bound = f"each moves by at most {float(group.variance):.6g} of its squared range"
            found.append((f"{len(outcomes.names)} variances of {group.name}", bound))
    return tuple(found)
