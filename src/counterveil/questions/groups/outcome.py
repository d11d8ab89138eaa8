"""Effects of groups where only outcomes are private: a linear estimate in every group, each with the whole budget.

Who is in which group and in which arm is public, so that an outcome moves the numbers of one group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from counterveil.data import Layout, Range, Table, strata_codes
from counterveil.errors import StudyError
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.numerics.arms import arm_totals
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.questions.groups.question import caveats, group_names
from counterveil.results.effect import Effect, LinearInGroup
from counterveil.results.groups import GroupsResult
from counterveil.results.question import Question, refuse_few_clusters
from counterveil.session import Gate, Kind, Plan, Released, Session
from counterveil.session.plan import in_branches
from counterveil.statistics.linear import difference_in_means
from counterveil.statistics.linear import effect as linear_effect
from counterveil.statistics.linear import outcome_variance as weighting_variance
from counterveil.statistics.linear.effect import LinearEffect, VarianceForm
from counterveil.statistics.linear.kernels.residual_variance import ResidualVariance
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.sensitivity import DifferenceInMeans, LinearEstimate
from counterveil.statistics.linear.weighting import weighted_effect

_FEWEST = 2  # people in either arm of a group that has an effect


class GroupStatistic(Protocol):
    """A linear estimate of one group's effect."""

    @property
    def table(self) -> Table:
        """The group's rows."""
        ...

    @property
    def sensitivity(self) -> DifferenceInMeans | LinearEstimate:
        """How far one of the group's outcomes moves the effect and its variance."""
        ...

    @property
    def share(self) -> Fraction:
        """The share of the budget for the variance."""
        ...

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released effect and, where it is paid for, its variance."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The difference of the arms' means in one group."""

    table: Table
    sensitivity: DifferenceInMeans
    share: Fraction

    @classmethod
    def of(cls, table: Table, question: Question) -> GroupMeans:
        """Return the statistic of a group's rows."""
        treated = int(table.treated.sum())
        bounds = DifferenceInMeans(table.study.outcome_bounds.width, treated, table.rows - treated)
        return cls(table, bounds, difference_in_means.chosen_share(bounds, question))

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released effect and, where it is paid for, its variance."""
        totals = arm_totals(self.table.treated, self.table.outcome)
        unit = self.table.outcome_unit
        return difference_in_means.release(gate, totals, unit, self.sensitivity, self.share > 0, names)


@dataclass(frozen=True, slots=True)
class GroupLinear:
    """A weighted or matched effect in one group."""

    table: Table
    form: LinearForm
    variance_form: VarianceForm
    sensitivity: LinearEstimate
    share: Fraction

    @classmethod
    def of(cls, effect: LinearEffect, rows: Table, question: Question) -> GroupLinear:
        """Return the statistic of a public linear estimator of a group's rows."""
        table = effect.table or rows
        form, variance_form = linear_form(effect.coefficients), effect.variance_form()
        bounds = linear_effect.sensitivity_of(table, form, variance_form)
        share = effect.share
        if share is None:
            share = linear_effect.chosen_share(bounds, question, effect.expected_part, effect.slack)
        return cls(table, form, variance_form, bounds, share)

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released effect and, where it is paid for, its variance."""
        variance_form = self.variance_form if self.share > 0 else None
        return linear_effect.release(gate, self.table, self.form, variance_form, self.sensitivity, names)


def outcome_groups(session: Session, question: Question, layout: Layout) -> GroupsResult:
    """Return the private effects of all groups that have two people in either arm."""
    method = _chosen(session.table, question, layout)
    question = replace(question, method=method)
    places, statistics = [], []
    for place, rows in enumerate(_group_rows(session.table, layout)):
        table = _rows_of(session.table, rows, layout)
        treated = int(table.treated.sum())
        if min(treated, table.rows - treated) >= _FEWEST:
            refuse_few_clusters(session.study, "groups", method, table.rows, " in every group")
            places.append(place)
            statistics.append(_statistic(table, question))
    if not statistics:
        raise StudyError(
            "CV-S110",
            "no group has two people in each arm",
            expected="groups with at least two treated and two untreated people",
            got=f"{layout.describe()}; arms and covariates are public here",
            fix="cross fewer covariates or cut ranges more coarsely",
        )
    plan = groups_plan(question, [one.share for one in statistics])

    def compute(gate: Gate) -> dict[str, object]:
        found = [one.release(gate, release_names(k)) for k, one in enumerate(statistics)]
        return _result(session, question, layout, places, statistics, found).stored()

    request = question.request(plan, session.study, question="groups", by=layout.describe())
    return GroupsResult.from_dict(session.run(request, compute))


def groups_plan(question: Question, shares: Sequence[Fraction]) -> Plan:
    """Return the plan under which every group spends the whole budget on its own outcomes."""
    branches: list[tuple[Mapping[str, Fraction], Mapping[str, Kind]]] = []
    for place, share in enumerate(shares):
        effect, variance = release_names(place)
        branches.append(({effect: 1 - share, variance: share}, {}))
    return in_branches(question.budget, question.mechanism, branches)


def release_names(place: int) -> tuple[str, str]:
    """Return what the two releases of a group are called in its plan."""
    return f"effect of group {place}", f"variance of group {place}"


def _chosen(table: Table, question: Question, layout: Layout) -> str:
    left = _left(table, layout)
    if question.method != "auto":
        return question.method if left or question.method == "difference_in_means" else "difference_in_means"
    return "difference_in_means" if table.study.randomised is True or not left else "weighting"


def _left(table: Table, layout: Layout) -> list[str]:
    """Return the covariates that may still differ within a group."""
    return [
        name
        for name, domain in table.study.covariates.items()
        if name not in layout.names or isinstance(domain, Range)
    ]


def _group_rows(table: Table, layout: Layout) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    codes = strata_codes(table, layout)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(1, layout.public))
    return list(np.split(order, ends))


def _rows_of(table: Table, rows: np.ndarray[tuple[int], np.dtype[np.intp]], layout: Layout) -> Table:
    """Return a group's rows, without the covariates that are the same for all of them."""
    kept = _left(table, layout)
    study = table.study
    rules = {
        name: rule for name, rule in study.missing.items() if name not in set(study.covariates) - set(kept)
    }
    smaller = study.changed(covariates={name: study.covariates[name] for name in kept}, missing=rules)
    return replace(
        table,
        study=smaller,
        arm=table.arm[rows],
        treated=table.treated[rows],
        outcome=table.outcome[rows],
        covariates={name: table.covariates[name][rows] for name in kept},
        measures=(),
    )


def _statistic(table: Table, question: Question) -> GroupStatistic:
    if question.method == "difference_in_means":
        return GroupMeans.of(table, question)
    maker = weighted_effect if question.method == "weighting" else matched_effect
    return GroupLinear.of(maker(table, question), table, question)


def _result(
    session: Session,
    question: Question,
    layout: Layout,
    places: list[int],
    statistics: Sequence[GroupStatistic],
    found: Sequence[tuple[Released, Released | None]],
) -> GroupsResult:
    names, study = group_names(layout), session.study
    width = float(study.outcome_range[1] - study.outcome_range[0])
    effects = []
    for place, one, (effect, variance) in zip(places, statistics, found, strict=True):
        cap = float(one.sensitivity.variance_cap)
        known = (cap, None) if variance is None else (float(variance), variance.noise)
        treated = int(one.table.treated.sum())
        plain = Uncertainty(effect.noise, known[0], cap, known[1])
        error = with_rare_events(plain, study.outcome_range, (treated, one.table.rows - treated))
        released = LinearInGroup(float(effect), error, (-width, width))
        effects.append(Effect(names[place], released, question.level, len(places), float(one.table.rows)))
    means = question.method == "difference_in_means"
    pages = [difference_in_means.PAGE if means else linear_effect.PAGE]
    by_arm = any(
        isinstance(one, GroupLinear) and isinstance(one.variance_form, ResidualVariance) for one in statistics
    )
    pages += [weighting_variance.PAGE] if by_arm else []
    return GroupsResult(
        groups=tuple(effects),
        by=layout.names,
        guarantee=question.guarantee(session, (*pages, "session/branches.proof.md")),
        method=f"{question.method.replace('_', ' ')} in every group",
        **question.terms(study),
        releases=(("effect and variance of every group", "the whole budget in every group"),),
        not_covered=(
            *_caveats(study.randomised is True, question, layout, session.table),
            *((weighting_variance.UNEVEN,) if by_arm else ()),
        ),
        details={"rows": session.table.rows, "mechanism": question.mechanism},
        left_out=tuple(name for place, name in enumerate(names) if place not in places),
    )


def _caveats(randomised: bool, question: Question, layout: Layout, table: Table) -> tuple[str, ...]:
    if question.method == "difference_in_means":
        left = tuple(name for name in layout.names if name not in _left(table, layout))
        said = caveats(table.study, "arms", left)
        kept = (text for text in said if text.startswith("CONFOUNDING"))
        return (*kept, "clamping of outcomes to the declared range")
    said = ("bias from residual imbalance within a group", "clamping of outcomes to the declared range")
    if randomised:
        return said
    return ("CONFOUNDING by anything that is not among the study's covariates", *said)
