"""The study: which column plays which role, and every bound and label; all public."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from os import PathLike
from typing import Any, TypeVar, cast

from counterveil.data import documents, facts
from counterveil.data.cluster import Cluster
from counterveil.data.declarations import TREATED, declare
from counterveil.data.domains import Domain, Range
from counterveil.data.labels import Drop, Label, MissingRule
from counterveil.data.outcomes import Before, Per
from counterveil.data.person import Person
from counterveil.data.several import Several
from counterveil.data.time_to_event import TimeToEvent
from counterveil.data.where import Where
from counterveil.privacy import Number, Unit

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, init=False)
class Study:
    """Roles, bounds, labels and missing rules; nothing in it is private.

    A study of two arms has `treated` and perhaps `control`; one of several arms has `arms`, the reference
    first, and then `treated` and `control` are None. Where people have several rows, `person` says whose a row is
    and how the rows of a person become one. `cluster` names groups of people whose outcomes depend on each other; where
    whole clusters are protected, `person` says how the rows of a cluster become one. With `before`, everyone's outcome
    is their own change since then, and `outcome_range` is the range of the change. With `per`, arms are compared by
    sums of the outcome over sums of it. With `event`, the outcome is the time to it, or to where follow-up ended. With
    `several`, everyone has several outcomes, of which `outcome` is the first.
    `where` says which rows belong to the study; without it all do.
    `bought` names the columns whose range or labels were released from these data, and what that cost.
    """

    treatment: str
    outcome: str
    outcome_range: tuple[Fraction, Fraction]
    covariates: Mapping[str, Domain]
    treated: Label | None
    control: Label | None
    missing: Mapping[str, MissingRule]
    randomised: bool | None
    treated_share: Fraction | None
    arms: tuple[Label, ...] | None
    person: Person | None
    cluster: Cluster | None
    before: Before | None
    per: Per | None
    event: TimeToEvent | None
    several: Several | None
    where: Where | None
    bought: Mapping[str, str]
    # What follows from the declarations and was asked for before: every question asks for the same.
    _known: dict[Hashable, object] | None = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        treatment: str,
        outcome: str | None = None,
        outcome_range: tuple[Number, Number] | None = None,
        covariates: Mapping[str, Domain] | None = None,
        treated: Label = TREATED,
        control: Label | None = None,
        missing: Mapping[str, MissingRule] | MissingRule | None = None,
        randomised: bool | None = None,
        treated_share: Number | None = None,
        arms: tuple[Label, ...] | None = None,
        reference: Label | None = None,
        person: str | None = None,
        per_person: Mapping[str, str] | None = None,
        order: str | None = None,
        most_rows: int | None = None,
        before: str | Sequence[Label] | None = None,
        before_range: tuple[Number, Number] | None = None,
        change_range: tuple[Number, Number] | None = None,
        time: str | None = None,
        after: Sequence[Label] | Label | None = None,
        per: str | None = None,
        per_range: tuple[Number, Number] | None = None,
        event: str | None = None,
        horizon: Number | None = None,
        grid: int | Sequence[Number] | None = None,
        outcomes: Mapping[str, tuple[Number, Number]] | None = None,
        earlier: Mapping[str, str] | None = None,
        several: Several | None = None,
        where: str | Where | None = None,
        others: str | None = None,
        bought: Mapping[str, str] | None = None,
        cluster: str | None = None,
        protects_cluster: bool = False,
        assigned_by_cluster: bool = False,
        per_cluster: Mapping[str, str] | None = None,
    ) -> None:
        object.__setattr__(self, "_known", None)  # nothing is kept of a study that is not whole
        declare(self, **{name: value for name, value in locals().items() if name != "self"})
        object.__setattr__(self, "_known", {})

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
        beside = () if self.per is None else (self.per.column,)
        return (self.outcome, *earlier, *beside, *(() if self.event is None else (self.event.column,)))

    @property
    def outcome_name(self) -> str:
        """What the effect is on: the outcome, its change, or a ratio."""
        if self.per is not None:
            return f"{self.outcome} per {self.per.column}"
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
        """How many private numbers a row has beside its outcome, as `Table.measures` holds them."""
        if self.event is not None:
            return 0
        if self.per is not None:
            return 1
        if self.several is not None:
            return len(self.several.columns) - 1
        return 0 if self.before is None else len(self.before.labels(self.outcome))

    @property
    def clustered(self) -> bool:
        """Whether rows, or people, of one cluster depend on each other; not where each cluster becomes one row."""
        return self.cluster is not None and not self.cluster.whole

    @property
    def cluster_columns(self) -> tuple[str, ...]:
        """The column that names clusters of several rows, if there is one."""
        return (self.cluster.column,) if self.cluster is not None and not self.cluster.whole else ()

    @property
    def unit_columns(self) -> dict[str, Any]:
        """The column of the people or clusters that are protected with all their rows, as a charter names it."""
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
        """Whether attaching tells no more than that all rows fit: neither rows are chosen nor clusters named."""
        return not self.subsets and not self.clustered

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The names of the columns that are public where only outcomes are protected."""
        return tuple(name for name in self.read_columns if name not in self.outcomes)

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
        if self.per is not None and name == self.per.column:
            return Range(*self.per.range)
        if self.event is not None and name == self.event.column:
            return Range(0, 1)
        if self.before is None:
            return self.outcome_bounds
        return Range(*(self.before.outcome_range if name == self.outcome else self.before.range))

    def changed(self, **fields_of: Any) -> Study:
        """Return the study with some attributes replaced as they are, for parts of a table and moved outcomes."""
        found = object.__new__(Study)
        object.__setattr__(found, "_known", {})
        for each in fields(self):
            if each.init:
                object.__setattr__(found, each.name, fields_of.get(each.name, getattr(self, each.name)))
        return found

    def public_facts(self, unit: Unit, reference: Label | None = None) -> tuple[str, ...]:
        """Return what a guarantee that protects `unit` takes as public, one sentence per fact.

        An event study's is relative to its `reference`.
        """
        if reference is not None:
            return facts.public_facts(self, unit, reference)
        return self.once(("facts", unit), lambda: facts.public_facts(self, unit))

    def to_dict(self) -> dict[str, Any]:
        """Return the study as a JSON-ready dictionary; `from_dict` reads it back."""
        return documents.study_to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Study:
        """Return the study in a dictionary, as `to_dict` writes it."""
        return cls(**documents.study_arguments(document))

    def to_toml(self) -> str:
        """Return the text of a study file."""
        return documents.to_toml(self.to_dict())

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Study:
        """Return the study declared in a TOML file; "study.toml#NAME" names one of several in a file."""
        return cls.from_dict(documents.read_study(path))

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
