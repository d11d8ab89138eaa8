"""Public rules that say whom to treat, and what they gain: `policy_value`, `targeting_curve`.

A rule is a public function r(x) of covariates with values 0 or 1: by a released effect, by conditions on
covariates, or a function of the caller's. Its value is an average over people, in units of the outcome less
the cost of treatment. In: private rows, the rule, the budget. Out: gains with intervals that include the
noise.

Why a rule needs no trust: it is evaluated row by row, so that a changed person changes what is said of that
person alone, and the bounds of the sums hold for every rule. Proof: `rows/moments/group_scores.proof.md` for
private records; the guarantee of each answer names its own pages. A rule that keeps state between rows would
break this; it is required of the caller that it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from counterveil.accounting import Ledger
from counterveil.data import (
    Layout,
    Range,
    Study,
    columns_as_written,
    public_points,
    silence,
)
from counterveil.data.domains import Domain, Label, LabelIndex
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.estimators.folds.names import learner_name
from counterveil.estimators.method import runs
from counterveil.estimators.moments.record_policy import RankedRows, RuleOfRows, record_curve, record_policy
from counterveil.estimators.outcome_groups import Shape
from counterveil.estimators.pairs.groups import pair_groups
from counterveil.estimators.policy_gains import CellEffects, gains_of_rule, points_of_curve
from counterveil.numerics.arrays import Flags, Floats
from counterveil.privacy import Number, Unit
from counterveil.privacy.caveats import Caveat
from counterveil.privacy.provenance import WhichGroups
from counterveil.questions.asking import Arguments, Asked, ask_once, asks
from counterveil.questions.choices import PolicyMethod, Protects
from counterveil.questions.groups import (
    checked_cost,
    public_groups,
    refuse_unranked,
)
from counterveil.results.answering import Answer, Facts
from counterveil.results.effect import load, refusing, save
from counterveil.results.functions import CateModel
from counterveil.results.groups import PolicyValue, TargetingCurve
from counterveil.results.question import Question, described, refuse_few_clusters
from counterveil.rows.linear.moved_rows import session_of
from counterveil.rows.moments.placing import (
    Codes,
    Columns,
    RowNumbers,
    RulePlaces,
)
from counterveil.rows.public import PublicData
from counterveil.session import BaseSession, BitSource, fixed_ambient_generators
from counterveil.settings import DifferenceInMeans, Groups, Matching, Weighting
from counterveil.settings.methods import is_number


class EffectModel(Protocol):
    """Anything that says how large the effect is, from covariates alone.

    With a request id a model of the caller's own has a text `name` as well, which stands for it in the ledger.
    """

    def effect(self, columns: Any, /) -> Any:
        """Return the effect for every row of a mapping from covariate to values."""
        ...


def reads_rows_alone(model: object) -> TypeGuard[CateModel]:
    """Return whether what a model says of a row is known to depend on that row alone: a subclass could do anything."""
    return type(model) is CateModel


def _described_model(model: object, request_id: str | None) -> Any:
    """Return what tells one model from another: what a released one holds, or the name of another (or CV-C010)."""
    if reads_rows_alone(model):
        return model.to_dict()
    name = getattr(model, "name", None)
    return described(model, name if isinstance(name, str) and name else None, request_id)


def _name_of_function(function: Callable[[Any], Any]) -> str:
    """Return what answers call a rule whose function was given no name."""
    return f"the function {learner_name(function)}"


def model_remarks(model: object) -> tuple[str, ...]:
    """Return what a guarantee rests on beside the proofs, where a model or a rule says which people are meant."""
    if reads_rows_alone(model):
        return ("the model was released before: what it cost comes on top of this",)
    return (
        "the guarantee rests on the rule or model: it must be public and carry nothing over from one row to the next",
    )


def fits(model: EffectModel, study: Study) -> bool:
    """Return whether a model can be asked about every row that a study allows; compares declarations only.

    Otherwise a row's label could make it fail, and the failure would tell of that row.
    """
    if not reads_rows_alone(model):
        return True
    for name, known in model.study.covariates.items():
        own = study.covariates.get(name)
        if own is None or isinstance(own, Range) is not isinstance(known, Range):
            return False
        if not isinstance(own, Range) and not isinstance(known, Range):
            labels = LabelIndex(known.labels)
            if any(labels.code(label) is None for label in own.labels):
                return False
    return True


def effects_at(model: EffectModel, columns: Columns) -> Floats:
    """Return the model's effects; models that are not ours are asked about one row at a time."""
    if reads_rows_alone(model):
        return np.asarray(model.effect(columns), dtype=np.float64)
    return one_by_one(model.effect, columns)


def one_by_one(function: Callable[[Any], Any], columns: Columns) -> Floats:
    """Return what a function answers to every row alone, 0 where it fails.

    It never sees two rows together, so that what it says of one cannot depend on another, unless it keeps
    state between calls. What it prints, logs or warns of is dropped.
    """
    rows = len(next(iter(columns.values()))) if columns else 0
    found = np.zeros(rows)
    # Going through a matrix of one column is quicker than slicing: its rows are arrays of length one.
    cells = zip(*(values[:, None] for values in columns.values()), strict=True)
    with silence(), fixed_ambient_generators() as again:
        for place, row in enumerate(cells):
            again()
            try:
                answer = function(dict(zip(columns, row, strict=True)))
                found[place] = float(np.asarray(answer, dtype=np.float64).reshape(-1)[0])
            except (Exception, SystemExit):
                found[place] = 0.0
    return np.where(np.isfinite(found), found, 0.0)


MOST_BINS = 100


def checked_thresholds(thresholds: object) -> tuple[float, ...]:
    """Return public thresholds in ascending order, or refuse them."""
    given = tuple(thresholds) if isinstance(thresholds, Sequence) and not isinstance(thresholds, str) else ()
    usable = all(isinstance(one, int | float) and isfinite(one) for one in given)
    if not given or not usable or len(given) >= MOST_BINS or len(set(given)) < len(given):
        raise refusal("CV-P546", most_bins=MOST_BINS - 1, thresholds=thresholds)
    return tuple(sorted(float(one) for one in given))


def checked_bins(bins: object) -> int:
    """Return how many parts people are ranked into, or refuse it."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MOST_BINS:
        raise refusal("CV-P547", most_bins=MOST_BINS, bins=bins)
    return bins


# Cells of the public grid on which quantiles are bought, and points of the public box that its ends come from.
_GRID = 64
_POINTS = 512


def public_grid(model: EffectModel, study: Study) -> Floats:
    """Return the edges of equal cells between the least and the largest score over the public box."""
    scores = effects_at(model, columns_as_written(public_points(study, _POINTS), study))
    low, high = float(scores.min()), float(scores.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _GRID + 1)[1:-1]


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A public rule that says whom to treat; made by `from_model`, `where` or `of`.

    It must come from public or released things. A rule made of a released `CateModel` or of conditions can be
    stored; a function cannot.

    Attributes
    ----------
    name : str
        The rule in words. It stands for a function in the ledger, where a request id needs
        ``cv.Policy("name", function=...)``: give a function that you changed another name.
    model : CateModel or object with effect(X), optional
        The model whose effect decides.
    threshold : float
        Effect above which the model treats, in units of the outcome.
    conditions : mapping, optional
        The conditions by covariate.
    function : callable, optional
        The function of one row's covariates that decides.
    cost : float, optional
        Cost of treating one person that the rule was made with, in units of the outcome.

    See Also
    --------
    policy_value : What a rule gains.

    Examples
    --------
    >>> import counterveil as cv
    >>> cv.Policy.where(age=(40, 65), sex=["f"]).name
    'treat where 40 <= age < 65 and sex is f'
    """

    name: str
    model: EffectModel | None = None
    threshold: float = 0.0
    conditions: Mapping[str, tuple[Any, ...]] | None = None
    function: Callable[[Any], Any] | None = None
    cost: float | None = None

    @classmethod
    def from_model(
        cls, model: EffectModel, *, threshold: float | None = None, cost: float | None = None
    ) -> Policy:
        """Return the rule that treats where the effect of a model is above a threshold.

        Parameters
        ----------
        model : CateModel or object with effect(X)
            The model; it must be public or released. Where the rule is asked about with a request id, a model
            of your own has an attribute `name`, which stands for it in the ledger.
        threshold : float, optional
            Effect above which the rule treats, in units of the outcome. By default `cost`, or 0.
        cost : float, optional
            Cost of treating one person, in units of the outcome, in place of `threshold`. The rule is then
            judged after that cost, unless another one is named where it is judged.

        Returns
        -------
        Policy
            The rule.

        Raises
        ------
        CounterveilError
            CV-P545 for what is no model, or for a threshold and a cost together.
        """
        if not hasattr(model, "effect") or (threshold is not None and cost is not None):
            raise _refusal(
                "a model with effect(X), and threshold= or cost= but not both", type(model).__name__
            )
        at = threshold if threshold is not None else cost if cost is not None else 0.0
        if not is_number(at):
            raise _refusal("a finite threshold", shown(at))
        own = None if cost is None else float(at)
        return cls(f"treat where the modelled effect is above {float(at):g}", model, float(at), cost=own)

    @classmethod
    def where(cls, **conditions: tuple[float, float] | list[Label]) -> Policy:
        """Return the rule that treats where all conditions hold.

        Parameters
        ----------
        **conditions : (low, high) or list of labels
            By the name of the covariate: ``age=(40, 65)`` holds for 40 <= age < 65, ``sex=["f"]`` for any of
            the labels.

        Returns
        -------
        Policy
            The rule.

        Raises
        ------
        CounterveilError
            CV-P545 for conditions that are none.
        """
        kept: dict[str, tuple[Any, ...]] = {}
        for name, wanted in conditions.items():
            if isinstance(wanted, tuple) and len(wanted) == 2:
                kept[name] = ("between", *(_bound(end, name, wanted) for end in wanted))
            elif isinstance(wanted, list) and wanted:
                kept[name] = ("among", *wanted)
            else:
                raise _refusal("name=(low, high) or name=[label, ...]", f"{name}={shown(wanted)}")
        if not kept:
            raise _refusal("at least one condition", "none")
        said = " and ".join(
            f"{wanted[1]:g} <= {name} < {wanted[2]:g}"
            if wanted[0] == "between"
            else f"{name} is {' or '.join(one if isinstance(one, str) else shown(one) for one in wanted[1:])}"
            for name, wanted in kept.items()
        )
        return cls(f"treat where {said}", conditions=kept)

    @classmethod
    def of(cls, policy: Any) -> Policy:
        """Return a policy as it is, or a function of one row's covariates as a policy.

        Parameters
        ----------
        policy : Policy or callable
            A policy; or a function of a mapping of names to arrays of length one, which says whether to
            treat.

        Returns
        -------
        Policy
            The rule.

        Raises
        ------
        CounterveilError
            CV-P545 for anything else.
        """
        if isinstance(policy, cls):
            return policy
        if callable(policy):
            return cls(_name_of_function(policy), function=policy)
        raise _refusal("a Policy, or a function of a row's covariates", type(policy).__name__)

    def decide(self, columns: Columns) -> Flags:
        """Return for every row whether the rule treats it; each row is decided by itself.

        Parameters
        ----------
        columns : mapping of str to array
            The covariates that the rule reads, by name, with one value for each row.

        Returns
        -------
        numpy.ndarray of bool
            True for the rows that are treated.

        Examples
        --------
        >>> import counterveil as cv
        >>> import numpy as np
        >>> cv.Policy.where(age=(40, 65)).decide({"age": np.array([39, 40, 65])}).tolist()
        [False, True, False]
        """
        if self.model is not None:
            return np.asarray(effects_at(self.model, columns) > self.threshold)
        if self.conditions is not None:
            return self._where(columns)
        assert self.function is not None
        return np.asarray(one_by_one(self.function, columns) != 0)

    def _where(self, columns: Columns) -> Flags:
        assert self.conditions is not None
        found = np.ones(len(next(iter(columns.values()))), dtype=np.bool_)
        for name, (kind, *wanted) in self.conditions.items():
            values = columns[name]
            if kind == "between":
                found &= (values >= wanted[0]) & (values < wanted[1])
            else:
                _, first, places = np.unique(values.astype(str), return_index=True, return_inverse=True)
                labels = [values[place : place + 1].tolist()[0] for place in first]
                found &= np.array([_named(label, wanted) for label in labels])[places]
        return found

    @property
    def _sequential(self) -> bool:
        """Whether the rule asks a function or a model that is not ours."""
        return self.conditions is None and not reads_rows_alone(self.model)

    def _constant(self, study: Study) -> bool | None:
        """Return what the rule says of everyone whom the study allows, None where declarations do not tell.

        Numbers lie in their declared ranges, to which they are clamped, and labels are those declared.
        """
        if reads_rows_alone(self.model) and not self.model.heterogeneous:
            return bool(self.decide(columns_as_written(public_points(study, 1), study))[0])
        if self.conditions is None:
            return None
        said = [_of_everyone(study.covariates[name], wanted) for name, wanted in self.conditions.items()]
        return False if False in said else None if None in said else True

    def _price(self, cost: Number | None) -> float:
        """Return what treating one person costs: `cost`, or what the rule was made with, or nothing."""
        return checked_cost(self.cost or 0 if cost is None else cost)

    def _check(self, study: Study) -> None:
        """Raise CV-P545 where the rule cannot decide about every row that the study allows; reads no row."""
        if self.model is not None and not fits(self.model, study):
            raise _refusal("a model of the study's covariates with all of their labels", self.name)
        for name, (kind, *wanted) in (self.conditions or {}).items():
            domain = study.covariates.get(name)
            if domain is None:
                raise _refusal(
                    f"covariates of the study: {', '.join(study.covariates)}", f"a condition on {name!r}"
                )
            if isinstance(domain, Range):
                if kind != "between":
                    raise _refusal(f"{name}=(low, high), as it holds numbers", f"labels for {name!r}")
            elif kind == "between" or any(LabelIndex(domain.labels).code(one) is None for one in wanted):
                raise _refusal(
                    f"{name}=[...] with labels among {list(domain.labels)!r}", f"{name}={wanted!r}"
                )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the guarantee rests on in addition to the proofs."""
        if self.conditions is not None:
            return ()
        return model_remarks(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as JSON-ready facts; `Policy.from_dict` reads them back.

        Returns
        -------
        dict
            The facts.

        Raises
        ------
        CounterveilError
            CV-P545 for a rule made of a function.
        """
        if reads_rows_alone(self.model):
            return {
                "kind": "effect",
                "threshold": self.threshold,
                "cost": self.cost,
                "model": self.model.to_dict(),
            }
        if self.conditions is not None:
            return {"kind": "where", "conditions": {name: list(c) for name, c in self.conditions.items()}}
        raise _refusal("a rule made of a released CateModel or of conditions, to be stored", self.name)

    def _described(self, request_id: str | None) -> dict[str, Any]:
        """Return what tells this rule from another: its facts, or the name of its model or function (or CV-C010)."""
        if reads_rows_alone(self.model) or self.conditions is not None:
            return self.to_dict()
        if self.function is None:
            made_of = _described_model(self.model, request_id)
        else:
            name = None if self.name == _name_of_function(self.function) else self.name
            made_of = described(self.function, name, request_id)
        return {"threshold": self.threshold, "cost": self.cost, "of": made_of}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Policy:
        """Return the rule written by `to_dict`.

        Parameters
        ----------
        facts : dict
            What `to_dict` returned.

        Returns
        -------
        Policy
            The rule.

        Raises
        ------
        CounterveilError
            CV-P661 for other facts.
        """
        with refusing(cls):
            if facts["kind"] == "effect":
                name = "threshold" if facts["cost"] is None else "cost"
                return cls.from_model(CateModel.from_dict(facts["model"]), **{name: facts["threshold"]})
            return cls.where(
                **{
                    name: tuple(wanted) if kind == "between" else wanted
                    for name, (kind, *wanted) in facts["conditions"].items()
                }
            )

    def save(self, path: str | Path) -> Path:
        """Write the rule as JSON, without any data in it.

        Parameters
        ----------
        path : path
            The file to write.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        CounterveilError
            CV-P545 for a rule made of a function.
        """
        return save(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Return the rule that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Policy
            The rule.

        Raises
        ------
        CounterveilError
            CV-P545 for another file.
        """
        return load(path, cls.from_dict, lambda got: _refusal("a file that Policy.save wrote", got))


def stored_policy(path: Path, cost: Number | None) -> Policy:
    """Return the rule in a file: one that `Policy.save` wrote, or a model that treats where it is worth its cost."""

    def read(facts: dict[str, Any]) -> Policy:
        if facts.get("kind") == CateModel.__name__:
            return Policy.from_model(CateModel.from_dict(facts), cost=checked_cost(cost or 0))
        return Policy.from_dict(facts)

    return load(path, read, lambda got: _refusal("a file that Policy.save or CateModel.save wrote", got))


def _of_everyone(domain: Domain, condition: tuple[Any, ...]) -> bool | None:
    """Return whether a condition holds for all values of a domain, or for none; None where for some."""
    kind, *wanted = condition
    if kind == "between":
        assert isinstance(domain, Range)
        least, most, (low, high) = float(domain.lo), float(domain.hi), wanted
        if low <= least and most < high:
            return True
        return False if most < low or high <= least or high <= low else None
    assert not isinstance(domain, Range)
    return True if all(_named(label, wanted) for label in domain.labels) else None


def _named(label: Any, wanted: list[Any]) -> bool:
    """Return whether a label is one of those wanted, as a study compares labels: True means 1."""
    own = LabelIndex((label,))
    return any(own.code(one) is not None for one in wanted)


def _bound(end: object, name: str, wanted: object) -> float:
    """Return one end of a range as a double, or raise CV-P545; an infinite end leaves that side open."""
    try:
        found = float(end)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        found = nan
    if isinstance(end, str) or isnan(found):
        raise _refusal("name=(low, high) with two numbers, or name=[label, ...]", f"{name}={shown(wanted)}")
    return found


def _refusal(expected: str, got: str) -> CounterveilError:
    return refusal("CV-P545", expected=expected, got=got)


def answer_cells(
    session: BaseSession, question: Question, codes: Codes, labels: Sequence[str], shape: Shape[Answer]
) -> Answer:
    """Return an answer from the effects of cells of people, which covariates make: they are public here."""
    if question.unit is Unit.TREATMENT_AND_OUTCOME:
        prepare = partial(pair_groups, names=labels, codes=codes, shape=shape)
        return runs(prepare)(session, question)
    rows = PublicData(session, question.unit).columns
    name = "people"
    while name in rows.study.covariates:
        name += "_"
    with_cells = rows.with_labels(name, labels, codes)
    layout = Layout.of(with_cells.study, (name,))
    session = session_of(session, with_cells)
    return public_groups(session, question.in_pure_noise(session.account().rule), layout, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValueArguments(Arguments[PolicyValue]):
    """The arguments of `policy_value` beside data and study, checked."""

    name: ClassVar[str] = "policy_value"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    policy: Any
    cost: Number | None = None
    method: PolicyMethod = "auto"
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[PolicyValue]:
        """Return the checked question; nothing here looks at data or budget."""
        question = self.question(self.method, None, self.settings)
        refuse_unranked(study, question)
        rule = checked_policy(self.policy, study)
        price = rule._price(self.cost)
        return Asked(question.budget, partial(answer_policy, question=question, rule=rule, cost=price))


@asks
def policy_value(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    policy: Any,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: PolicyMethod = "auto",
    level: float = 0.95,
    cost: Number | None = None,
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> PolicyValue:
    """Estimate what a public rule of treatment gains, per person.

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
    policy : Policy or callable
        The rule: a `cv.Policy`, or a function of one row's covariates (a mapping to arrays of length
        one) that says whether to treat.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend, read exactly: 0.1 is one tenth, ``"1/3"`` one third. Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : str, default "auto"
        Estimator. With records private: "scores" (trials) or "adjusted" (for covariates). With outcomes
        private: "difference_in_means", "weighting" or "matching". With treatments and outcomes private:
        "adjusted".
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1; the privacy noise is included.
    cost : number, optional
        Cost of treating one person, in units of the outcome. By default the policy's own, or 0.
    settings : settings of the method, optional
        With records private `cv.settings.Groups`; with outcomes private
        `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
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
    PolicyValue
        Gains per person over treating nobody and over treating everybody, and of treating everybody over
        nobody, in units of the outcome, with intervals; and the share of people whom the rule treats.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    targeting_curve : Gains for all shares of people treated.
    Policy : Rules by conditions or by a model.

    Notes
    -----
    With d(x) in {0, 1} the rule and c the cost, the gain over treating nobody is E[d(X) (Y(1) - Y(0) -
    c)], over treating everybody E[(1 - d(X)) (Y(0) - Y(1) + c)]. The rule must be public or released:
    one fitted to the same rows without noise reveals them.

    Examples
    --------
    >>> import counterveil as cv
    >>> data = cv.datasets.simulated_trial(n=2000, effect=0.3)
    >>> rule = cv.Policy.where(x=(0.5, 1))
    >>> value = cv.policy_value(
    ...     data.frame, data.study, policy=rule, protects="outcome", epsilon=2, noise=cv.SeededNoise(1)
    ... )
    >>> len(value.gains)
    3
    """
    arguments = PolicyValueArguments(
        policy=policy,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        cost=cost,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


def checked_policy(policy: Any, study: Study) -> Policy:
    """Return the rule, or refuse what is none for this study."""
    rule = Policy.of(policy)
    rule._check(study)
    return rule


@silence()
def answer_policy(session: BaseSession, question: Question, rule: Policy, cost: float) -> PolicyValue:
    """Return the value of a checked rule."""
    session.admit(question.uses(session.study, "policy_value"))
    fitted = () if rule.conditions is not None else (Caveat.FITTED_TO_SAME_ROWS,)
    said = {"policy": rule._described(question.request_id), "cost": cost}
    if question.unit is not Unit.RECORD:

        def made(found: Facts) -> Facts:
            public = CellEffects(found.pop("groups"), cost, question.unit is Unit.TREATMENT_AND_OUTCOME)
            found["not_covered"] = (*found["not_covered"], *fitted)
            return Facts(_public(found), **gains_of_rule(public, question.level), policy=rule.name, cost=cost)

        session.attach(f"policy_value with protects={question.unit.value!r}")
        codes = rule.decide(PublicData(session, question.unit).columns.shown()).astype(np.int64)
        shape = Shape(
            "policy_value", PolicyValue, said, made, every=True, among=WhichGroups.TREATED_AND_OTHERS
        )
        return answer_cells(session, question, codes, ("not treated", "treated"), shape)
    session.attach_batches()
    refuse_few_clusters(
        session.study, "policy_value", question.method, PublicData(session, question.unit).rows
    )
    rows = RuleOfRows(
        name=rule.name,
        places=RulePlaces(rule.decide, rule._sequential),
        constant=rule._constant(session.study),
        cost=cost,
        fitted=fitted,
        remarks=rule.remarks,
    )
    return runs(partial(record_policy, rule=rows, description=said))(session, question)


def _public(found: Facts) -> Facts:
    """Return the facts of effects of groups without those that name groups."""
    return Facts({name: value for name, value in found.items() if name not in ("by", "left_out", "groups")})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetingCurveArguments(Arguments[TargetingCurve]):
    """The arguments of `targeting_curve` beside data and study, checked."""

    name: ClassVar[str] = "targeting_curve"
    units: ClassVar[tuple[Unit, ...]] = tuple(Unit)
    model: EffectModel
    bins: int = 10
    thresholds: Sequence[float] | None = None
    cost: Number = 0
    method: PolicyMethod = "auto"
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None

    def checked(self, study: Study) -> Asked[TargetingCurve]:
        """Return the checked question; nothing here looks at data or budget."""
        question = self.question(self.method, None, self.settings)
        refuse_unranked(study, question)
        ranking = Ranking.of(study, self.model, self.bins, self.thresholds, self.cost)
        return Asked(question.budget, partial(answer_curve, question=question, ranking=ranking))


@asks
def targeting_curve(
    data: object,
    study: object,
    declared: object = None,  # noqa: ARG001 (read by `asks`)
    *,
    model: EffectModel,
    protects: Protects,
    epsilon: Number,
    delta: Number = 0,
    method: PolicyMethod = "auto",
    level: float = 0.95,
    bins: int = 10,
    thresholds: Sequence[float] | None = None,
    cost: Number = 0,
    settings: DifferenceInMeans | Groups | Matching | Weighting | None = None,
    ledger: str | Path | Ledger | None = None,
    dataset: str | None = None,
    request_id: str | None = None,
    noise: BitSource | None = None,
) -> TargetingCurve:
    """Estimate what treating the people whom a model ranks highest gains, for a ladder of shares.

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
    model : CateModel or object with effect(X)
        The model that ranks people; it must be public or released. With a `request_id` a model of your own
        has an attribute `name`, which stands for it in the ledger.
    protects : {"outcome", "treatment and outcome", "record"}
        What is private. "outcome": outcomes alone; covariates and treatments are public. "treatment and
        outcome": treatments and outcomes; covariates are public. "record": everything about a person.
    epsilon : number or str
        Privacy loss to spend on the whole curve, read exactly: 0.1 is one tenth, ``"1/3"`` one third.
        Positive.
    delta : number, default 0
        0 for pure differential privacy. A small positive number, below one over the number of people
        (1e-6), allows Gaussian noise.
    method : str, default "auto"
        Estimator. With records private: "scores" (trials) or "adjusted" (for covariates). With outcomes
        private: "difference_in_means", "weighting" or "matching". With treatments and outcomes private:
        "adjusted".
    level : float, default 0.95
        Confidence level of intervals and band, between 0 and 1; the privacy noise is included.
    bins : int, default 10
        Parts of the ranking, of equal size. With records private their edges are paid for from the
        budget.
    thresholds : sequence of float, optional
        Public thresholds of the score in place of `bins`; they cost nothing.
    cost : number, default 0
        Cost of treating one person, in units of the outcome.
    settings : settings of the method, optional
        With records private `cv.settings.Groups`; with outcomes private
        `cv.settings.DifferenceInMeans`, `Weighting` or `Matching`.
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
    TargetingCurve
        The gain at every share, with intervals and a simultaneous band, the area under the curve
        (AUTOC) and Qini coefficient.

    Raises
    ------
    CounterveilError
        Before anything is spent: arguments (CV-P), study (CV-S), data (CV-D), ledger (CV-L) or budget
        (CV-B).

    See Also
    --------
    policy_value : The gain of one rule.
    cate : A model to rank by.

    Notes
    -----
    With s(x) the score and q a share, the gain is E[(Y(1) - Y(0) - c) 1{s(X) >= t_q}], where a share q
    of people have scores of t_q or more. AUTOC and Qini are areas under it [1]_.

    References
    ----------
    .. [1] Yadlowsky, S., Fleming, S., Shah, N., Brunskill, E. and Wager, S. (2025). Evaluating treatment
       prioritization rules via rank-weighted average treatment effects. Journal of the American
       Statistical Association 120, 38-51.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import counterveil as cv
    >>> data = cv.datasets.synth(n=500, covariates=2)
    >>> model = SimpleNamespace(effect=lambda people: people["x1"])
    >>> curve = cv.targeting_curve(
    ...     data.frame, data.study, model=model, bins=4, protects="outcome", epsilon=4,
    ...     noise=cv.SeededNoise(2)
    ... )
    >>> len(curve.shares)
    4
    """
    arguments = TargetingCurveArguments(
        model=model,
        protects=protects,
        epsilon=epsilon,
        delta=delta,
        method=method,
        level=level,
        bins=bins,
        thresholds=thresholds,
        cost=cost,
        settings=settings,
        ledger=ledger,
        dataset=dataset,
        request_id=request_id,
        noise=noise,
    )
    return ask_once(arguments, data, study)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Who comes first, where the score is cut, and what a treatment costs; all of it public."""

    model: EffectModel
    bins: int
    cuts: tuple[float, ...] | None
    cost: float

    @classmethod
    def of(
        cls,
        study: Study,
        model: EffectModel,
        bins: int,
        thresholds: Sequence[float] | None,
        cost: Number,
    ) -> Ranking:
        """Return the ranking, or the refusal of its first argument that is out of range."""
        cuts = None if thresholds is None else checked_thresholds(thresholds)
        parts = checked_bins(bins)
        _check_model(model, study)
        return cls(model, parts, cuts, checked_cost(cost))


@silence()
def answer_curve(session: BaseSession, question: Question, ranking: Ranking) -> TargetingCurve:
    """Return the curve of a checked question."""
    session.admit(question.uses(session.study, "targeting_curve"))
    model, cuts, bins, cost = ranking.model, ranking.cuts, ranking.bins, ranking.cost
    said = {
        "model": _described_model(model, question.request_id),
        "cost": cost,
        "thresholds": cuts,
        "bins": bins,
    }
    if question.unit is not Unit.RECORD:
        return _public_curve(session, question, ranking, said)
    session.attach_batches()
    refuse_few_clusters(
        session.study, "targeting_curve", question.method, PublicData(session, question.unit).rows
    )
    rows = RankedRows(
        numbers=RowNumbers(partial(effects_at, model), not reads_rows_alone(model)),
        edges=public_grid(model, session.study) if cuts is None else np.array(cuts),
        bins=bins if cuts is None else None,
        cost=cost,
        remarks=model_remarks(model),
    )
    return runs(partial(record_curve, ranking=rows, description=said))(session, question)


def _public_curve(
    session: BaseSession, question: Question, ranking: Ranking, said: Mapping[str, Any]
) -> TargetingCurve:
    """Return the curve where covariates are public, and so are scores and their quantiles."""
    session.attach(f"targeting_curve with protects={question.unit.value!r}")
    scores = effects_at(ranking.model, PublicData(session, question.unit).columns.shown())
    if ranking.cuts is None:
        parts = np.arange(1, ranking.bins) / ranking.bins
        at = np.unique(np.quantile(scores, parts, method="higher"))
        at = at[at > scores.min()]
    else:
        at = np.array(ranking.cuts)

    def made(found: Facts) -> Facts:
        together = question.unit is Unit.TREATMENT_AND_OUTCOME
        public = CellEffects(found.pop("groups"), ranking.cost, together)
        found["not_covered"] = (*found["not_covered"], Caveat.FITTED_TO_SAME_ROWS)
        return Facts(_public(found), **points_of_curve(public, at, question.level), cost=ranking.cost)

    shape = Shape(
        "targeting_curve", TargetingCurve, said, made, every=True, among=WhichGroups.PARTS_OF_RANKING
    )
    codes = np.searchsorted(at, scores, "right").astype(np.int64)
    return answer_cells(session, question, codes, [f"cell {k}" for k in range(len(at) + 1)], shape)


def _check_model(model: EffectModel, study: Study) -> None:
    if not hasattr(model, "effect") or not fits(model, study):
        raise refusal("CV-P548", kind=type(model).__name__)
