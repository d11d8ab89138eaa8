"""Effects of groups where only outcomes are private: a linear estimate in each, each with the whole budget.

    effect of group g = sum over rows i of g of c_i y_i,

with public coefficients c_i: those of the difference of the arms' means, of weighting or of matching. In:
public groups, arms and covariates; private outcomes. Out: for every group an effect in units of the outcome
with its noise, and its error; in trials of clusters the error is that of clusters.

Who is in which group is public, so that a changed outcome moves the numbers of one group alone: every group
may spend the whole budget (`session/branches.proof.md`). What an outcome moves within its group is in
`rows/linear/difference_in_means.proof.md` or `rows/linear/linear_estimate.proof.md`; of the errors, in
`rows/linear/clustered_error.proof.md` and `rows/linear/residual_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from counterveil.data import Layout, Range, Study
from counterveil.errors import refusal
from counterveil.estimators.group_names import group_names
from counterveil.estimators.linear import difference_in_means, variance_choice
from counterveil.estimators.linear.clustered_effect import CLUSTERED_PAGE, ClusteredForm
from counterveil.estimators.linear.linear_estimator import EFFECT_PAGE, known_error
from counterveil.estimators.linear.public_comparison import PeriodForm, comparison, public_effect
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.record_groups import score_caveats
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy.caveats import Caveat, Fact, confounding
from counterveil.privacy.provenance import Bounded, ClusteredGroups, InGroups, Quantity, WhichGroups
from counterveil.results.answering import Facts, Stored
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question, adjusted_caveats, refuse_few_clusters
from counterveil.rows.linear.group_contrasts import GroupContrast, release_group_contrasts, rows_of_groups
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import Gate, Kind, Plan, Released
from counterveil.session.session import in_branches

Answer = TypeVar("Answer", bound=Stored)

_FEWEST = 2  # people in either arm of a group that has an effect


@dataclass(frozen=True, slots=True)
class GroupMeans:
    """The difference of the arms' means in one group."""

    sensitivity: MeanContrast
    share: Fraction

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of the group's treated and of its other rows."""
        return self.sensitivity.sizes


# What is compared in the groups that have an effect, by their places.
Statistics: TypeAlias = dict[int, GroupMeans | PeriodForm | ClusteredForm]


@dataclass(frozen=True, slots=True)
class Shape(Generic[Answer]):
    """What becomes of the effects of public groups: the kind of answer, how it is made, and what a request says.

    Attributes
    ----------
    question : str
        Name of the question.
    kind : type
        Class of the answer.
    said : mapping
        What the ledger writes down beside the question.
    made : callable
        From the facts of effects of groups to those of the answer.
    every : bool
        Whether no group may be left out.
    among : WhichGroups
        Whose effects they are.
    """

    question: str
    kind: type[Answer]
    said: Mapping[str, Any]
    made: Callable[[Facts], Facts] = lambda facts: facts
    every: bool = False
    among: WhichGroups = WhichGroups.EVERY_GROUP


def compares_means(study: Study, question: Question) -> bool:
    """Return whether plain means are compared, which are summed in passes; other methods read all rows at once."""
    return question.method == "difference_in_means" and not study.clustered


def outcome_groups(
    public: PublicData, question: Question, *, layout: Layout, shape: Shape[Answer]
) -> Prepared[Answer]:
    """Return the effects of all groups that have two people in either arm; the question's method is chosen."""
    study = public.study
    rows = public.rows
    means = compares_means(study, question)
    statistics = _means(public, question, layout) if means else _adjusted(public.columns, question, layout)
    for group in statistics.values():
        refuse_few_clusters(study, shape.question, question.method, sum(group.sizes), " in every group")
    if len(statistics) < (layout.public if shape.every else 1):
        code = "CV-S110c" if shape.every else "CV-S130" if study.clustered else "CV-S110"
        raise refusal(code, layout=layout.describe(), fewest="two people of each arm")
    plan = groups_plan(question, [one.share for one in statistics.values()])
    names = group_names(layout)
    pages = [difference_in_means.PAGE if means else EFFECT_PAGE]
    pages += [CLUSTERED_PAGE] if study.clustered else []
    by_arm = _uneven(statistics.values())
    pages += [variance_choice.PAGE] if by_arm else []
    # Residual totals of clusters hold every heteroskedasticity.
    beyond = (Caveat.CLUSTERS_DEPEND,) if study.clustered else (Caveat.UNEVEN_VARIANCE,) if by_arm else ()

    def estimate(gate: Gate) -> Facts:
        released = _released(gate, study, layout, statistics)
        estimator = InGroups(question.method, shape.among)
        facts = Facts(
            groups=_outcome_effects(study, question, names, statistics, released),
            by=layout.names,
            method=ClusteredGroups(estimator, study.cluster_columns[0]) if study.clustered else estimator,
            releases=((Quantity.GROUP_EFFECTS, Bounded.WHOLE_BUDGET_IN_EVERY_GROUP),),
            not_covered=_caveats(study, question, layout) + beyond,
            details={"rows": rows, "mechanism": question.mechanism},
            left_out=tuple(name for place, name in enumerate(names) if place not in statistics),
        )
        return shape.made(facts)

    return Prepared(
        question=question,
        plan=plan,
        estimate=estimate,
        answer=shape.kind,
        pages=(*pages, "session/branches.proof.md"),
        description={"question": shape.question, **shape.said},
    )


def _uneven(statistics: Iterable[object]) -> bool:
    """Return whether a variance is that of residuals within arms."""
    forms = [one.variance_form for one in statistics if isinstance(one, PeriodForm)]
    return any(isinstance(one, ResidualVariance) for one in forms)


def _outcome_effects(
    study: Study,
    question: Question,
    names: Sequence[str],
    statistics: Statistics,
    released: Sequence[tuple[Released, Uncertainty]],
) -> tuple[Effect, ...]:
    """Return every group's effect with its error."""
    width = float(study.outcome_range[1] - study.outcome_range[0])
    effects = []
    for (place, one), (effect, error) in zip(statistics.items(), released, strict=True):
        linear = Linear(float(effect), error, (-width, width))
        effects.append(Effect(names[place], linear, question.level, len(statistics), float(sum(one.sizes))))
    return tuple(effects)


def _means(public: PublicData, question: Question, layout: Layout) -> Statistics:
    """Return the statistics of the groups that have an effect, by their places; sizes of arms are public."""
    width = public.study.outcome_bounds.width
    statistics: Statistics = {}
    for place, (control, treated) in enumerate(public.group_sizes(layout)):
        if min(control, treated) >= _FEWEST:
            bounds = MeanContrast(width, treated, control)
            statistics[place] = GroupMeans(bounds, difference_in_means.variance_share_of(bounds, question))
    return statistics


def _released(
    gate: Gate, study: Study, layout: Layout, statistics: Statistics
) -> list[tuple[Released, Uncertainty]]:
    """Return every group's released effect and its error; a variance that is not released is the largest one."""
    if not any(isinstance(form, GroupMeans) for form in statistics.values()):
        return [
            _released_form(gate, study, form, release_names(order))
            for order, form in enumerate(statistics.values())
            if not isinstance(form, GroupMeans)
        ]
    means = {place: form for place, form in statistics.items() if isinstance(form, GroupMeans)}
    contrasts = {
        place: GroupContrast(form.sensitivity, with_variance=form.share > 0, names=release_names(order))
        for order, (place, form) in enumerate(means.items())
    }
    released = release_group_contrasts(gate, layout, contrasts)
    return [
        (effect, _error(study, form, effect, variance))
        for form, (effect, variance) in zip(means.values(), released, strict=True)
    ]


def _released_form(
    gate: Gate, study: Study, form: PeriodForm | ClusteredForm, names: tuple[str, str]
) -> tuple[Released, Uncertainty]:
    """Return one group's released effect and its error."""
    if isinstance(form, ClusteredForm):
        return form.release(gate, names)
    effect, variance = form.release(gate, names)
    return effect, _error(study, form, effect, variance)


def _error(
    study: Study, form: GroupMeans | PeriodForm, effect: Released, variance: Released | None
) -> Uncertainty:
    """Return the error of a group's effect."""
    plain = known_error(effect, variance, form.sensitivity.variance_cap)
    return with_rare_events(plain, study.outcome_range, form.sizes)


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


def chosen_method(study: Study, question: Question, layout: Layout) -> str:
    """Return the method that the question names, or that `auto` chooses from declarations."""
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


def _adjusted(columns: PublicRows, question: Question, layout: Layout) -> Statistics:
    """Return the weighted, matched or clustered statistics of the groups that have an effect, by their places."""
    statistics: Statistics = {}
    for place, own in enumerate(rows_of_groups(columns, layout, _left(columns.study, layout))):
        treated = int(own.treated.sum())
        if min(treated, own.rows - treated) < _FEWEST:
            continue
        if not own.study.clustered:
            statistics[place] = comparison(own, question)
            continue
        clustered = ClusteredForm.of(own, question, public_effect(own, question))
        if clustered.enough:
            statistics[place] = clustered
    return statistics


def _caveats(study: Study, question: Question, layout: Layout) -> tuple[Fact, ...]:
    if question.method == "difference_in_means":
        left = tuple(name for name in layout.names if name not in _left(study, layout))
        return (*confounding(score_caveats(study, "arms", left)), Caveat.CLAMPING)
    return adjusted_caveats(study, Caveat.IMBALANCE_WITHIN_GROUPS)
