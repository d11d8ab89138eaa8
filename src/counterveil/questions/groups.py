"""Effects by group: `groups(...)`, checked before any data or budget is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.accounting import Ledger
from counterveil.data import Backend, Layout, Range, Study, Sums, Table, silence, strata_codes
from counterveil.data.domains import outcome_unit
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.clustered_groups import clustered_groups
from counterveil.estimators.group_names import group_names
from counterveil.estimators.linear import difference_in_means, variance_choice
from counterveil.estimators.linear.clustered_effect import CLUSTERED_PAGE, ClusteredForm
from counterveil.estimators.linear.linear_estimator import EFFECT_PAGE, known_error
from counterveil.estimators.linear.public_comparison import PeriodForm, comparison, public_effect
from counterveil.estimators.method import runs
from counterveil.estimators.moments.group_forms import chosen_form
from counterveil.estimators.moments.record_groups import record_groups, score_caveats
from counterveil.estimators.pairs.budget import chosen
from counterveil.estimators.pairs.effect import pair_effects
from counterveil.estimators.pairs.provenance import proved, provenance, with_covariates
from counterveil.inference.arm_means import with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arm_totals import Arm, TwoArms, cell_totals
from counterveil.privacy import Estimand, Number, Unit, exact, show
from counterveil.privacy.caveats import Caveat, Fact, confounding
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import GroupsMethod, Mechanism, Protects
from counterveil.results.answering import Answer, Facts, answer_request
from counterveil.results.arms import refuse_several_arms
from counterveil.results.effect import Effect, Linear
from counterveil.results.groups import GroupsResult
from counterveil.results.question import (
    LARGEST_OUTCOME,
    Question,
    adjusted_caveats,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_unknown_method,
)
from counterveil.rows.linear.arm_contrast import release_contrast
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.sensitivity import MeanContrast
from counterveil.rows.moments.placing import Codes
from counterveil.rows.public import PublicData, PublicRows
from counterveil.session import BaseSession, BitSource, Gate, Kind, Plan, Released
from counterveil.session.session import in_branches
from counterveil.settings import DifferenceInMeans, Groups, Matching, Weighting

# By what is protected, the methods and the type of their settings.
METHODS: dict[Unit, dict[str, type | None]] = {
    Unit.OUTCOME: {
        "difference_in_means": DifferenceInMeans,
        "weighting": Weighting,
        "matching": Matching,
    },
    Unit.TREATMENT_AND_OUTCOME: {"adjusted": None},
    Unit.RECORD: dict.fromkeys(("arms", "adjusted"), Groups),
}
# Policies and curves need one score a person.
ONE_SCORE = ("scores", "adjusted")


def refuse_ungrouped(study: Study, question: Question, known: Mapping[str, type | None]) -> None:
    """Raise the error of what the methods of a question cannot answer."""
    refuse_shape(study, question.unit)
    refuse_several_arms(study)
    refuse_extremes(study, question.budget)
    method = question.method
    refuse_unknown_method(method, ("auto", *known), f" with protects={question.unit.value!r}")
    if method in ("weighting", "matching", "adjusted"):
        require_covariates(study, method)
    refuse_other_settings(question, known.get(method, Groups if question.unit is Unit.RECORD else None))


def refuse_unranked(study: Study, question: Question) -> None:
    """Raise the same for a policy or a curve."""
    scored: dict[str, type | None] = dict.fromkeys(ONE_SCORE, Groups)
    refuse_ungrouped(study, question, scored if question.unit is Unit.RECORD else METHODS[question.unit])


def checked_cost(cost: Number) -> float:
    """Return the cost of one treatment, in units of the outcome, or raise CV-P663 for one beyond every outcome."""
    found = exact(cost, "cost")
    if abs(found) > LARGEST_OUTCOME:
        raise refusal("CV-P663", largest_outcome=float(LARGEST_OUTCOME), found=show(found))
    return float(found)


By = str | Sequence[str] | Mapping[str, Sequence[Any] | None]

# More groups than this are a function of the covariates: `cate` is for those.
_MOST_GROUPS = 2000


def layout_of(study: Study, by: By) -> Layout:
    """Return the layout of the groups: covariates by name, cut points where they are given."""
    if isinstance(by, str):
        by = (by,)
    names = tuple(by) if isinstance(by, Mapping | Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise refusal("CV-P541b", by=by)
    cuts: dict[str, tuple[Fraction, ...]] = {}
    if isinstance(by, Mapping):
        for name, points in by.items():
            if points is not None and not isinstance(points, Sequence):
                raise refusal("CV-P541", name=name, points=points)
            if points is not None:
                cuts[name] = tuple(exact(point, f"a cut point of {name!r}") for point in points)
    layout = Layout.of(study, names, cuts)
    if layout.public > _MOST_GROUPS:
        raise refusal("CV-P542", most_groups=_MOST_GROUPS, public=layout.public)
    return layout


# Effects of groups where only outcomes are private: a linear estimate in every group, each with the whole budget.
#
# Who is in which group and in which arm is public, so that an outcome moves the numbers of one group alone.


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
    """What becomes of the effects of public groups: the kind of answer, how it is made, and what a request says."""

    question: str
    kind: type[Answer]
    said: Mapping[str, Any]
    made: Callable[[Facts], Facts] = lambda found: found
    every: bool = False  # whether no group may be left out
    among: str = "in every group"


def _shape(layout: Layout) -> Shape[GroupsResult]:
    return Shape("groups", GroupsResult, {"by": layout.describe()})


def outcome_groups(session: BaseSession, question: Question, layout: Layout, shape: Shape[Answer]) -> Answer:
    """Return the private effects of all groups that have two people in either arm."""
    question = replace(question, method=_chosen(session.study, question, layout))
    study = session.study
    # Rows that do not fit are refused before anything is spent.
    means = question.method == "difference_in_means" and not study.clustered
    if means:
        session.attach_batches()
        statistics = _means(session.batches, question, layout)
    else:
        session.attach(f"{shape.question} with method={question.method!r}")
        statistics = _adjusted(session.table, question, layout)
    for one in statistics.values():
        refuse_few_clusters(study, shape.question, question.method, sum(one.sizes), " in every group")
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

    def compute(gate: Gate) -> Facts:
        found = release(gate, session.batches, layout, statistics)
        by_cluster = f"; standard errors clustered by {study.cluster_columns[0]}" if study.clustered else ""
        facts = Facts(
            groups=_outcome_effects(study, question, names, statistics, found),
            by=layout.names,
            method=f"{question.method.replace('_', ' ')} {shape.among}{by_cluster}",
            releases=(("effect and variance of every group", "the whole budget in every group"),),
            not_covered=_caveats(study, question, layout) + beyond,
            details={"rows": session.batches.rows, "mechanism": question.mechanism},
            left_out=tuple(name for place, name in enumerate(names) if place not in statistics),
        )
        return shape.made(facts)

    return answer_request(
        shape.kind,
        session,
        question,
        plan,
        compute,
        pages=(*pages, "session/branches.proof.md"),
        said={"question": shape.question, **shape.said},
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
    found: Sequence[tuple[Released, Uncertainty]],
) -> tuple[Effect, ...]:
    """Return every group's effect with its error."""
    width, effects = float(study.outcome_range[1] - study.outcome_range[0]), []
    for (place, one), (effect, error) in zip(statistics.items(), found, strict=True):
        released = Linear(float(effect), error, (-width, width))
        effects.append(Effect(names[place], released, question.level, len(statistics), float(sum(one.sizes))))
    return tuple(effects)


def _means(source: Backend, question: Question, layout: Layout) -> Statistics:
    """Return the statistics of the groups that have an effect, by their places; sizes of arms are public."""
    (counts,) = source.run(partial(group_sizes, layout=layout))
    found: Statistics = {}
    for place, (control, treated) in enumerate(counts.reshape(-1, 2)):
        if min(control, treated) >= _FEWEST:
            bounds = MeanContrast(source.study.outcome_bounds.width, int(treated), int(control))
            found[place] = GroupMeans(bounds, difference_in_means.variance_share_of(bounds, question))
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
    gate: Gate, source: Backend, layout: Layout, statistics: Statistics
) -> list[tuple[Released, Uncertainty]]:
    """Return every group's released effect and its error; a variance that is not released is the largest one."""
    found: list[tuple[Released, Uncertainty]] = []
    unit = outcome_unit(source.study.outcome_bounds)
    plain_means = any(isinstance(one, GroupMeans) for one in statistics.values())
    sums = source.run(partial(group_sums, layout=layout))[0] if plain_means else np.empty((0, 3))
    for k, (place, one) in enumerate(statistics.items()):
        names = release_names(k)
        if isinstance(one, ClusteredForm):
            found.append(one.release(gate, names))
            continue
        if isinstance(one, PeriodForm):
            effect, variance = one.release(gate, names)
        else:
            arms, paid = TwoArms(Arm(*sums[2 * place + 1]), Arm(*sums[2 * place])), one.share > 0
            effect, variance = release_contrast(
                gate, arms, unit, one.sensitivity, with_variance=paid, names=names
            )
        plain = known_error(effect, variance, one.sensitivity.variance_cap)
        found.append((effect, with_rare_events(plain, source.study.outcome_range, one.sizes)))
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


def _adjusted(table: Table, question: Question, layout: Layout) -> Statistics:
    """Return the weighted, matched or clustered statistics of the groups that have an effect, by their places."""
    found: Statistics = {}
    for place, rows in enumerate(_group_rows(table, layout)):
        own = PublicRows(_rows_of(table, rows, layout), question.unit)
        treated = int(own.treated.sum())
        if min(treated, own.rows - treated) < _FEWEST:
            continue
        if not own.study.clustered:
            found[place] = comparison(own, question)
            continue
        clustered = ClusteredForm.of(own, question, public_effect(own, question))
        if clustered.enough:
            found[place] = clustered
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
    smaller = study._changed(covariates={name: study.covariates[name] for name in kept}, missing=rules)
    return replace(
        table,
        study=smaller,
        arm=table.arm[rows],
        treated=table.treated[rows],
        outcome=table.outcome[rows],
        covariates={name: table.covariates[name][rows] for name in kept},
        measures=(),
        cluster=None if table.cluster is None else table.cluster[rows],
    )


def _caveats(study: Study, question: Question, layout: Layout) -> tuple[Fact, ...]:
    if question.method == "difference_in_means":
        left = tuple(name for name in layout.names if name not in _left(study, layout))
        return (*confounding(score_caveats(study, "arms", left)), Caveat.CLAMPING)
    return adjusted_caveats(study, Caveat.IMBALANCE_WITHIN_GROUPS)


# Groups where treatment and outcome are private: who is in which is public, and a pair moves the sums of one alone.


# Rows of a group that has an effect.
_GROUPS_FEWEST = 30


def pair_groups(
    session: BaseSession,
    question: Question,
    names: Sequence[str],
    codes: Codes,
    shape: Shape[Answer],
    by: tuple[str, ...] = (),
) -> Answer:
    """Return the private effects of the groups that have enough rows; `codes` are the places of rows' groups."""
    columns = PublicData(session, question.unit).columns
    places = np.flatnonzero(np.bincount(codes, minlength=len(names)) >= _GROUPS_FEWEST)
    if len(places) < (len(names) if shape.every else 1):
        code = "CV-S110c" if shape.every else "CV-S110b"
        raise refusal(code, layout=", ".join(names), fewest=f"{_GROUPS_FEWEST} people")
    rows = [np.flatnonzero(codes == place) for place in places]
    question = with_covariates(columns.study, replace(question, method="adjusted"))
    choice = chosen(columns, question.budget, effects=len(places))
    width = float(session.study.outcome_range[1] - session.study.outcome_range[0])

    def compute(gate: Gate) -> Facts:
        found = pair_effects(gate, columns, choice, Estimand.ATE, rows)
        known = [Linear(one.estimate, one.uncertainty, (-width, width)) for one in found]
        effects = tuple(
            Effect(names[int(place)], one, question.level, len(places), float(len(own)))
            for place, one, own in zip(places, known, rows, strict=True)
        )
        facts = Facts(
            provenance(columns.study, choice, {}),
            groups=effects,
            by=by,
            left_out=tuple(name for place, name in enumerate(names) if place not in places),
        )
        return shape.made(facts)

    said = {"question": shape.question, **shape.said}
    return answer_request(shape.kind, session, question, choice.plan, compute, said=said, **proved(choice))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsArguments(Arguments[GroupsResult]):
    """The arguments of `groups` beside data and study, checked."""

    name: ClassVar[str] = "groups"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    by: By
    method: GroupsMethod = "auto"
    mechanism: Mechanism | None = None
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[GroupsResult]:
        """Return the checked question; nothing here looks at data or budget."""
        layout_of(study, self.by)  # refuses what makes no groups
        question = self.question(self.method, self.mechanism, self.settings)
        refuse_ungrouped(study, question, METHODS[question.unit])
        if study.clustered and question.unit is Unit.RECORD:
            refuse_other_settings(question, None)  # nothing is clipped
        return Asked(question.budget, partial(answer_groups, question=question, by=self.by))


@asks
def groups(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    by: By,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: GroupsMethod = "auto",
    level: float = 0.95,
    mechanism: Mechanism | None = None,
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> GroupsResult:
    """Estimate the effects in public groups of people.

    Groups are disjoint, so that all of them together cost what one does.

    Parameters
    ----------
    data : frame, mapping, path or relation
        The rows: a pandas, polars or pyarrow data frame, a mapping of names to arrays, the path of a
        CSV or Parquet file (or a pattern that names several), a DuckDB relation or a Spark data frame.
        An Ibis table is aggregated inside its database, for methods that need counts and sums alone. A
        formula such as ``"died ~ rhc | age + sex"`` may stand here; rows and declarations follow it.
    study : Study
        Roles, public ranges and categories of the columns. After a formula: the rows.
    declared : mapping, Study or path, optional
        After a formula only: what declares its columns, as a mapping of names to ranges and labels
        (``{"age": (18, 90)}``), a codebook or study file, or a `Study`.
    by : str, sequence of str, or mapping
        What makes the groups: a covariate, several that are crossed, or a mapping of covariates to cut
        points: ``{"age": (40, 65), "sex": None}``.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; groups, arms and covariates are public. "treatment
        and outcome": treatments and outcomes; groups and covariates are public. "record": everything
        about a person, groups included.
    epsilon : number or str
        Privacy loss to spend on all groups together, read exactly: 0.1 is one tenth, ``"1/3"`` one
        third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : str, default "auto"
        Estimator. With outcomes private: "difference_in_means", "weighting" or "matching". With records
        private: "arms" (trials) or "adjusted" (for covariates). With treatments and outcomes private:
        "adjusted".
    level : float, default 0.95
        Confidence level of the intervals, single or simultaneous, between 0 and 1; the privacy noise is
        included.
    mechanism : {"staircase", "laplace", "gaussian"}, optional
        Noise distribution; "gaussian" needs a positive `delta`. By default the one of least variance:
        staircase with ``delta=0`` and for few numbers, Gaussian otherwise.
    settings : settings of the method, optional
        With outcomes private `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`; with records
        private `cv.settings.Groups`.
    ledger : path, URL or Ledger, optional
        Existing ledger to charge. Without one, the costs of several calls are not added up.
    dataset : str, optional
        Account in the ledger; needed if it has more than one.
    request_id : str, optional
        Name of this request. Repeating a named request returns the stored answer and costs nothing.
    noise : SeededNoise, optional
        ``cv.SeededNoise(seed)`` for tests and experiments: the result is marked as simulated and
        protects nobody. By default the operating system's random bits.

    Returns
    -------
    GroupsResult
        The average effect of every group with its standard error, single and simultaneous intervals,
        and a test of whether effects differ.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    cate : Effects as a function of covariates.
    policy_value : What a rule of treatment gains.

    Notes
    -----
    The estimand of group g is E[Y(1) - Y(0) | G = g]. No two neighbouring data sets differ in more
    than one group, so each group is answered with the whole budget (parallel composition); where groups
    are private, with half of it.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> result = cv.groups(
    ...     data.frame, data.study, by={"x": (0.5,)}, protects="outcome", epsilon=2,
    ...     noise=cv.SeededNoise(1)
    ... )
    >>> len(result.table)
    2
    """
    arguments = GroupsArguments(
        by=by,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        mechanism=mechanism,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


@silence()
def answer_groups(session: BaseSession, question: Question, by: By) -> GroupsResult:
    """Return the answer of the form that the question names, or that public numbers choose."""
    layout = layout_of(session.study, by)
    session.admit(question.uses(session.study, "groups"))
    rule = session.account().rule
    if question.unit is Unit.OUTCOME:
        return outcome_groups(session, question.in_pure_noise(rule), layout, _shape(layout))
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        session.attach(f"groups with method={question.method!r}")
        codes = strata_codes(session.table, layout)
        return pair_groups(session, question, group_names(layout), codes, _shape(layout), layout.names)
    if session.study.clustered:
        session.attach("groups with clusters")
        return runs(partial(clustered_groups, layout=layout))(session, question)
    question = replace(question, open_noise=question.open_noise and rule == "sum")
    session.attach_batches()
    # Which group a cluster is in is private: there must be enough for groups of equal size.
    mean = session.batches.rows // layout.public
    refuse_few_clusters(session.study, "groups", question.method, mean, " a group")
    chosen = chosen_form(session.study, question, session.batches.rows, layout, layout.public)
    return runs(partial(record_groups, layout=layout))(session, chosen)
