"""Effects of groups where only outcomes are private: a linear estimate in every group, each with the whole budget.

Who is in which group and in which arm is public, so that an outcome moves the numbers of one group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Backend, Layout, Range, Study, Sums, Table, strata_codes
from counterveil.data.encoding import outcome_unit
from counterveil.errors import refusal
from counterveil.inference import Uncertainty, with_rare_events
from counterveil.numerics.arms import Arm, TwoArms, cell_totals
from counterveil.numerics.linear_form import LinearForm, linear_form
from counterveil.privacy.caveats import Caveat, Fact, confounding
from counterveil.questions.groups.question import caveats, group_names
from counterveil.results.answering import Facts, settled
from counterveil.results.effect import Effect, Linear
from counterveil.results.groups import GroupsResult
from counterveil.results.question import Question, adjusted_caveats, refuse_few_clusters
from counterveil.session import BaseSession, Gate, Kind, Plan, Released
from counterveil.session.plan import in_branches
from counterveil.statistics.linear import difference_in_means
from counterveil.statistics.linear import effect as linear_effect
from counterveil.statistics.linear import outcome_variance as weighting_variance
from counterveil.statistics.linear.effect import LinearEffect, VarianceForm
from counterveil.statistics.linear.kernels.residual_variance import ResidualVariance
from counterveil.statistics.linear.matching import matched_effect
from counterveil.statistics.linear.sensitivity import LinearEstimate, MeanContrast
from counterveil.statistics.linear.weighting import weighted_effect

_FEWEST = 2  # people in either arm of a group that has an effect


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The difference of the arms' means in one group."""

    sensitivity: MeanContrast
    share: Fraction

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of the group's treated and of its other rows."""
        return self.sensitivity.treated, self.sensitivity.control


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
            share = linear_effect.chosen_share(bounds, question, effect.expected_part)
        return cls(table, form, variance_form, bounds, share)

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of the group's treated and of its other rows."""
        treated = int(self.table.treated.sum())
        return treated, self.table.rows - treated

    def release(self, gate: Gate, names: tuple[str, str]) -> tuple[Released, Released | None]:
        """Return the released effect and, where it is paid for, its variance."""
        variance_form = self.variance_form if self.share > 0 else None
        return linear_effect.release(gate, self.table, self.form, variance_form, self.sensitivity, names)


def outcome_groups(session: BaseSession, question: Question, layout: Layout) -> GroupsResult:
    """Return the private effects of all groups that have two people in either arm."""
    question = replace(question, method=_chosen(session.study, question, layout))
    statistics: Mapping[int, GroupMeans | GroupLinear]
    # Rows that do not fit are refused before anything is spent.
    if question.method == "difference_in_means":
        session.attach_batches()
        statistics = _means(session.batches, question, layout)
    else:
        session.attach(f"groups with method={question.method!r}")
        statistics = _adjusted(session.table, question, layout)
    for one in statistics.values():
        refuse_few_clusters(session.study, "groups", question.method, sum(one.sizes), " in every group")
    if not statistics:
        raise refusal("CV-S110", layout=layout.describe())
    plan = groups_plan(question, [one.share for one in statistics.values()])
    means = question.method == "difference_in_means"
    names, study = group_names(layout), session.study
    pages = [difference_in_means.PAGE if means else linear_effect.PAGE]
    by_arm = any(
        isinstance(one, GroupLinear) and isinstance(one.variance_form, ResidualVariance)
        for one in statistics.values()
    )
    pages += [weighting_variance.PAGE] if by_arm else []

    def compute(gate: Gate) -> Facts:
        found = release(gate, session.batches, layout, statistics)
        return Facts(
            groups=_effects(session.study, question, names, statistics, found),
            by=layout.names,
            method=f"{question.method.replace('_', ' ')} in every group",
            releases=(("effect and variance of every group", "the whole budget in every group"),),
            not_covered=_caveats(study, question, layout) + ((Caveat.UNEVEN_VARIANCE,) if by_arm else ()),
            details={"rows": session.batches.rows, "mechanism": question.mechanism},
            left_out=tuple(name for place, name in enumerate(names) if place not in statistics),
        )

    return settled(
        GroupsResult,
        session,
        question,
        plan,
        compute,
        pages=(*pages, "session/branches.proof.md"),
        said={"question": "groups", "by": layout.describe()},
    )


def _effects(
    study: Study,
    question: Question,
    names: Sequence[str],
    statistics: Mapping[int, GroupMeans | GroupLinear],
    found: Sequence[tuple[Released, Released | None]],
) -> tuple[Effect, ...]:
    """Return every group's effect with its error; without a released variance the largest one stands in."""
    width, effects = float(study.outcome_range[1] - study.outcome_range[0]), []
    for (place, one), (effect, variance) in zip(statistics.items(), found, strict=True):
        cap = float(one.sensitivity.variance_cap)
        known = (cap, None) if variance is None else (float(variance), variance.noise)
        plain = Uncertainty(effect.noise, known[0], cap, known[1])
        error = with_rare_events(plain, study.outcome_range, one.sizes)
        released = Linear(float(effect), error, (-width, width))
        effects.append(Effect(names[place], released, question.level, len(statistics), float(sum(one.sizes))))
    return tuple(effects)


def _means(source: Backend, question: Question, layout: Layout) -> dict[int, GroupMeans]:
    """Return the statistics of the groups that have an effect, by their places; sizes of arms are public."""
    (counts,) = source.run(partial(group_sizes, layout=layout))
    found = {}
    for place, (control, treated) in enumerate(counts.reshape(-1, 2)):
        if min(control, treated) >= _FEWEST:
            bounds = MeanContrast(source.study.outcome_bounds.width, int(treated), int(control))
            found[place] = GroupMeans(bounds, difference_in_means.chosen_share(bounds, question))
    return found


def group_sizes(block: Table, layout: Layout) -> Sums:
    """Return how many rows every group has in either arm, those without treatment first."""
    return (np.bincount(_cells(block, layout), minlength=2 * layout.public),)


def group_sums(block: Table, layout: Layout) -> Sums:
    """Return the same with sums and sums of squares of outcomes beside them."""
    return (cell_totals(_cells(block, layout), 2 * layout.public, block.outcome),)


def _cells(block: Table, layout: Layout) -> NDArray[np.int64]:
    return 2 * strata_codes(block, layout) + block.treated


def release(
    gate: Gate,
    source: Backend,
    layout: Layout,
    statistics: Mapping[int, GroupMeans | GroupLinear],
) -> list[tuple[Released, Released | None]]:
    """Return every group's released effect and, where it is paid for, its variance."""
    linear = [one for one in statistics.values() if isinstance(one, GroupLinear)]
    if linear:
        return [one.release(gate, release_names(k)) for k, one in enumerate(linear)]
    (sums,) = source.run(partial(group_sums, layout=layout))
    unit, found = outcome_unit(source.study.outcome_bounds), []
    for k, (place, one) in enumerate(statistics.items()):
        assert isinstance(one, GroupMeans)
        arms = TwoArms(Arm(*sums[2 * place + 1]), Arm(*sums[2 * place]))
        names = release_names(k)
        found.append(difference_in_means.release(gate, arms, unit, one.sensitivity, one.share > 0, names))
    return found


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


def _chosen(study: Study, question: Question, layout: Layout) -> str:
    left = _left(study, layout)
    if question.method != "auto":
        return question.method if left or question.method == "difference_in_means" else "difference_in_means"
    return "difference_in_means" if study.randomised is True or not left else "weighting"


def _left(study: Study, layout: Layout) -> list[str]:
    """Return the covariates that may still differ within a group."""
    return [
        name
        for name, domain in study.covariates.items()
        if name not in layout.names or isinstance(domain, Range)
    ]


def _adjusted(table: Table, question: Question, layout: Layout) -> dict[int, GroupLinear]:
    """Return the weighted or matched statistics of the groups that have an effect, by their places."""
    maker, found = weighted_effect if question.method == "weighting" else matched_effect, {}
    for place, rows in enumerate(_group_rows(table, layout)):
        own = _rows_of(table, rows, layout)
        treated = int(own.treated.sum())
        if min(treated, own.rows - treated) >= _FEWEST:
            found[place] = GroupLinear.of(maker(own, question), own, question)
    return found


def _group_rows(table: Table, layout: Layout) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    codes = strata_codes(table, layout)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(1, layout.public))
    return list(np.split(order, ends))


def _rows_of(table: Table, rows: np.ndarray[tuple[int], np.dtype[np.intp]], layout: Layout) -> Table:
    """Return a group's rows, without the covariates that are the same for all of them."""
    study = table.study
    kept = _left(study, layout)
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


def _caveats(study: Study, question: Question, layout: Layout) -> tuple[Fact, ...]:
    if question.method == "difference_in_means":
        left = tuple(name for name in layout.names if name not in _left(study, layout))
        return (*confounding(caveats(study, "arms", left)), Caveat.CLAMPING)
    return adjusted_caveats(study, Caveat.IMBALANCE_WITHIN_GROUPS)
