"""What is asked of OMOP tables: cohorts, time at risk, exclusions and covariates; all of it is public."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from types import MappingProxyType
from typing import Any

from counterveil.data import Categories, Fill, Observational, Outcome, Study, TimeToEvent, Treatment
from counterveil.data.domains import Domain, domain_from
from counterveil.data.sources.dispatch import spilling_here
from counterveil.data.sources.relations import Kind, duckdb_kind, quoted
from counterveil.data.study_documents import read_toml
from counterveil.errors import CounterveilError, DataError, installing, masked, refusal, shown
from counterveil.frozen import frozen
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
# 130 bits of a hash, 5 a letter: nobody finds two specifications of one name. With two ids of ten digits the name has
# the 63 letters that PostgreSQL allows.
_DIGEST_LETTERS = 26
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


@frozen
class Specification:
    """A comparison of two cohorts in OMOP tables.

    It says who is in it, when an outcome counts, and what is adjusted for.

    Parameters
    ----------
    target : int
        ``cohort_definition_id`` of the people whose outcomes are compared.
    comparator : int
        ``cohort_definition_id`` of the people they are compared with.
    outcome : int or mapping
        ``cohort_definition_id`` of the outcome, or ``{"from": "condition", "concepts": [...]}`` for dated
        records.
    time_at_risk : mapping
        ``{"start": 1, "end": 365}``: first and last day on which an outcome counts, in days after the start
        of the cohort entry; "start_anchor" and "end_anchor" may be "cohort end". It ends with the observation
        period at the latest.
    washout : int
        Days of observation that are required before the index date, from 0 to 36525.
    prior_outcome : int or {"ever", "keep"}
        People with an outcome within so many days before the index, or between index and time at risk, are
        left out;
        "ever": on any day before; "keep": nobody is left out.
    both : {"first", "exclude"}
        People with entries to both cohorts. "first": everyone enters with their first entry; "exclude": they
        are left out. People whose first entries fall on one day are left out by either rule.
    kind : {"binary", "survival"}, default "binary"
        "binary": an outcome within time at risk; "survival": the days until it.
    horizon : number, optional
        With "survival": the last day that counts. Default: all of a time at risk of fixed length.
    grid : int or sequence of number, optional
        With "survival": the number of time cells, or their ends in days. Default: chosen by `cv.survival`.
    covariates : mapping of str to mapping, optional
        What each covariate is made from: ``{"age": {"from": "age", "range": [18, 90]}}``. Default: none.

    Attributes
    ----------
    target, comparator : int
        Cohorts.
    outcome : int or Concepts
        Outcome cohort, or the records that make it.
    time_at_risk : TimeAtRisk
        Days on which an outcome counts.
    washout : int
        Days of observation before the index.
    prior_outcome : int or str
        Days before the index, "ever" or "keep".
    both : str
        "first" or "exclude".
    kind : str
        "binary" or "survival".
    horizon : number or None
        Last day that counts.
    grid : int or sequence of number or None
        Time cells.
    covariates : mapping of str to Covariate
        The covariates.

    Raises
    ------
    CounterveilError
        A specification that cannot be used (CV-D900, CV-D901), or whose study is refused (CV-S).

    Examples
    --------
    >>> import counterveil as cv
    >>> comparison = cv.omop.Specification(
    ...     target=1, comparator=2, outcome=3, time_at_risk={"start": 1, "end": 365}, washout=365,
    ...     prior_outcome="ever", both="first", covariates={"age": {"from": "age", "range": [18, 90]}},
    ... )
    >>> comparison.kind, list(comparison.covariates)
    ('binary', ['age'])
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
        """Return the specification in a dictionary.

        Parameters
        ----------
        document : mapping
            The arguments of `Specification` by name.

        Returns
        -------
        Specification
            The specification.

        Raises
        ------
        CounterveilError
            A document that is no specification (CV-D900).
        """
        needed = {"target", "comparator", "outcome", "time_at_risk", "washout", "prior_outcome", "both"}
        _keys(document, "the specification", needed, {"kind", "horizon", "grid", "covariates"})
        return cls(**document)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Specification:
        """Return the specification declared in a TOML file.

        Parameters
        ----------
        path : path-like
            The file: the arguments of `Specification` by name.

        Returns
        -------
        Specification
            The specification.

        Raises
        ------
        CounterveilError
            A file that cannot be read, or is no specification (CV-D900).
        """
        return cls.from_dict(read_toml(path))

    def to_dict(self) -> dict[str, Any]:
        """Return the specification in one form; equal specifications have equal forms.

        Returns
        -------
        dict
            The attributes, JSON-ready.
        """
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
        """Name of the column that is 1 for people of the study.

        It stands for this specification and no other.
        """
        text = json.dumps(self.to_dict(), sort_keys=True, default=str)
        digest = base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()
        return f"eligible_in_{self.target}_or_{self.comparator}_{digest[:_DIGEST_LETTERS]}"

    def study(self) -> Study:
        """Return the study of the eligible people, from the specification alone.

        Returns
        -------
        Study
            Columns, ranges and labels, with one row a person.
        """
        outcome: Outcome | TimeToEvent = Outcome(OUTCOME, (0, 1))
        if self.kind == SURVIVAL:
            outcome = TimeToEvent(DAYS, EVENT, horizon=self.horizon, grid=self.grid)
        filled = {
            name: Fill(each.missing)
            for name, each in self.covariates.items()
            if each.missing is not None and each.kind != _SEX
        }
        return Study(
            Treatment(TARGET, control=0),
            outcome,
            covariates={name: each.domain for name, each in self.covariates.items()},
            assignment=Observational(),
            people=PERSON,
            missing=filled,
            where=f"{self.eligible} == 1",
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


# The one query that makes a row of each person in the cohorts, in SQL that DuckDB and PostgreSQL both take.
#
# Everything that enters the text is a checked whole number, a name of the data model or a checked name.
# Proof: `query.proof.md`.


ID, DATE, NUMBER = "a whole number", "a date", "a number"
_COHORT = {"cohort_definition_id": ID, "subject_id": ID, "cohort_start_date": DATE, "cohort_end_date": DATE}
_PERIOD = {"person_id": ID, "observation_period_start_date": DATE, "observation_period_end_date": DATE}
_PERSON = {"person_id": ID, "year_of_birth": ID, "gender_concept_id": ID}
_ANCESTORS = {"ancestor_concept_id": ID, "descendant_concept_id": ID}
_FEMALE, _MALE = 8532, 8507
# Some write open ends as infinity, to which days cannot be counted; later days do not count.
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"


def needed(asked: Specification) -> dict[str, dict[str, str]]:
    """Return the tables that a specification reads, their columns, and what each holds."""
    found = {"cohort": _COHORT, "observation_period": _PERIOD}
    if any(each.records is None for each in asked.covariates.values()):
        found["person"] = _PERSON
    for concepts in (asked.outcome, *(each.records for each in asked.covariates.values())):
        if isinstance(concepts, Concepts):
            records = RECORDS[concepts.kind]
            named = {"person_id": ID, records.concept: ID, records.day: DATE}
            found[records.table] = found.get(records.table, {}) | named
            found |= {"concept_ancestor": _ANCESTORS} if concepts.descendants else {}
    for each in asked.covariates.values():
        if each.kind == "measurement":
            found["measurement"] |= {"value_as_number": NUMBER}
            found["measurement"] |= {} if each.unit is None else {"unit_concept_id": ID}
    return found


def columns(asked: Specification) -> dict[str, str]:
    """Return the columns of the query's result and the SQL type of each."""
    outcome = (DAYS, EVENT) if asked.kind == SURVIVAL else (OUTCOME,)
    found = dict.fromkeys((PERSON, asked.eligible, TARGET, *outcome), "BIGINT")
    kinds = {"measurement": "DOUBLE PRECISION", "sex": "VARCHAR"}
    return found | {name: kinds.get(each.kind, "BIGINT") for name, each in asked.covariates.items()}


# Proof: query.proof.md
def cohort_query(asked: Specification, table: Callable[[str], str]) -> str:
    """Return the SQL of one row for each person with an entry to either cohort; `table` gives the SQL of a name.

    Every part is grouped by person, so that nobody has two rows whatever the tables hold.
    """
    parts = {**_entries(asked, table), **_events(asked, table)}
    values = _outcomes(asked)
    joined = ["LEFT JOIN events AS e ON e.person = p.person"]
    if "person" in needed(asked):
        joined.append("LEFT JOIN persons AS who ON who.person = p.person")
        parts["persons"] = (
            "SELECT person_id AS person, max(year_of_birth) AS born, max(gender_concept_id) AS gender "
            f"FROM {table('person')} GROUP BY person_id"
        )
    for place, (name, each) in enumerate(asked.covariates.items()):
        values[name] = _person_value(each)
        if each.records is not None:
            part = f"c{place}"
            parts[part] = _records(each, each.records, table)
            joined.append(f"LEFT JOIN {part} ON {part}.person = p.person")
            values[name] = f"{part}.value" if each.kind == "measurement" else f"coalesce({part}.value, 0)"
    types = columns(asked)
    chosen = ",\n  ".join(f"CAST({values[name]} AS {types[name]}) AS {quoted(name)}" for name in types)
    written = ",\n".join(f"{name} AS (\n  {text}\n)" for name, text in parts.items())
    return f"WITH {written}\nSELECT\n  {chosen}\nFROM people AS p\n" + "\n".join(joined)


def _entries(asked: Specification, table: Callable[[str], str]) -> dict[str, str]:
    """Return the parts up to `people`: index date, arm, observation and time at risk of each person."""
    risk = asked.time_at_risk
    anchors = ["p.ended" if anchor == END else "p.began" for anchor in (risk.start_anchor, risk.end_anchor)]
    period = ("observation_period_start_date", "observation_period_end_date")
    start, end = (f"CAST(o.{name} AS DATE)" for name in period)
    low, high = ("first_low", "first_high") if asked.both == "first" else ("low", "high")
    return {
        "entries": "SELECT subject_id AS person, "
        f"CASE WHEN cohort_definition_id = {asked.target} THEN 1 ELSE 0 END AS arm, "
        "CAST(cohort_start_date AS DATE) AS began, CAST(cohort_end_date AS DATE) AS ended\n"
        f"  FROM {table('cohort')}\n"
        f"  WHERE cohort_definition_id IN ({asked.target}, {asked.comparator}) "
        f"AND subject_id IS NOT NULL AND cohort_start_date BETWEEN {_FIRST_DAY} AND {_LAST_DAY}",
        "firsts": "SELECT person, min(began) AS began, min(arm) AS low, max(arm) AS high "
        "FROM entries GROUP BY person",
        "indexed": "SELECT f.person, f.began, max(e.ended) AS ended, f.low, f.high, "
        "min(e.arm) AS first_low, max(e.arm) AS first_high\n"
        "  FROM firsts AS f JOIN entries AS e ON e.person = f.person AND e.began = f.began\n"
        "  GROUP BY f.person, f.began, f.low, f.high",
        "observed": f"SELECT i.person, min({start}) AS seen_from, least(max({end}), {_LAST_DAY}) AS seen_to\n"
        f"  FROM indexed AS i JOIN {table('observation_period')} AS o ON o.person_id = i.person\n"
        f"  WHERE {start} <= i.began AND {end} >= i.began GROUP BY i.person",
        "followed": "SELECT i.person, i.began, i.first_low, i.first_high, i.low, i.high, o.seen_from, o.seen_to, "
        "greatest(least(coalesce(i.ended, o.seen_to), o.seen_to), i.began) AS ended\n"
        "  FROM indexed AS i LEFT JOIN observed AS o ON o.person = i.person",
        "people": f"SELECT p.person, p.began, p.seen_from, {low} AS arm, "
        f"CASE WHEN {low} = {high} THEN 1 ELSE 0 END AS one_arm, {anchors[0]} + {risk.start} AS risk_from, "
        f"least({anchors[1]} + {risk.end}, p.seen_to) AS risk_to\n  FROM followed AS p",
    }


def _events(asked: Specification, table: Callable[[str], str]) -> dict[str, str]:
    """Return the part with each person's first outcome in time at risk, and whether there was one before."""
    if isinstance(asked.outcome, Concepts):
        records = RECORDS[asked.outcome.kind]
        who, name, day = "r.person_id", records.table, f"CAST(r.{records.day} AS DATE)"
        which = _among(f"r.{records.concept}", asked.outcome, table)
    else:
        who, name, day = "r.subject_id", "cohort", "CAST(r.cohort_start_date AS DATE)"
        which = f"r.cohort_definition_id = {asked.outcome}"
    since = f" AND {day} >= p.began - {asked.prior_outcome}" if isinstance(asked.prior_outcome, int) else ""
    before = f"{day} < p.risk_from{since}"
    return {
        "events": f"SELECT p.person, max(CASE WHEN {before} THEN 1 ELSE 0 END) AS prior,\n"
        f"  min(CASE WHEN {day} BETWEEN p.risk_from AND p.risk_to THEN {day} END) AS happened\n"
        f"  FROM people AS p JOIN {table(name)} AS r ON {who} = p.person\n"
        f"  WHERE {which} GROUP BY p.person",
    }


def _outcomes(asked: Specification) -> dict[str, str]:
    """Return the SQL of the columns that every study has."""
    prior = "" if asked.prior_outcome == KEEP else " AND coalesce(e.prior, 0) = 0"
    fits = f"p.one_arm = 1 AND p.seen_from <= p.began - {asked.washout} AND p.risk_from <= p.risk_to{prior}"
    happened = "CASE WHEN e.happened IS NULL THEN 0 ELSE 1 END"
    return {
        PERSON: "p.person",
        asked.eligible: f"CASE WHEN {fits} THEN 1 ELSE 0 END",
        TARGET: "p.arm",
        OUTCOME: happened,
        DAYS: "coalesce(e.happened, p.risk_to) - p.risk_from + 1",
        EVENT: happened,
    }


def _person_value(each: Covariate) -> str:
    year = "extract(year FROM p.began)"
    if each.kind == "sex":
        female, male = SEXES
        other = "other" if each.missing is None else each.missing
        cases = f"WHEN {_FEMALE} THEN '{female}' WHEN {_MALE} THEN '{male}'"
        return f"CASE who.gender {cases} ELSE '{other}' END"
    return year if each.kind == "year" else f"{year} - who.born"


def _records(each: Covariate, concepts: Concepts, table: Callable[[str], str]) -> str:
    """Return the part with a covariate's value: 1 for people with a record, or the last number measured."""
    records = RECORDS[each.kind]
    assert each.days is not None
    day, (first, last) = f"CAST(r.{records.day} AS DATE)", each.days
    text = (
        f"  FROM people AS p JOIN {table(records.table)} AS r ON r.person_id = p.person\n"
        f"  WHERE {_among(f'r.{records.concept}', concepts, table)}\n"
        f"  AND {day} BETWEEN p.began - {-first} AND p.began - {-last}"
    )
    if each.kind != "measurement":
        return f"SELECT p.person, 1 AS value\n{text} GROUP BY p.person"
    value = "CAST(r.value_as_number AS DOUBLE PRECISION)"
    unit = "" if each.unit is None else f" AND r.unit_concept_id = {each.unit}"
    # Of several numbers on the last day the largest counts: the same one in every order of rows.
    return (
        f"SELECT DISTINCT ON (p.person) p.person, {value} AS value\n{text}{unit}\n"
        f"  AND {value} <> 'NaN' ORDER BY p.person, {day} DESC, {value} DESC"
    )


def _among(column: str, concepts: Concepts, table: Callable[[str], str]) -> str:
    listed = ", ".join(map(str, concepts.concepts))
    if not concepts.descendants:
        return f"{column} IN ({listed})"
    below = f"SELECT descendant_concept_id FROM {table('concept_ancestor')} WHERE ancestor_concept_id IN ({listed})"
    return f"({column} IN ({listed}) OR {column} IN ({below}))"


# Opens OMOP tables in DuckDB or PostgreSQL as the rows of a study, after their columns were checked; reads no row.


_SCHEMA = re.compile(r"[^\W\d]\w{0,62}(?:\.[^\W\d]\w{0,62})?")
_TYPES = {"BIGINT": "int64", "DOUBLE PRECISION": "float64", "VARCHAR": "string"}


@dataclass(frozen=True, slots=True)
class CohortStudy:
    """A study and its rows, which stay in the database.

    Each person with an entry to either cohort has one row. `cohort_study` returns it.

    Attributes
    ----------
    rows : object
        The rows as a relation of DuckDB or Ibis: the first argument of every question.
    study : Study
        The study: the second argument of every question.
    sql : str
        The query behind the rows.
    """

    rows: Any
    study: Study
    sql: str


def cohort_study(
    database: object,
    specification: Specification | str | PathLike[str],
    schema: str | None = None,
    cohort_schema: str | None = None,
) -> CohortStudy:
    """Return the study of a specification and its rows in a database.

    Tables and columns are checked; no row is read.

    Parameters
    ----------
    database : path-like or object
        Path of a DuckDB file, a ``postgresql://`` URL, a DuckDB connection, or an Ibis backend of either.
    specification : Specification or path-like
        The comparison, or the path of its TOML file.
    schema : str, optional
        Schema of the tables of the common data model. Default: the connection's own.
    cohort_schema : str, optional
        Schema of the table ``cohort``. Default: `schema`.

    Returns
    -------
    CohortStudy
        Study, rows and query.

    Raises
    ------
    CounterveilError
        A specification that cannot be used (CV-D900, CV-D901), no database with OMOP tables (CV-D904), a
        missing table (CV-D902) or column (CV-D903), or a missing package (CV-E).

    Examples
    --------
    >>> import counterveil as cv
    >>> found = cv.omop.cohort_study("cdm.duckdb", "comparison.toml")  # doctest: +SKIP
    >>> cv.ate(found.rows, found.study, protects="record", epsilon=1)  # doctest: +SKIP
    """
    asked = specification
    if not isinstance(asked, Specification):
        asked = Specification.from_toml(asked)
    places = {"cohort": cohort_schema or schema}
    for given in (schema, cohort_schema):
        if given is not None and not (isinstance(given, str) and _SCHEMA.fullmatch(given)):
            raise refusal("CV-D900", expected="the name of a schema", got=shown(given))

    def place(table: str) -> str | None:
        return places.get(table, schema)

    def named(table: str) -> str:
        within = place(table)
        return ".".join(quoted(part) for part in (*(within.split(".") if within else ()), table))

    opened = _opened(database)
    in_duckdb = not hasattr(opened, "get_schema")
    for table, wanted in needed(asked).items():
        held = _in_duckdb(opened, named(table)) if in_duckdb else _in_postgres(opened, table, place(table))
        if held is None:
            raise refusal("CV-D902", table=table, place=shown(place(table)))
        for column, kind in wanted.items():
            if kind not in held.get(column, ()):
                got = "a column of another type" if column in held else "no such column"
                raise refusal("CV-D903", table=table, column=column, kind=kind, got=got)
    text = cohort_query(asked, named)
    if in_duckdb:
        return CohortStudy(opened.sql(text), asked.study(), text)
    types = {name: _TYPES[kind] for name, kind in columns(asked).items()}
    return CohortStudy(opened.sql(text, schema=types), asked.study(), text)


def _opened(database: object) -> Any:
    """Return a DuckDB connection or an Ibis backend of PostgreSQL, or raise CV-D904."""
    if isinstance(database, str | PathLike):
        return _connected(fspath(database))
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(database, duckdb.DuckDBPyConnection):
        return database
    backend: Any = database
    if type(database).__module__.startswith("ibis.backends."):
        if backend.name == "duckdb":
            return backend.con
        if backend.name == "postgres":
            return backend
    raise refusal("CV-D904", got=type(database).__name__)


def _connected(place: str) -> Any:
    if place.startswith(("postgresql://", "postgres://")):
        if any(importlib.util.find_spec(package) is None for package in ("ibis", "psycopg")):
            problem = "tables on a PostgreSQL server need an extra"
            raise refusal("CV-E030", problem=problem, package="psycopg", fix=installing("ibis"))
        import ibis

        try:
            return ibis.connect(place)
        except Exception:
            # The driver's message may quote the URL and its password.
            raise refusal("CV-D071", kind=f"no server that answers at {masked(place)}") from None
    if not place.endswith((".duckdb", ".ddb")):
        raise refusal("CV-D904", got=shown(place))
    import duckdb

    try:
        return spilling_here(duckdb.connect(place, read_only=True))
    except duckdb.Error:
        raise refusal("CV-D071", kind="no DuckDB file that can be opened") from None


def _in_duckdb(connection: Any, table: str) -> dict[str, tuple[str, ...]] | None:
    """Return what each column of a table may stand for, None where there is no such table."""
    import duckdb

    try:
        found = connection.sql(f"SELECT * FROM {table} LIMIT 0")
    except duckdb.Error:
        return None
    names = (name.lower() for name in found.columns)
    return {name: _duckdb_meaning(str(kind), name) for name, kind in zip(names, found.types, strict=True)}


def _duckdb_meaning(kind: str, name: str) -> tuple[str, ...]:
    if kind == "DATE" or (kind.startswith("TIMESTAMP") and "ZONE" not in kind):
        return (DATE,)
    try:
        found = duckdb_kind(kind, name)
    except DataError:
        return ()
    return {Kind.INTEGER: (ID, NUMBER), Kind.FLOAT: (NUMBER,), Kind.EXACT: (NUMBER,)}.get(found, ())


def _in_postgres(backend: Any, table: str, schema: str | None) -> dict[str, tuple[str, ...]] | None:
    try:
        found = backend.get_schema(table, database=schema)
    except Exception:
        # The driver's message may quote its address.
        return None
    return {name: _postgres_meaning(kind) for name, kind in found.items()}


def _postgres_meaning(kind: Any) -> tuple[str, ...]:
    if kind.is_date() or (kind.is_timestamp() and kind.timezone is None):
        return (DATE,)
    if kind.is_integer():
        return (ID, NUMBER)
    return (NUMBER,) if kind.is_floating() or kind.is_decimal() else ()
