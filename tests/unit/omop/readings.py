"""Small OMOP databases full of edge cases, and a plain reading of them, person by person."""

import datetime
import math

import duckdb
import numpy as np
import pyarrow as pa

ORIGIN = datetime.date(2020, 1, 1)
COLUMNS = {
    "cohort": {"cohort_definition_id": 0, "subject_id": 0, "cohort_start_date": 1, "cohort_end_date": 1},
    "person": {"person_id": 0, "year_of_birth": 0, "gender_concept_id": 0},
    "observation_period": {
        "person_id": 0,
        "observation_period_start_date": 1,
        "observation_period_end_date": 1,
    },
    "condition_occurrence": {"person_id": 0, "condition_concept_id": 0, "condition_start_date": 1},
    "measurement": {
        "person_id": 0,
        "measurement_concept_id": 0,
        "measurement_date": 1,
        "value_as_number": 2,
        "unit_concept_id": 0,
    },
    "concept_ancestor": {"ancestor_concept_id": 0, "descendant_concept_id": 0},
}
TYPES = ("integer", "date", "double precision")
VOCABULARY = {"concept_ancestor": [(50, 50), (50, 51), (60, 61)]}
COVARIATES = {
    "age": {"from": "age", "range": [18, 90], "cuts": [50], "missing": 50},
    "sex": {"from": "sex"},
    "year": {"from": "year", "range": [2015, 2025], "cuts": [2020]},
    "ill": {"from": "condition", "concepts": [60], "days": [-20, -1]},
    "exactly": {"from": "condition", "concepts": [60], "descendants": False, "days": [-20, -5]},
    "sbp": {
        "from": "measurement",
        "concepts": [70],
        "days": [-15, -1],
        "range": [80, 220],
        "cuts": [100],
        "missing": 120,
        "unit": 8,
        "descendants": False,
    },
}
BASE = {"target": 1, "comparator": 2, "washout": 10, "covariates": COVARIATES}
FIXED = {"start": 1, "end": 20}
SPECIFICATIONS = (
    {"outcome": 3, "time_at_risk": FIXED, "prior_outcome": 30, "both": "first"},
    {"outcome": 3, "time_at_risk": {"start": 0, "end": 9}, "prior_outcome": "ever", "both": "exclude"},
    {
        "outcome": {"from": "condition", "concepts": [50]},
        "time_at_risk": {"start": 2, "end": 5, "end_anchor": "cohort end"},
        "prior_outcome": 0,
        "both": "first",
        "kind": "survival",
        "horizon": 40,
    },
    {
        "outcome": {"from": "condition", "concepts": [50], "descendants": False},
        "time_at_risk": {"start": 0, "end": 8, "start_anchor": "cohort end", "end_anchor": "cohort end"},
        "prior_outcome": "keep",
        "both": "exclude",
        "kind": "survival",
    },
)


def records(rng, person):
    """Return all records of a person, by table; days are counted from `ORIGIN`."""

    def days(most, low=-40, high=40):
        return rng.integers(low, high, rng.integers(0, most + 1)).tolist()

    def perhaps(value, share=0.15):
        return None if rng.random() < share else value

    starts = days(2) + days(1, -10, 5)
    entries = [(int(rng.integers(1, 3)), start) for start in starts]
    entries = entries * int(rng.integers(1, 3)) + [(3, day) for day in days(2)]
    periods = [(day, day + int(rng.integers(0, 80))) for day in days(2, -60, 20)]
    ill = [(int(rng.choice([50, 51, 60, 61, 62])), day) for day in days(4, -30, 40)]
    values = rng.choice([90.0, 100.0, 100.5, math.nan], 8)
    measured = [(70 + int(rng.random() < 0.2), day) for day in [*days(5, -8, 2), -3]]
    return {
        "cohort": [
            (kind, person, start, perhaps(start + int(rng.integers(-2, 25)))) for kind, start in entries
        ],
        "person": [(person, perhaps(int(rng.integers(1930, 2000))), int(rng.choice([8507, 8532, 0])))],
        "observation_period": [(person, *period) for period in periods],
        "condition_occurrence": [(person, *each) for each in ill],
        "measurement": [
            (person, *each, perhaps(float(values[place])), int(rng.choice([8, 9])))
            for place, each in enumerate(measured)
        ],
    }


def database(people):
    """Return a DuckDB connection with the records of people."""
    connection = duckdb.connect(config={"threads": 1})
    for table, columns in COLUMNS.items():
        cells = zip(*dated(table, people), strict=True) if dated(table, people) else [[] for _ in columns]
        kinds = [(pa.int32(), pa.date32(), pa.float64())[kind] for kind in columns.values()]
        arrays = [pa.array(list(each), kind) for each, kind in zip(cells, kinds, strict=True)]
        connection.register("given", pa.table(arrays, names=list(columns)))
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM given")
    connection.unregister("given")
    return connection


def dated(table, people):
    """Return the rows of a table as a database holds them."""
    kinds = COLUMNS[table].values()
    rows = VOCABULARY.get(table) or [row for each in people for row in each.get(table, [])]
    return [tuple(cell(*each) for each in zip(row, kinds, strict=True)) for row in rows]


def cell(value, kind):
    return ORIGIN + datetime.timedelta(value) if kind == 1 and value is not None else value


def below(concepts, descendants=True):
    pairs = VOCABULARY["concept_ancestor"] if descendants else []
    return {*concepts, *(low for high, low in pairs if high in concepts)}


def read(asked, held):
    """Return the row of a person from their records, or None without an entry to either cohort."""
    entries = [(start, kind, end) for kind, _, start, end in held["cohort"] if kind in (1, 2)]
    if not entries:
        return None
    index = min(start for start, _, _ in entries)
    now = [each for each in entries if each[0] == index]
    arms = {kind for _, kind, _ in (now if asked["both"] == "first" else entries)}
    seen = [(low, high) for _, low, high in held["observation_period"] if low <= index <= high]
    if not seen or len(arms) > 1 or min(low for low, _ in seen) > index - asked["washout"]:
        return {"eligible": 0}
    last = max(high for _, high in seen)
    ends = [end for _, _, end in now if end is not None]
    ended = max(index, min(last, max(ends) if ends else last))
    risk = asked["time_at_risk"]
    anchor = {"cohort start": index, "cohort end": ended}
    first_day = anchor[risk.get("start_anchor", "cohort start")] + risk["start"]
    last_day = min(last, anchor[risk.get("end_anchor", "cohort start")] + risk["end"])
    outcome = asked["outcome"]
    if isinstance(outcome, int):
        events = [start for kind, _, start, _ in held["cohort"] if kind == outcome]
    else:
        wanted = below(outcome["concepts"], outcome.get("descendants", True))
        events = [day for _, concept, day in held["condition_occurrence"] if concept in wanted]
    back = {"ever": math.inf, "keep": -math.inf}.get(asked["prior_outcome"], asked["prior_outcome"])
    prior = back >= 0 and any(index - back <= day < first_day for day in events)
    if prior or first_day > last_day:
        return {"eligible": 0}
    inside = [day for day in events if first_day <= day <= last_day]
    found = {"eligible": 1, "target": int(arms == {1})}
    if asked.get("kind") == "survival":
        found |= {"days": min([last_day, *inside]) - first_day + 1, "event": int(bool(inside))}
    else:
        found["outcome"] = int(bool(inside))
    return found | covariates(held, index)


def covariates(held, index):
    _, born, gender = held["person"][0]
    year = (ORIGIN + datetime.timedelta(index)).year
    ill = [(concept, day - index) for _, concept, day in held["condition_occurrence"]]
    measured = [
        (day, value)
        for _, concept, day, value, unit in held["measurement"]
        if concept == 70 and unit == 8 and -15 <= day - index <= -1
        if value is not None and not math.isnan(value)
    ]
    return {
        "age": None if born is None else year - born,
        "sex": {8507: "male", 8532: "female"}.get(gender, "other"),
        "year": year,
        "ill": int(any(concept in (60, 61) and -20 <= day <= -1 for concept, day in ill)),
        "exactly": int(any(concept == 60 and -20 <= day <= -5 for concept, day in ill)),
        "sbp": max(measured)[1] if measured else None,
    }


def rows_of(found, eligible):
    """Return the rows of a query by person: all columns of those who are eligible."""
    columns = found.columns
    rows = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    assert len({row["person_id"] for row in rows}) == len(rows), "one row for each person"
    return {row.pop("person_id"): tidy(row, eligible) for row in rows}


def tidy(row, eligible):
    row["eligible"] = row.pop(eligible)
    return row if row["eligible"] else {"eligible": 0}


def people_of(seed, count):
    rng = np.random.default_rng(seed)
    return [records(rng, person) for person in range(count)]
