"""A study: what is declared of columns, as arguments, formulas, dictionaries, JSON and TOML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import wraps
from inspect import Parameter, signature
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from counterveil.bounded_reading import UnreadableError
from counterveil.bounded_reading import read_toml as read_tables
from counterveil.data import outcomes as units
from counterveil.data.cells import nearest
from counterveil.data.codebooks import ENDINGS, read_codebook
from counterveil.data.domains import (
    Bounds,
    CellIndex,
    Declared,
    Domain,
    Drop,
    Fill,
    Label,
    LabelIndex,
    MissingRule,
    Range,
    arm_labels,
    as_domain,
    checked_label,
    domain_from,
    ends_of,
    first_confusable,
    index_of,
    interval,
    is_name,
    listed,
    plain_ends,
    plain_number,
)
from counterveil.data.effect_formula import EffectFormula
from counterveil.data.outcomes import Before, Cluster, Denominator, Person, Role, Several, TimeToEvent, Where
from counterveil.errors import CounterveilError, ParameterError, refusal, shown
from counterveil.privacy import Number, Unit, exact, show

KNOWN_KEYS = (
    "treatment", "outcome", "outcome_range", "treated", "control", "randomised", "treated_share", "score", "arms",
    "reference", "covariates", "missing", "person", *Before.KEYS, *Denominator.KEYS, *TimeToEvent.KEYS,
    *Several.KEYS, "where", "others", "estimated", "cluster",
)  # fmt: skip
_LONGEST_PATH = 4096
# What a draft writes where people have to decide.
OPEN = "?"
_OPEN_KEYS = (
    "treatment", "treated", "control", "reference", "outcome", "outcome_range", "horizon", "randomised", "person",
    "covariates",
)  # fmt: skip
# What a study file says beside the study: columns that play no part, for those who read it.
_BESIDE = ("ignored",)


def study_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `Study` that a document declares, or raise CV-S013."""
    if not isinstance(document, Mapping):
        raise _invalid("a table of declarations", type(document).__name__, "pass a dictionary")
    document = {key: value for key, value in document.items() if key not in _BESIDE}
    left_open = len(open_places(document))
    if left_open:
        raise refusal("CV-S120", open=OPEN, count=left_open)
    for key in document:
        if key not in KNOWN_KEYS:
            raise _invalid("keys of a study", shown(key), nearest(key, KNOWN_KEYS, "a study"))
    for key in ("treatment", "outcome"):
        if key not in document and not (key == "outcome" and "outcomes" in document):
            raise _invalid(f"the key {key!r}", "it is missing", f"add {key} = ...")
    tables = ("covariates", "missing", "person", "cluster")
    arguments = {key: value for key, value in document.items() if key not in tables}
    arguments |= _unit_arguments(document)
    if isinstance(document.get("arms"), Mapping):
        arguments["arms"] = domain_from("arms", document["arms"])
    covariates = document.get("covariates", {})
    if not isinstance(covariates, Mapping):
        raise _invalid("a table of covariates", shown(covariates), "write a [covariates] table")
    arguments["covariates"] = {name: domain_from(name, value) for name, value in covariates.items()}
    missing = document.get("missing", {})
    if isinstance(missing, Mapping) and "fill" not in missing:
        arguments["missing"] = {name: _rule_from(name, value) for name, value in missing.items()}
    else:
        arguments["missing"] = _rule_from("missing", missing)
    return arguments


def open_places(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return where a document holds an open question: a key, a key of a table, or a covariate and perhaps its kind."""
    found: list[tuple[str, ...]] = [(key,) for key in _OPEN_KEYS if _says(document.get(key), OPEN)]
    for key in ("person", "outcomes"):
        table = document.get(key)
        told = table.items() if isinstance(table, Mapping) else ()
        found += [(key, str(name)) for name, value in told if _says(value, OPEN)]
    covariates = document.get("covariates")
    for name, value in covariates.items() if isinstance(covariates, Mapping) else ():
        if _says(value, OPEN):
            found.append(("covariates", str(name)))
        elif isinstance(value, Mapping):
            found += [
                ("covariates", str(name), str(kind)) for kind, told in value.items() if _says(told, OPEN)
            ]
    return found


def _says(value: object, word: str) -> bool:
    """Return whether a value is this word; an array, compared with it, has no one truth value."""
    return isinstance(value, str) and value == word


# What the tables [person] and [cluster] of a study file declare, as arguments of `Study`.
_PERSON = {
    "column": "person",
    "rules": "per_person",
    "order": "order",
    "max_rows_per_person": "max_rows_per_person",
}
_CLUSTER = {"column": "cluster", "protected": "protects_cluster", "assigned": "assigned_by_cluster"}
_WHOLE = _CLUSTER | {"rules": "per_cluster", "order": "order", "max_rows_per_person": "max_rows_per_person"}


def _unit_arguments(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the tables of people and clusters declare; a bare name is that of the column."""
    found: dict[str, Any] = {}
    for key, expected, example in (
        ("person", f"a table [person] of {', '.join(_PERSON)}", "patient_id"),
        (
            "cluster",
            "a table [cluster] of column, protected, assigned; of rules, order, max_rows_per_person if it is protected",
            "school",
        ),
    ):
        table = document.get(key)
        if table is None:
            continue
        told = {"column": table} if isinstance(table, str) else table
        whole = isinstance(told, Mapping) and told.get("protected") is True
        names = _PERSON if key == "person" else _WHOLE if whole else _CLUSTER
        if not isinstance(told, Mapping) or "column" not in told or not set(told) <= set(names):
            raise _invalid(expected, shown(table), f'write [{key}] and column = "{example}"')
        found |= {names[each]: value for each, value in told.items()}
    return found


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the contents of a TOML file, or raise CV-S014."""
    try:
        return read_tables(path)
    except UnreadableError as error:
        raise refusal(
            "CV-S014b", name=Path(path).name if isinstance(path, str | PathLike) else path, error=error
        ) from None


def read_study(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the declarations of a study file, or of one of the studies in it where the path ends in #NAME."""
    place, name = _place_and_name(path)
    return named_study(read_toml(place), name)


def named_study(document: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return the declarations of one of the studies of a document, or of its only one, or raise CV-S125."""
    known = _studies(document)
    if name is None and not known:
        return dict(document)
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name not in known:
        listed = ", ".join(map(repr, known)) or "no tables [study.NAME]"
        raise refusal(
            "CV-S125",
            problem="the study file has no study of this name"
            if name is not None
            else "no study of the file was named",
            listed=listed,
            got="no name" if name is None else shown(name),
        )
    return _merged({key: value for key, value in document.items() if key != "study"}, known[name])


def names_in(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the studies of a document, none where it holds one study without a name."""
    return tuple(_studies(document))


def _place_and_name(path: Any) -> tuple[Any, str | None]:
    """Return the file and the name of a study in it; a file whose own name has a # in it comes first."""
    if not isinstance(path, str | PathLike):
        return path, None
    text = str(path)
    place, sign, name = text.rpartition("#")
    if not sign or not place or not name or "\0" in text or len(text) > _LONGEST_PATH or Path(text).exists():
        return path, None
    return place, name


def _studies(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    tables = document.get("study", {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise _invalid("tables [study.NAME]", "another `study`", "write [study.NAME] above each study")
    return dict(tables)


def _merged(common: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's own declarations with those that all studies of the file share; its own come first."""
    found = common | dict(own)
    for key in ("covariates", "missing"):
        both = [table for table in (common.get(key), own.get(key)) if table is not None]
        if len(both) == 2 and all(isinstance(table, Mapping) and "fill" not in table for table in both):
            found[key] = both[0] | both[1]
    # Covariates of the file that a study leaves out.
    left_out = found.pop("without", [])
    if not isinstance(left_out, list) or not all(isinstance(name, str) for name in left_out):
        raise _invalid("without: a list of covariates", shown(left_out), 'write without = ["age"]')
    roles = {*left_out}
    for key in ("treatment", "outcome", "before", "denominator"):
        named = found.get(key)
        roles |= {name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)}
    for key in ("covariates", "missing"):
        if isinstance(found.get(key), Mapping) and key not in own:
            found[key] = {name: value for name, value in found[key].items() if name not in roles}
    return found


def to_toml(document: Mapping[str, Any]) -> str:
    """Return the TOML text of a dictionary made of scalars, lists and tables of inline tables."""
    scalars = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in scalars.items()]
    for key, table in document.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{toml_key(key)}]"]
            lines += [f"{toml_key(name)} = {toml_value(value)}" for name, value in table.items()]
    return "\n".join(lines) + "\n"


def _rule_from(name: str, value: Any) -> MissingRule:
    if _says(value, "drop"):
        return Drop()
    if isinstance(value, Mapping) and set(value) == {"fill"}:
        return Fill(value["fill"])
    raise _invalid(f"a rule for {name!r}", shown(value), 'write "drop" or { fill = 0 }')


def toml_key(key: str) -> str:
    """Return a key as TOML writes it."""
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else toml_value(key)


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    # JSON's texts, numbers and truth values are TOML's, except for the raw DEL character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# Arguments by the names that other packages give them, and what is written here in their place.


P = ParamSpec("P")
R = TypeVar("R")

# Another spelling of the same argument: taken as it is.
_SPELLINGS = {"randomized": "randomised"}
_ROLES = 'cv.Study("treated", "score", (0, 10), {"age": (18, 90)})'
_EVENT = 'cv.Study("treated", outcome="years", event="died", horizon=5)'
_LEARNERS = 'method="sample_and_aggregate", settings=cv.settings.Folds(learner=cv.settings.ModelPair(...))'
_NEIGHBOURS = 'method="matching", settings=cv.settings.Matching(neighbours=5)'
_SCORES = 'method="weighting", trim=0.1'
_REGRESS = 'cv.moments(data, study, protects="record", epsilon=1).regress("score ~ treated + age")'
_FORMULA = 'cv.ate("score ~ treated | age", data, study, protects="outcome", epsilon=1)'
ELSEWHERE = {
    # MatchIt, WeightIt
    **dict.fromkeys(("ratio", "replace", "k2k", "neighbors", "n_neighbors"), _NEIGHBOURS),
    **dict.fromkeys(("caliper", "distance", "discard", "link", "stabilize", "ps"), _SCORES),
    **dict.fromkeys(("exact", "cutpoints", "subclass"), 'method="stratified"'),
    "focal": 'estimand="ATT"',
    # DoubleML, EconML
    **dict.fromkeys(("ml_g", "ml_l", "ml_m", "ml_r", "model_y", "model_t", "model_final"), _LEARNERS),
    **dict.fromkeys(
        ("n_folds", "n_rep"), 'method="sample_and_aggregate", settings=cv.settings.Folds(folds=20)'
    ),
    **dict.fromkeys(("y_col", "d_cols", "x_cols", "Y", "T", "X", "W", "treat", "covs"), _ROLES),
    **dict.fromkeys(("treatment", "outcome", "covariates"), _ROLES),
    **dict.fromkeys(("randomised", "randomized"), 'cv.Study("treated", "score", (0, 10), randomised=True)'),
    **dict.fromkeys(("score", "dml_procedure"), 'method="doubly_robust"'),
    # statsmodels, pyfixest
    **dict.fromkeys(("formula", "fml"), _FORMULA),
    **dict.fromkeys(("cov_type", "cov_kwds", "vcov", "fixef", "endog", "exog", "instrument"), _REGRESS),
    # lifelines
    **dict.fromkeys(("duration_col", "event_col", "durations", "event_observed", "timeline"), _EVENT),
    # all of them
    **dict.fromkeys(("alpha", "conf_level", "conf_int", "confidence", "ci"), "level=0.95"),
    **dict.fromkeys(("seed", "random_state", "rng"), "noise=cv.SeededNoise(1)  # simulated: protects nobody"),
    **dict.fromkeys(("eps", "privacy_budget", "budget"), "epsilon=1"),
    **dict.fromkeys(("ranges", "codebook", "bounds"), _FORMULA),
}


def known_arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Return a function that refuses arguments it does not have, or lacks, with CV-P028."""
    own = signature(call).parameters

    @wraps(call)
    def checked(*args: P.args, **named: P.kwargs) -> R:
        given: Any = dict(named)
        for other, name in _SPELLINGS.items():
            if other in given and name in own and name not in given:
                given[name] = given.pop(other)
        refuse_arguments(call.__qualname__.removesuffix(".__init__"), own, given, len(args))
        return call(*args, **given)

    return checked


def refuse_arguments(
    name: str, own: Mapping[str, Parameter], given: Mapping[str, Any], positional: int = 0
) -> None:
    """Raise CV-P028 for the first argument that is not among a function's own, or that it lacks."""
    for key in given:
        if key not in own and key in ELSEWHERE:
            raise refusal("CV-P028", name=name, key=key, ours=ELSEWHERE[key])
        if key not in own:
            raise refusal(
                "CV-P028b",
                name=name,
                key=key,
                fix=nearest(key, [each for each in own if each != "self"], name),
            )
    needed = [key for place, key in enumerate(own) if place >= positional and key not in given]
    lacking = [f"{key}=" for key in needed if own[key].default is Parameter.empty]
    if lacking:
        raise refusal("CV-P028c", name=name, lacking=", ".join(lacking))


# The study: which column plays which role, and every bound and label; all public.
#
# It is made of parts that know nothing of it, each with its checks, its form in a study file and what it makes
# public: domains of covariates, rules for missing values, people and clusters, outcomes made of several numbers, a
# condition on rows.


Made = TypeVar("Made")
TREATED = 1  # the label that means treated unless the study says otherwise
# The fewest rows, or people with several, of an arm that data are attached with.
SMALLEST_ARM = 2
# Squares and cubes of numbers up to here, and sums of them over rows, are finite doubles.
_LARGEST_COVARIATE = Fraction(10) ** 100


@dataclass(frozen=True, slots=True, init=False)
class Study:
    """Roles, bounds, labels and missing rules; nothing in it is private.

    A study of two arms has `treated` and perhaps `control`; one of several has `arms`, the reference first; of a
    dose that is cut at public points, `doses`, these are the middles of the cells.
    `person` says whose a row is and how the rows of a person become one. `cluster` names groups of people
    whose outcomes depend on each other. With `before`, the outcome is everyone's own change, and
    `outcome_range` its range. With `denominator`, arms are compared by
    sums of the outcome over sums of it. With `event`, the outcome is the time to it, or to where follow-up ended;
    `causes` names competing events. With `several`, everyone has several outcomes, of which `outcome` is the first.
    `score` names the covariate that is each row's probability of treatment by design. `where` says which rows
    belong to the study. `estimated` names the columns whose range or labels were released from these data,
    and their cost.
    """

    treatment: str
    outcome: str
    outcome_range: Bounds
    covariates: Mapping[str, Domain]
    treated: Label | None
    control: Label | None
    missing: Mapping[str, MissingRule]
    randomised: bool | None
    treated_share: Fraction | None
    score: str | None
    arms: tuple[Label, ...] | None
    doses: Range | None = field(init=False)
    person: Person | None
    cluster: Cluster | None
    before: Before | None
    denominator: Denominator | None
    event: TimeToEvent | None
    several: Several | None
    where: Where | None
    estimated: Mapping[str, str]
    # What follows from the declarations and was asked for before: every question asks for the same.
    _known: dict[Hashable, object] | None = field(init=False, repr=False, compare=False)

    @known_arguments
    def __init__(
        self,
        treatment: str,
        outcome: str | None = None,
        outcome_range: tuple[Number, Number] | None = None,
        covariates: Mapping[str, Declared] | None = None,
        treated: Label = TREATED,
        control: Label | None = None,
        missing: Mapping[str, MissingRule] | MissingRule | None = None,
        randomised: bool | None = None,
        treated_share: Number | None = None,
        score: str | None = None,
        arms: tuple[Label, ...] | Range | None = None,
        reference: Label | None = None,
        person: str | None = None,
        per_person: Mapping[str, str] | None = None,
        order: str | None = None,
        max_rows_per_person: int | None = None,
        before: str | Sequence[Label] | None = None,
        before_range: tuple[Number, Number] | None = None,
        change_range: tuple[Number, Number] | None = None,
        time: str | None = None,
        after: Sequence[Label] | Label | None = None,
        denominator: str | None = None,
        denominator_range: tuple[Number, Number] | None = None,
        event: str | None = None,
        horizon: Number | None = None,
        grid: int | Sequence[Number] | None = None,
        causes: Sequence[str] | None = None,
        outcomes: Mapping[str, tuple[Number, Number]] | None = None,
        baseline: Mapping[str, str] | None = None,
        several: Several | None = None,
        where: str | Where | None = None,
        others: str | None = None,
        estimated: Mapping[str, str] | None = None,
        cluster: str | None = None,
        protects_cluster: bool = False,
        assigned_by_cluster: bool = False,
        per_cluster: Mapping[str, str] | None = None,
    ) -> None:
        self._put(_known=None, denominator=None)  # nothing is kept of a study that is not whole
        alone = {
            "outcome": outcome,
            "outcome_range": outcome_range,
            "before": before,
            "denominator": denominator,
        }
        self._put(several=Several.declared(outcomes, baseline, several, alone))
        if self.several is not None:
            outcome, outcome_range = self.several.names[0], self.several.ranges[0][1]
        self._put(treatment=_column_name(treatment, "treatment"), outcome=_column_name(outcome, "outcome"))
        changes = (before, before_range, change_range, time, after)
        ratio = (denominator, denominator_range)
        beside: dict[str, object] = dict(
            zip((*Before.KEYS, *Denominator.KEYS), (*changes, *ratio), strict=True)
        )
        beside |= {
            "outcome_range": outcome_range,
            "arms": arms,
            "reference": reference,
            "protects_cluster": protects_cluster or None,
        }
        self._put(event=TimeToEvent.declared(event, horizon, grid, causes, beside))
        ends = outcome_range if self.event is None else (0, self.event.horizon)
        self._put(outcome_range=_outcome_bounds(ends, self.outcome))
        self._put(covariates=MappingProxyType(_covariates(covariates)))
        self._put(before=Before.declared(*changes, person, self.outcome_range))
        self._put(**_arms(treated, control, treated_share, arms, reference))
        self._put(denominator=Denominator.declared(*ratio, self.arms is None, self.before))
        _one_role_each(self.columns)
        _two_arms(self.treated, self.control)
        self._put(missing=MappingProxyType(_rules(missing, self)), randomised=_truth(randomised))
        self._put(treated_share=_share(treated_share, self.randomised))
        self._put(score=_score(score, self))
        clusters = (cluster, protects_cluster, assigned_by_cluster, per_cluster)
        self._put(cluster=Cluster.declared(*clusters, person, self.columns))
        rows = (_order(order, time), max_rows_per_person, self._roles)
        if self.cluster is not None and self.cluster.whole:
            # Rules for people have no place beside those for clusters: CV-S016.
            Person.declared(person, per_person, None, None, self._roles)
            self._put(person=Person.declared(cluster, per_cluster, *rows, whole_cluster=True))
        else:
            self._put(person=Person.declared(person, per_person, *rows))
        if self.before is not None:
            self._put(outcome_range=self.before.bounds)
        self._put(where=Where.declared(where, others, self.treatment, self.treatment_labels))
        _not_by_outcomes(self.where, self.outcomes)
        self._put(estimated=MappingProxyType(_estimated(estimated, self.columns)), _known={})

    def _put(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def once(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """Return what `make` returned when this study was asked for it first."""
        if self._known is None:
            return make()
        if name not in self._known:
            self._known[name] = make()
        return cast("Made", self._known[name])

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the columns that outcomes are made of: the outcomes, what was before, divides or ends them."""
        if self.several is not None:
            return self.several.columns
        earlier = () if self.before is None else self.before.columns
        beside = () if self.denominator is None else (self.denominator.column,)
        return (self.outcome, *earlier, *beside, *(() if self.event is None else (self.event.column,)))

    @property
    def outcome_name(self) -> str:
        """What the effect is on: the outcome, its change, or a ratio."""
        if self.denominator is not None:
            return f"{self.outcome} per {self.denominator.column}"
        if self.event is not None:
            return f"time to {self.event.column}"
        if self.several is not None:
            more = len(self.several.names) - 1
            return f"{self.outcome} and {more} more outcome{'' if more == 1 else 's'}"
        if self.before is None:
            return self.outcome
        return f"change in {self.outcome} since {self.before.since()}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read: treatment, outcomes, covariates."""
        return self.once("columns", lambda: (self.treatment, *self.outcomes, *self.covariates))

    @property
    def measured(self) -> int:
        """How many private numbers a row has next to its outcome, as `Table.measures` holds them."""
        if self.event is not None:
            return 0
        if self.denominator is not None:
            return 1
        if self.several is not None:
            return len(self.several.columns) - 1
        return 0 if self.before is None else len(self.before.labels(self.outcome))

    @property
    def _roles(self) -> dict[str, Role]:
        """What each column is to people whose rows become one."""
        main = (self.outcome,) if self.several is None else self.several.names
        outcome = units.OUTCOME if self.denominator is None else units.PART_OF_RATIO
        found = {self.treatment: units.TREATMENT if self.arms is None else units.ONE_OF_ARMS}
        for name in self.outcomes:
            plain = units.EARLIER if self.denominator is None and name not in main else outcome
            found[name] = plain if self.event is None else units.FOLLOW_UP
        for name, domain in self.covariates.items():
            found[name] = units.NUMBER if isinstance(domain, Range) else units.LABELS
        return found

    @property
    def unconfounded(self) -> bool:
        """Whether the design says who is treated how likely: a trial, or a declared score."""
        return self.randomised is True or self.score is not None

    @property
    def clustered(self) -> bool:
        """Whether rows, or people, of one cluster depend on each other; not where each cluster becomes one row."""
        return self.cluster is not None and not self.cluster.whole

    @property
    def cluster_columns(self) -> tuple[str, ...]:
        """The column that names clusters of several rows, if there is one."""
        return (self.cluster.column,) if self.cluster is not None and self.clustered else ()

    @property
    def unit_columns(self) -> dict[str, Any]:
        """The column of the people or clusters that are protected with all their rows, as an access policy names it."""
        if self.person is None:
            return {}
        return {"cluster" if self.person.whole_cluster else "person": self.person.column}

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The same, and the columns of people, their order, their clusters and of the condition on rows."""
        return self.once("read columns", self._read_columns)

    def _read_columns(self) -> tuple[str, ...]:
        beside = () if self.person is None else self.person.columns
        subset = () if self.where is None else self.where.columns
        return tuple(dict.fromkeys((*self.columns, *self.cluster_columns, *beside, *subset)))

    @property
    def subsets(self) -> tuple[str, ...]:
        """By what rows are chosen, in words: a condition, and the periods that a person needs rows of."""
        condition = () if self.where is None else (self.where.text,)
        return condition if self.before is None else (*condition, *self.before.subsets)

    @property
    def free_to_attach(self) -> bool:
        """Whether attaching tells no more than that all rows fit: none are chosen, nor people or clusters named."""
        return not self.subsets and not self.clustered and self.person is None

    def public_columns(self, protects: str) -> tuple[str, ...]:
        """Return the names of the columns that are public where `protects`, such as "outcome", is protected."""
        unit = Unit.parse(protects)
        private = self.outcomes if unit.treatment_public else (self.treatment, *self.outcomes)
        return tuple(name for name in self.read_columns if unit.covariates_public and name not in private)

    @property
    def reference(self) -> Label | None:
        """The arm that the others are compared with; None in a study of two arms."""
        return None if self.arms is None else self.arms[0]

    @property
    def treatment_labels(self) -> tuple[Label, ...]:
        """The declared labels of the treatment: treated and control (where given), or all arms."""
        if self.arms is not None:
            return self.arms
        return tuple(label for label in (self.treated, self.control) if label is not None)

    @property
    def treatment_index(self) -> LabelIndex:
        """The labels that the treatment is compared with, or the cells that a dose lies in."""
        labels = self.treatment_labels
        return index_of(labels) if self.doses is None else CellIndex(labels, self.doses)

    def label_index(self, name: str) -> LabelIndex | None:
        """Return the labels that a column is compared with, None for a column of numbers."""
        if name == self.treatment:
            return self.treatment_index
        domain = self.covariates.get(name)
        return None if domain is None or isinstance(domain, Range) else index_of(domain.labels)

    @property
    def missing_kinds(self) -> dict[str, str]:
        """The rule for missing values, by column: "drop" or "fill"."""
        return {name: "drop" if isinstance(rule, Drop) else "fill" for name, rule in self.missing.items()}

    @property
    def outcome_bounds(self) -> Range:
        """The public bounds of the outcome."""
        return self.once("bounds", lambda: Range(*self.outcome_range))

    def measured_bounds(self, name: str) -> Range | None:
        """Return the declared bounds of a column that outcomes are made of, None for other columns."""
        if name not in self.outcomes:
            return None
        if self.several is not None:
            return self.several.bounds(name)
        if self.denominator is not None and name == self.denominator.column:
            return Range(*self.denominator.range)
        if self.event is not None and name == self.event.column:
            return Range(0, self.event.kinds)
        if self.before is None:
            return self.outcome_bounds
        return Range(*(self.before.outcome_range if name == self.outcome else self.before.range))

    def changed(self, **fields_of: Any) -> Study:
        """Return the study with some attributes replaced as they are, for parts of a table and moved outcomes."""
        found = object.__new__(Study)
        object.__setattr__(found, "_known", {})
        for each in fields(self):
            if each.name != "_known":
                object.__setattr__(found, each.name, fields_of.get(each.name, getattr(self, each.name)))
        return found

    def public_facts(self, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
        """Return what a guarantee that protects `unit` takes as public, one sentence per fact.

        An event study's is relative to its `reference`.
        """
        if reference is not None:
            return _public_facts(self, unit, reference)
        return self.once(("facts", unit), lambda: _public_facts(self, unit))

    @property
    def unit_uses(self) -> dict[str, Any]:
        """What a ledger knows about people and clusters, as arguments of `Uses`."""
        whole = self.cluster is not None and self.cluster.whole
        return {
            "person": None if self.person is None or whole else self.person.column,
            "row_order": None if self.person is None else self.person.order,
            "cluster": None if self.cluster is None else self.cluster.column,
            "whole_cluster": whole,
            "assigned_cluster": self.cluster is not None and self.cluster.assigned,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a JSON-ready dictionary; `from_dict` reads it back."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """Return the study in a dictionary, as `to_dict` writes it."""
        return cls(**study_arguments(document))

    def to_toml(self) -> str:
        """Return the text of a study file."""
        return to_toml(self.to_dict())

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Study:
        """Return the study declared in a TOML file; "study.toml#NAME" names one of several in a file."""
        return cls.from_dict(read_study(path))

    @classmethod
    def from_formula(cls, formula: str, declared: object, **more: Any) -> Study:
        """Return the study of a formula, "outcome ~ treatment | covariates"; "| ." takes all covariates.

        An outcome Surv(days, death) is a time to an event; the range of the time ends at the end of follow-up.

        Args:
            formula: which columns play which role.
            declared: a wider study, or a mapping from names to ranges and labels, such as
                {"score": (0, 10), "age": (18, 90), "sex": ["f", "m"]}; or the path of a study file or a codebook.
            more: further arguments of `Study`, beside a mapping or a codebook.
        """
        declared = read_declared(declared)
        if isinstance(declared, Study) and not more:
            return declared._chosen(formula)
        if not isinstance(declared, Mapping):
            raise refusal("CV-S150c", got=declared)
        names = [name for name in declared if isinstance(name, str)]
        chosen = EffectFormula.read(
            formula, names, lambda name: not isinstance(as_domain(name, declared[name]), Range), ranges=True
        )
        covariates = {name: as_domain(name, declared[name]) for name in chosen.covariates}
        outcome = as_domain(chosen.outcome, declared[chosen.outcome])
        ends = (outcome.lo, outcome.hi) if isinstance(outcome, Range) else (0, 1)
        if chosen.treatment in declared:
            arms = as_domain(chosen.treatment, declared[chosen.treatment])
            if isinstance(arms, Range) and arms.cuts:
                more = {"arms": arms} | more
            labels = () if isinstance(arms, Range) else arms.labels
            two = {"treated": labels[1], "control": labels[0]} if len(labels) == 2 else {}
            more = two | ({"arms": labels, "reference": labels[0]} if len(labels) > 2 else {}) | more
        if chosen.event is not None:
            more = {"event": chosen.event, "horizon": ends[1]} | more
            return cls(chosen.treatment, chosen.outcome, covariates=covariates, **more)
        return cls(chosen.treatment, chosen.outcome, ends, covariates, **more)

    def _chosen(self, formula: str) -> Study:
        """Return the part of this study that a formula names: one of its outcomes and some of its covariates."""
        own = (self.outcome,) if self.several is None else self.several.names
        chosen = EffectFormula.read(
            formula,
            (*own, *self.covariates),
            lambda name: name not in own and not isinstance(self.covariates[name], Range),
            ranges=False,
        )
        for role, name, known in (
            ("treatment", chosen.treatment, (self.treatment,)),
            ("outcome", chosen.outcome, own),
        ):
            if name not in known:
                raise refusal("CV-S150d", role=role, known=" or ".join(map(repr, known)), name=name)
        event = None if self.event is None else self.event.column
        if chosen.event not in (None, event):
            raise refusal(
                "CV-S150d", role="event", known="none" if event is None else repr(event), name=chosen.event
            )
        document = self.to_dict()
        gone = {*self.covariates, *(() if self.several is None else self.several.columns)}
        gone -= {chosen.outcome, *chosen.covariates}
        tables = [document, *(document[unit] for unit in ("person", "cluster") if unit in document)]
        for table in tables:
            for key in {"covariates", "missing", "bought", "rules"} & set(table):
                table[key] = {name: one for name, one in table[key].items() if name not in gone}
        if self.several is not None:
            document |= {
                "outcome": chosen.outcome,
                "outcome_range": plain_ends(dict(self.several.ranges)[chosen.outcome]),
            }
            document = {key: one for key, one in document.items() if key not in Several.KEYS}
        return Study.from_dict(document)

    def narrowed(self, where: str | None) -> Study:
        """Return the study of those of its rows for which another condition holds too."""
        if where is None:
            return self
        return Study.from_dict(self.to_dict() | {"where": Where.of(where).both(self.where).text})

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical form; equal studies have equal fingerprints."""
        return self.once("fingerprint", self._fingerprint)

    def _fingerprint(self) -> str:
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __str__(self) -> str:
        return self.to_toml()

    def __hash__(self) -> int:
        return hash((self.treatment, self.outcome, self.outcome_range, tuple(sorted(self.covariates))))

    def __reduce__(self) -> tuple[object, ...]:
        # Read-only mappings do not pickle; the declarations do.
        return (Study.from_dict, (self.to_dict(),))


def read_declared(declared: object) -> object:
    """Return what stands in a study file or in a codebook, where a path is given."""
    if not isinstance(declared, str | PathLike):
        return declared
    return read_codebook(declared) if Path(declared).suffix.lower() in ENDINGS else Study.from_toml(declared)


def _to_dict(study: Study) -> dict[str, Any]:
    """Return the declarations, leaving out what was not declared."""
    own = study.outcome_range if study.before is None else study.before.outcome_range
    document: dict[str, Any] = {"treatment": study.treatment, "outcome": study.outcome}
    document |= {"outcome_range": plain_ends(own)} if study.event is None else study.event.to_dict()
    for part in (study.before, study.denominator):
        document |= {} if part is None else part.to_dict()
    if study.several is not None:
        document = {"treatment": study.treatment} | study.several.to_dict()
    if study.arms is not None:
        arms = list(study.arms) if study.doses is None else study.doses.to_dict()
        document |= {"arms": arms, "reference": study.reference}
    else:
        document["treated"] = study.treated
    share = None if study.treated_share is None else plain_number(study.treated_share)
    more: dict[str, Any] = {"control": study.control, "randomised": study.randomised, "treated_share": share}
    more["score"] = study.score
    rows, time = None, None if study.before is None else study.before.time
    if study.person is not None:
        rows = study.person.to_dict(study._roles, time)
    more["person"] = None if study.cluster is not None and study.cluster.whole else rows
    if study.cluster is not None:
        more["cluster"] = study.cluster.to_dict() | ((rows or {}) if study.cluster.whole else {})
    more["where"] = None if study.where is None else study.where.text
    more["estimated"] = dict(study.estimated) or None
    document |= {name: value for name, value in more.items() if value is not None}
    document["covariates"] = {name: domain.to_dict() for name, domain in study.covariates.items()}
    document["missing"] = {name: rule.to_dict() for name, rule in study.missing.items()}
    return document


def _public_facts(study: Study, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
    """Return one sentence per public fact, from the declarations alone; `reference` is the period of an event study."""
    facts, several = ["the number of rows and their order"], "rows"
    if study.person is not None:
        facts = study.person.public_facts(unit)
        several = "clusters" if study.person.whole_cluster else "people"
    if study.cluster is not None and study.clustered:
        facts.append(study.cluster.public_fact(unit))
    facts += [_subset(text, unit, study.person is not None) for text in study.subsets]
    if unit.treatment_public:
        covariates = " and all covariates" if study.covariates else ""
        facts.append(f"every person's treatment {study.treatment!r}{covariates}: only {_protected(study)}")
    elif unit.covariates_public:
        taken = "who took part" + (", with all covariates" if study.covariates else "")
        facts.append(f"{taken}: the treatment {study.treatment!r} is protected, and {_protected(study)}")
    facts.append(_measured(study) if study.event is None else study.event.public_fact(study.outcome))
    if study.before is not None:
        rule = None if study.person is None else study.person.rules[study.outcome]
        facts.append(study.before.public_fact(study.outcome, rule, reference))
    if study.covariates:
        domains = [f"{name!r} {domain.words()}" for name, domain in study.covariates.items()]
        facts.append(
            f"the domains of the covariates, {listed(domains)}: stated beforehand; numbers outside are clamped"
        )
    if study.estimated:
        costs = [f"{name!r} ({cost})" for name, cost in study.estimated.items()]
        facts.append(
            f"of these ranges and labels, not stated beforehand but released from the data and charged apart: "
            f"{listed(costs)}"
        )
    facts.append(_labels(study))
    # Attaching refuses other rows: that data were attached tells as much.
    facts.append(
        f"that the rows fit the study and each arm of {study.treatment!r} has at least {SMALLEST_ARM} {several}: "
        "cells that cannot be read, labels that are not declared, missing values without a rule and smaller arms are "
        "refused when data are attached, and the guarantee compares data sets that are not refused"
    )
    facts += [rule.public_fact(name) for name, rule in study.missing.items()]
    if study.treated_share is not None:
        facts.append(f"the trial's design: each person treated with probability {show(study.treated_share)}")
    elif study.score is not None:
        facts.append(f"the design: each person treated with the probability {study.score!r}")
    elif study.randomised:
        facts.append("the trial's design: treatment was assigned at random")
    return tuple(facts)


def _protected(study: Study) -> str:
    """Return which columns are protected where all others are public."""
    names = listed([repr(name) for name in study.outcomes])
    if study.before is not None and study.before.time is not None:
        return f"the outcome {names} of all periods, before and after treatment, is protected"
    if len(study.outcomes) == 1:
        return f"the outcome {names} is protected"
    return f"{names} are protected" + (", before and after treatment" if study.before is not None else "")


def _measured(study: Study) -> str:
    """Return the columns that outcomes are made of, with their bounds."""
    found = {name: study.measured_bounds(name) for name in study.outcomes}
    said = listed([f"{name!r} {interval((each.lo, each.hi))}" for name, each in found.items() if each])
    if len(study.outcomes) == 1 and study.before is None:
        said = f"outcome {study.outcome!r}, {interval(study.outcome_range)}"
    return (
        f"the bounds of {said}: stated beforehand; "
        "values outside are clamped to the nearer bound, and values are rounded down to a public grid"
    )


def _subset(text: str, unit: Unit, people: bool) -> str:
    """Return what choosing rows makes public: who is chosen, and so the number of rows."""
    chosen = "which people have rows" if people else "which rows are those"
    said = f"{chosen} where {text}, and how many: the study is of these alone"
    if unit.covariates_public:
        return said
    return f"{said}; belonging to them is public by declaration and not protected, all else about a record is"


def _labels(study: Study) -> str:
    if study.arms is not None:
        if study.doses is not None:
            where = f"{study.doses.words()}; the reference is the cell around {study.reference!r}"
            return f"the cells of the dose {study.treatment!r}: {where}"
        others = listed([repr(label) for label in study.arms[1:]])
        return f"the labels of {study.treatment!r}: {others}, compared with the reference {study.reference!r}"
    other = "the only other label" if study.control is None else repr(study.control)
    return f"the labels of {study.treatment!r}: {study.treated!r} is treated, {other} is control"


def _column_name(name: object, role: str) -> str:
    if is_name(name):
        return name
    raise refusal("CV-S004", role=role, name=name)


def _outcome_bounds(outcome_range: object, outcome: str) -> Bounds:
    return ends_of(
        outcome_range,
        f"outcome {outcome!r}",
        lambda: refusal("CV-S001", outcome_range=outcome_range),
    )


def _arms(treated: object, control: object, share: object, arms: object, reference: object) -> dict[str, Any]:
    """Return the labels of the arms, by the attributes of a study."""
    label = checked_label(treated, "treated")
    two_arms = {"treated": None if label == TREATED else label, "control": control, "treated_share": share}
    several = arm_labels(arms, reference, two_arms)
    other = None if control is None else checked_label(control, "control")
    doses = arms if isinstance(arms, Range) else None
    return {"arms": several, "doses": doses, "treated": label if several is None else None, "control": other}


def _covariates(covariates: object) -> dict[str, Domain]:
    given = {} if covariates is None else covariates
    if not isinstance(given, Mapping):
        raise refusal("CV-S008", what="covariates", got=type(given).__name__)
    found = {_column_name(name, "covariate"): as_domain(name, domain) for name, domain in given.items()}
    for name, domain in found.items():
        if isinstance(domain, Range) and max(abs(domain.lo), abs(domain.hi)) > _LARGEST_COVARIATE:
            raise refusal("CV-S162", name=name, domain=domain)
    return found


def _one_role_each(columns: tuple[str, ...]) -> None:
    if len(set(columns)) == len(columns):
        return
    seen = set()
    for name in columns:
        if name in seen:
            raise refusal("CV-S005", name=name)
        seen.add(name)


def _two_arms(treated: Label | None, control: Label | None) -> None:
    if treated is not None and control is not None and first_confusable((treated, control)) is not None:
        raise refusal("CV-S007b", treated=treated, control=control)


def _not_by_outcomes(where: Where | None, outcomes: tuple[str, ...]) -> None:
    private = [name for name in outcomes if where is not None and name in where.columns]
    if private:
        raise refusal("CV-S123", private=private[0])


def _estimated(estimated: object, columns: tuple[str, ...]) -> dict[str, str]:
    given = {} if estimated is None else estimated
    if isinstance(given, Mapping) and all(
        name in columns and isinstance(cost, str) and cost for name, cost in given.items()
    ):
        return dict(given)
    raise refusal("CV-S127", estimated=estimated)


def _rules(missing: object, study: Study) -> dict[str, MissingRule]:
    if isinstance(missing, Fill | Drop):
        missing = dict.fromkeys(study.columns, missing)
    given = {} if missing is None else missing
    if not isinstance(given, Mapping):
        raise _no_rule("missing", type(given).__name__, "pass one rule, or one per column")
    columns = set(study.columns)
    for name, rule in given.items():
        if name not in columns:
            raise _no_rule("missing", f"a rule for {name!r}", nearest(name, study.columns, "the study"))
        if not isinstance(rule, Fill | Drop):
            raise _no_rule(
                f"column {name!r}", shown(rule), "write cv.drafting.Drop() or cv.drafting.Fill(value)"
            )
        if isinstance(rule, Fill):
            _check_fill(name, rule, study)
    return dict(given)


def _check_fill(name: str, rule: Fill, study: Study) -> None:
    domain = study.measured_bounds(name) or study.covariates.get(name)
    if isinstance(domain, Range):
        try:
            fits = domain.lo <= exact(rule.value, "Fill") <= domain.hi
        except ParameterError:
            fits = False
        allowed = f"a number in [{domain.lo}, {domain.hi}]"
    else:
        labels = study.treatment_labels if domain is None else domain.labels
        fits = (study.treatment_index if domain is None else LabelIndex(labels)).code(rule.value) is not None
        allowed = f"one of {list(labels)!r}"
    if not fits:
        raise refusal("CV-S010", name=name, expected=allowed, rule=rule.value)


def _order(order: str | None, time: str | None) -> str | None:
    """Return the column that orders a person's rows: that of the periods where there are any."""
    if order is not None and time is not None:
        raise refusal("CV-S018b", order=order, time=time)
    return order if time is None else time


def _truth(randomised: object) -> bool | None:
    if randomised is None or isinstance(randomised, bool):
        return randomised
    raise refusal("CV-S012", randomised=randomised)


def _share(treated_share: Number | None, randomised: bool | None) -> Fraction | None:
    if treated_share is None:
        return None
    try:
        share = exact(treated_share, "treated_share")
    except ParameterError:
        share = None
    if share is None or not 0 < share < 1 or randomised is not True:
        raise refusal("CV-S011", treated_share=treated_share, randomised=randomised)
    return share


def _score(score: object, study: Study) -> str | None:
    """Return the covariate that is every row's probability of treatment; raises CV-S027 or CV-S027b."""
    if score is None:
        return None
    name = _column_name(score, "score")
    beside = {
        "arms": study.arms,
        "randomised": study.randomised or None,
        "treated_share": study.treated_share,
    }
    given = [each for each, value in beside.items() if value is not None]
    if given or isinstance(study.missing.get(name), Fill):
        raise refusal("CV-S027b", score=name, given=given[0] if given else "missing")
    domain = study.covariates.get(name)
    if not isinstance(domain, Range) or not 0 < domain.lo <= domain.hi < 1:
        raise refusal("CV-S027", score=name, domain=None if domain is None else domain.words())
    return name


def _invalid(expected: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-S013", expected=expected, got=got, fix=fix)


def _no_rule(what: str, got: str, fix: str) -> CounterveilError:
    return refusal("CV-S009", what=what, got=got, fix=fix)
