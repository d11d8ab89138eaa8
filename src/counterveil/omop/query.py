"""The one query that makes a row of each person in the cohorts, in SQL that DuckDB and PostgreSQL both take.

Everything that enters the text is a checked whole number, a name of the data model or a checked name.
Proof: `query.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable

from counterveil.data.sources.relations import quoted
from counterveil.omop.specification import (
    DAYS,
    END,
    EVENT,
    KEEP,
    OUTCOME,
    PERSON,
    RECORDS,
    SEXES,
    SURVIVAL,
    TARGET,
    Concepts,
    Covariate,
    Specification,
)

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
