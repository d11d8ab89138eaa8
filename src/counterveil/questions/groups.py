"""Average effects in public groups of people, for about the price of one: `groups(...)`.

    effect in group g:  E[Y(1) - Y(0) | G = g]

In: private rows, groups by public labels or cut points, the budget. Out: for every group the effect in units
of the outcome, with standard error, single and simultaneous intervals, and a test whether effects differ.

One epsilon pays for all groups because they are disjoint: where a person's group is public, one changed
outcome moves the numbers of one group alone, and each group is released with the whole budget
(`session/branches.proof.md`). Where groups are private, a replaced record leaves one group and enters
another, and the sums of all groups together are bounded by twice what one record adds
(`rows/moments/group_scores.proof.md`).

All arguments are checked here before any data or budget is touched; estimators do the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from counterveil.accounting import Ledger
from counterveil.data import Layout, Study, silence
from counterveil.data.features import require_covariates
from counterveil.errors import refusal
from counterveil.estimators.clustered_groups import clustered_groups
from counterveil.estimators.group_names import group_names
from counterveil.estimators.method import runs
from counterveil.estimators.moments.group_forms import chosen_form
from counterveil.estimators.outcome_groups import Shape, chosen_method, compares_means
from counterveil.estimators.pairs.groups import pair_groups
from counterveil.estimators.registry import answer_by, by_unit
from counterveil.privacy import Number, Unit, exact, show
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import GroupsMethod, Mechanism, Protects
from counterveil.results.answering import Answer
from counterveil.results.arms import refuse_several_arms
from counterveil.results.groups import GroupsResult
from counterveil.results.question import (
    LARGEST_OUTCOME,
    Question,
    refuse_extremes,
    refuse_few_clusters,
    refuse_other_settings,
    refuse_shape,
    refuse_unknown_method,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource
from counterveil.settings import DifferenceInMeans, Groups, Matching, Weighting

# By what is protected, the methods and the type of their settings.
METHODS = by_unit("groups")
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


def _shape(layout: Layout) -> Shape[GroupsResult]:
    return Shape("groups", GroupsResult, {"by": layout.describe()})


def public_groups(session: BaseSession, question: Question, layout: Layout, shape: Shape[Answer]) -> Answer:
    """Return the effects of groups where outcomes alone are private."""
    question = replace(question, method=chosen_method(session.study, question, layout))
    # Rows that do not fit are refused before anything is spent.
    if compares_means(session.study, question):
        session.attach_batches()
    else:
        session.attach(f"{shape.question} with method={question.method!r}")
    return answer_by(shape.kind, session, "groups", question, layout=layout, shape=shape)


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
        The average effect of every group in units of the outcome, with its standard error, single and
        simultaneous intervals, and a test of whether effects differ.

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
        return public_groups(session, question.in_pure_noise(rule), layout, _shape(layout))
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        session.attach(f"groups with method={question.method!r}")
        prepare = partial(
            pair_groups,
            names=group_names(layout),
            codes=PublicData(session, question.unit).columns.codes(layout),
            shape=_shape(layout),
            by=layout.names,
        )
        return runs(prepare)(session, question)
    if session.study.clustered:
        session.attach("groups with clusters")
        return runs(partial(clustered_groups, layout=layout))(session, question)
    question = replace(question, open_noise=question.open_noise and rule == "sum")
    session.attach_batches()
    rows = PublicData(session, question.unit).rows
    # Which group a cluster is in is private: there must be enough for groups of equal size.
    refuse_few_clusters(session.study, "groups", question.method, rows // layout.public, " a group")
    chosen = chosen_form(session.study, question, rows, layout, layout.public)
    return answer_by(GroupsResult, session, "groups", chosen, layout=layout)
