"""What is asked of OMOP tables: cohorts, time at risk, exclusions and covariates; all of it is public."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from types import MappingProxyType
from typing import Any

from counterveil.data import Categories, Fill, Study
from counterveil.data.domains import Domain, domain_from
from counterveil.data.study import read_toml
from counterveil.errors import CounterveilError, refusal, shown
from counterveil.privacy import Number


@dataclass(frozen=True, slots=True)
class RecordTable:
    """A table of dated records, with its columns of concepts and days."""

    table: str
    concept: str
    day: str


RECORDS = {
    "condition": RecordTable("condition_occurrence", "condition_concept_id", "condition_start_date"),
    "drug": RecordTable("drug_exposure", "drug_concept_id", "drug_exposure_start_date"),
    "procedure": RecordTable("procedure_occurrence", "procedure_concept_id", "procedure_date"),
    "observation": RecordTable("observation", "observation_concept_id", "observation_date"),
    "visit": RecordTable("visit_occurrence", "visit_concept_id", "visit_start_date"),
    "measurement": RecordTable("measurement", "measurement_concept_id", "measurement_date"),
}
# The columns that every study has.
PERSON, TARGET, OUTCOME, DAYS, EVENT = "person_id", "target", "outcome", "days", "event"
START, END = "cohort start", "cohort end"
EVER, KEEP = "ever", "keep"
BINARY, SURVIVAL = "binary", "survival"
_AGE, _SEX, _YEAR, _MEASURED = "age", "sex", "year", "measurement"
SEXES = ("female", "male")
# A century: longer windows are mistakes.
_MOST_DAYS = 36_525
_MOST_CONCEPTS, _LARGEST_ID = 10_000, 2**31 - 1
# Short enough for every database to keep it whole.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,47}")
_KEYS = {
    "concepts": ({"from", "concepts", "days"}, {"descendants"}),
    _AGE: ({"from", "range"}, {"cuts", "missing"}),
    _YEAR: ({"from", "range"}, {"cuts"}),
    _SEX: ({"from"}, {"missing"}),
    _MEASURED: ({"from", "concepts", "days", "range", "missing"}, {"descendants", "unit", "cuts"}),
}


@dataclass(frozen=True, slots=True)
class Concepts:
    """Records of one kind with one of these concepts, or by default with one that descends from them."""

    kind: str
    concepts: tuple[int, ...]
    descendants: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as a specification file holds it."""
        return {"from": self.kind, "concepts": list(self.concepts), "descendants": self.descendants}


@dataclass(frozen=True, slots=True)
class Covariate:
    """One covariate: what it is made from, over which days relative to the index, and its public domain."""

    kind: str
    domain: Domain
    records: Concepts | None = None
    days: tuple[int, int] | None = None
    missing: Any = None
    unit: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration in one form."""
        found = {"from": self.kind} if self.records is None else self.records.to_dict()
        more = {"days": self.days and list(self.days), "missing": self.missing, "unit": self.unit}
        found |= {name: value for name, value in more.items() if value is not None}
        return found | {"domain": self.domain.to_dict()}


@dataclass(frozen=True, slots=True)
class TimeAtRisk:
    """First and last day on which an outcome counts, each relative to the start or the end of the cohort entry."""

    start: int
    end: int
    start_anchor: str = START
    end_anchor: str = START

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as a specification file holds it."""
        return asdict(self)


@dataclass(frozen=True, slots=True, init=False)
class Specification:
    """A comparison of two cohorts: who is in it, when an outcome counts, and what is adjusted for.

    Args:
        target: `cohort_definition_id` of the people whose outcomes are compared.
        comparator: that of the people they are compared with.
        outcome: the cohort of outcomes, or {"from": "condition", "concepts": [...]} for dated records.
        time_at_risk: {"start": 1, "end": 365}: days after the cohort entry's start; "start_anchor" and "end_anchor"
            may be "cohort end". It ends with the observation period at the latest.
        washout: days of observation that are required before the index date.
        prior_outcome: people with an outcome in so many days before the index, or after it and before time at risk,
            are left out; "ever" for any day before, "keep" to leave out nobody.
        both: "first": everyone enters with their first entry to either cohort; "exclude": people with entries to
            both are left out. People whose first entries to both fall on one day are left out by either rule.
        kind: "binary" for an outcome in time at risk, or "survival" for the days until it.
        horizon: with "survival", the last day that counts; by default all of a fixed time at risk.
        grid: with "survival", time cells, as `Study` takes them.
        covariates: what each is made from: {"age": {"from": "age", "range": [18, 90]}}.
    """

    target: int
    comparator: int
    outcome: int | Concepts
    time_at_risk: TimeAtRisk
    washout: int
    prior_outcome: int | str
    both: str
    kind: str
    horizon: Number | None
    grid: int | Sequence[Number] | None
    covariates: Mapping[str, Covariate]

    def __init__(
        self,
        target: int,
        comparator: int,
        outcome: int | Mapping[str, Any],
        time_at_risk: Mapping[str, Any],
        washout: int,
        prior_outcome: int | str,
        both: str,
        kind: str = BINARY,
        horizon: Number | None = None,
        grid: int | Sequence[Number] | None = None,
        covariates: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        ids = {"target": target, "comparator": comparator}
        ids |= {} if isinstance(outcome, Mapping) else {"outcome": outcome}
        for name, value in ids.items():
            _whole(value, name, 0, _LARGEST_ID)
        if len(set(ids.values())) < len(ids):
            raise _invalid("different cohorts as target, comparator and outcome", list(ids.values()))
        if prior_outcome not in (EVER, KEEP):
            _whole(prior_outcome, f'prior_outcome ("{EVER}", "{KEEP}", or days)', 0, _MOST_DAYS)
        risk = _time_at_risk(time_at_risk)
        found = {
            **ids,
            "outcome": _concepts(outcome, "outcome") if isinstance(outcome, Mapping) else outcome,
            "time_at_risk": risk,
            "washout": _whole(washout, "washout", 0, _MOST_DAYS),
            "prior_outcome": prior_outcome,
            "both": _one_of(both, "both", ("first", "exclude")),
            "kind": _one_of(kind, "kind", (BINARY, SURVIVAL)),
            "horizon": _horizon(horizon, grid, kind, risk),
            "grid": grid,
            "covariates": MappingProxyType(_covariates(covariates, min(risk.start - 1, 0))),
        }
        for name, each in found.items():
            object.__setattr__(self, name, each)
        # What a study refuses is refused here.
        self.study()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Specification:
        """Return the specification in a dictionary, or raise CV-D900."""
        needed = {"target", "comparator", "outcome", "time_at_risk", "washout", "prior_outcome", "both"}
        _keys(document, "the specification", needed, {"kind", "horizon", "grid", "covariates"})
        return cls(**document)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Specification:
        """Return the specification declared in a TOML file."""
        return cls.from_dict(read_toml(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the specification in one form; equal ones have equal forms."""
        grid = list(self.grid) if isinstance(self.grid, Sequence) else self.grid
        plain = ("target", "comparator", "washout", "prior_outcome", "both", "kind")
        return {name: getattr(self, name) for name in plain} | {
            "outcome": self.outcome.to_dict() if isinstance(self.outcome, Concepts) else self.outcome,
            "time_at_risk": self.time_at_risk.to_dict(),
            "horizon": None if self.horizon is None else str(self.horizon),
            "grid": grid if grid is None else str(grid),
            "covariates": {name: each.to_dict() for name, each in self.covariates.items()},
        }

    @property
    def eligible(self) -> str:
        """The column that is 1 for people of the study; its name stands for this specification and no other."""
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"eligible_in_{self.target}_or_{self.comparator}_{digest}"

    def study(self) -> Study:
        """Return the study of the people who are eligible; from the specification alone."""
        outcome: dict[str, Any] = {"outcome": OUTCOME, "outcome_range": (0, 1)}
        if self.kind == SURVIVAL:
            outcome = {"outcome": DAYS, "event": EVENT, "horizon": self.horizon, "grid": self.grid}
        filled = {
            name: Fill(each.missing)
            for name, each in self.covariates.items()
            if each.missing is not None and each.kind != _SEX
        }
        return Study(
            TARGET,
            covariates={name: each.domain for name, each in self.covariates.items()},
            treated=1,
            control=0,
            missing=filled,
            randomised=False,
            person=PERSON,
            where=f"{self.eligible} == 1",
            **outcome,
        )


def _invalid(expected: str, got: object) -> CounterveilError:
    return refusal("CV-D900", expected=expected, got=shown(got))


def _whole(value: object, name: str, low: int, high: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise _invalid(f"{name}: a whole number from {low} to {high}", value)


def _one_of(value: object, name: str, known: tuple[str, ...]) -> str:
    if isinstance(value, str) and value in known:
        return value
    raise _invalid(f"{name}: {' or '.join(map(repr, known))}", value)


def _keys(given: object, name: str, needed: set[str], more: set[str]) -> Mapping[str, Any]:
    """Return a table that holds all that is needed and nothing that is unknown."""
    if not isinstance(given, Mapping) or not needed <= set(given) <= needed | more:
        beside = f", perhaps {', '.join(sorted(more))}" if more else ""
        got = list(given) if isinstance(given, Mapping) else given
        raise _invalid(f"{name}: a table with {', '.join(sorted(needed))}{beside}", got)
    return given


def _time_at_risk(given: object) -> TimeAtRisk:
    name = "time_at_risk"
    table = _keys(given, name, {"start", "end"}, {"start_anchor", "end_anchor"})
    days = [_whole(table[end], f"{name}.{end}", 0, _MOST_DAYS) for end in ("start", "end")]
    anchors = [
        _one_of(table.get(anchor, START), f"{name}.{anchor}", (START, END))
        for anchor in ("start_anchor", "end_anchor")
    ]
    if anchors == [END, START] or (anchors[0] == anchors[1] and days[1] < days[0]):
        raise refusal("CV-D901", expected="time at risk that ends after its start", got=shown(dict(table)))
    return TimeAtRisk(days[0], days[1], *anchors)


def _horizon(horizon: Number | None, grid: object, kind: str, risk: TimeAtRisk) -> Number | None:
    if kind == BINARY and not horizon is grid is None:
        raise _invalid(f'horizon and grid with kind = "{SURVIVAL}" alone', kind)
    if kind == BINARY or horizon is not None:
        return horizon
    if risk.start_anchor != risk.end_anchor:
        raise _invalid("horizon: time at risk has no fixed length", horizon)
    return risk.end - risk.start + 1


def _concepts(given: Mapping[str, Any], name: str) -> Concepts:
    table = _keys(given, name, {"from", "concepts"}, {"descendants"})
    kind = _one_of(table["from"], f"{name}.from", tuple(RECORDS))
    listed = table["concepts"]
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= _MOST_CONCEPTS:
        raise _invalid(f"{name}.concepts: 1 to {_MOST_CONCEPTS} concept ids", listed)
    found = sorted({_whole(each, f"{name}.concepts", 1, _LARGEST_ID) for each in listed})
    descendants = table.get("descendants", True)
    if not isinstance(descendants, bool):
        raise _invalid(f"{name}.descendants: true or false", descendants)
    return Concepts(kind, tuple(found), descendants)


def _covariates(given: object, last: int) -> dict[str, Covariate]:
    """Return the covariates, each made of days up to `last`."""
    tables = {} if given is None else given
    if not isinstance(tables, Mapping):
        raise _invalid("covariates: a table for each of them", given)
    taken = {PERSON, TARGET, OUTCOME, DAYS, EVENT}
    found: dict[str, Covariate] = {}
    for name, table in tables.items():
        plain = isinstance(name, str) and _NAME.fullmatch(name)
        if not plain or name.lower() in taken or name.lower().startswith("eligible_"):
            used = ", ".join(sorted(taken))
            raise _invalid(f"covariates: names of letters, digits and _, each once, none of {used}", name)
        taken.add(name.lower())
        found[name] = _covariate(name, table, last)
    return found


def _covariate(name: str, given: object, last: int) -> Covariate:
    kinds = (_AGE, _SEX, _YEAR, *RECORDS)
    kind = _one_of(given.get("from") if isinstance(given, Mapping) else given, f"{name}.from", kinds)
    table = _keys(given, name, *_KEYS.get(kind, _KEYS["concepts"]))
    if kind == _SEX:
        missing = table.get("missing")
        if missing is None:
            return Covariate(kind, Categories((*SEXES, "other")))
        return Covariate(kind, Categories(SEXES), missing=_one_of(missing, f"{name}.missing", SEXES))
    bounds = {key: table[key] for key in ("range", "cuts") if key in table}
    domain = domain_from(name, bounds or "binary")
    missing = None if table.get("missing") is None else Fill(table["missing"]).value
    if kind in (_AGE, _YEAR):
        return Covariate(kind, domain, missing=missing)
    records = _concepts(
        {key: table[key] for key in ("from", "concepts", "descendants") if key in table}, name
    )
    days = table["days"]
    if not isinstance(days, list | tuple) or len(days) != 2:
        raise _invalid(f"{name}.days: the first and the last day, such as [-365, -1]", days)
    first, end = (_whole(day, f"{name}.days", -_MOST_DAYS, _MOST_DAYS) for day in days)
    if not first <= end <= last:
        expected = f"{name}.days: days that rise, the last at most {last}, before time at risk"
        raise refusal("CV-D901", expected=expected, got=shown([first, end]))
    unit = table.get("unit")
    if unit is not None:
        _whole(unit, f"{name}.unit", 0, _LARGEST_ID)
    return Covariate(kind, domain, records, (first, end), missing, unit)
