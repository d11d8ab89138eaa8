"""OMOP tables as rows of a study: cases by hand, messy tables read plainly, refusals, and answers as of a frame."""

import datetime

import duckdb
import numpy as np
import pytest
from tests.command_line import refusal, said
from tests.unit.omop.readings import BASE, FIXED, SPECIFICATIONS, database, people_of, read, records, rows_of

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil_lab import omop

HAND = {"target": 1, "comparator": 2, "outcome": 3, "washout": 10, "prior_outcome": 30, "both": "first"}
HAND |= {"time_at_risk": FIXED, "kind": "survival"}
SEEN = (-100, 100)
# Entries and outcomes as (cohort, first day, last day), the period of observation, and what is expected.
CASES = {
    "no event: all 20 days": ([(1, 0, 9)], SEEN, (1, 20, 0)),
    "event on the first day": ([(1, 0, 9), (3, 1, 1)], SEEN, (1, 1, 1)),
    "event on the last day": ([(2, 0, 9), (3, 20, 20)], SEEN, (0, 20, 1)),
    "event a day later": ([(2, 0, 9), (3, 21, 21)], SEEN, (0, 20, 0)),
    "first of two events": ([(1, 0, 9), (3, 7, 7), (3, 5, 5)], SEEN, (1, 5, 1)),
    "observation ends first": ([(1, 0, 9), (3, 9, 9)], (-100, 8), (1, 8, 0)),
    "no day at risk": ([(1, 0, 9)], (-100, 0), None), "just observed enough": ([(1, 0, 9)], (-10, 100), (1, 20, 0)),
    "observed a day too briefly": ([(1, 0, 9)], (-9, 100), None), "never observed": ([(1, 0, 9)], (50, 100), None),
    "outcome at the index": ([(1, 0, 9), (3, 0, 0)], SEEN, None),
    "outcome within the lookback": ([(1, 0, 9), (3, -30, 0)], SEEN, None),
    "outcome before the lookback": ([(1, 0, 9), (3, -31, 0)], SEEN, (1, 20, 0)),
    "in both, comparator first": ([(1, 5, 9), (2, 0, 9)], SEEN, (0, 20, 0)),
    "in both on one day": ([(1, 0, 9), (2, 0, 9)], SEEN, None),
    "the first of two entries": ([(1, 0, 9), (1, 30, 40), (3, 35, 35)], SEEN, (1, 20, 0)),
}  # fmt: skip


def rows(connection, told):
    asked = cv.omop.Specification(**told)
    found = cv.omop.cohort_study(connection, asked)
    return rows_of(found.rows, asked.eligible), found.study


def person(number, entries, seen):
    none = {"person": [(number, 1960, 8507)], "condition_occurrence": [], "measurement": []}
    cohort = [(kind, number, first, last) for kind, first, last in entries]
    return none | {"cohort": cohort, "observation_period": [(number, *seen)]}


def test_time_at_risk_washout_prior_outcomes_and_both_cohorts_by_hand():
    people = [person(place, *case[:2]) for place, case in enumerate(CASES.values())]
    found, _ = rows(database(people), HAND)
    for place, (name, (_, _, expected)) in enumerate(CASES.items()):
        row = found[place]
        told = (row["target"], row["days"], row["event"]) if row["eligible"] else None
        assert told == expected, name


@pytest.mark.parametrize("told", SPECIFICATIONS)
def test_the_query_agrees_with_a_plain_reading(told):
    people = people_of(1, 300)
    found, study = rows(database(people), BASE | told)
    expected = {place: read(BASE | told, held) for place, held in enumerate(people)}
    assert found == {place: row for place, row in expected.items() if row is not None}
    eligible = [row for row in found.values() if row["eligible"]]
    assert len(eligible) > 20
    assert len({row["target"] for row in eligible}) == 2
    assert set(eligible[0]) - {"eligible"} == set(study.columns)


# Proof: src/counterveil/omop/query.proof.md
def test_all_records_of_one_person_move_one_row():
    people, rng = people_of(2, 30), np.random.default_rng(3)
    base, moved = database(people), 0
    for place in (4, 9):
        changed = records(rng, place)
        # A table that breaks the data model: the same person twice.
        changed["person"] *= 2
        other = database([*people[:place], changed, *people[place + 1 :]])
        for told in SPECIFICATIONS:
            before, after = (rows(each, BASE | told)[0] for each in (base, other))
            moved += before.pop(place, None) != after.pop(place, None)
            assert before == after
    assert moved


def test_outcomes_in_time_at_risk_move_the_outcome_alone():
    """The concept of the outcome is one of a covariate too, whose window ends before."""
    days = [None, -1, *range(10)]
    people = [person(place, [(1, 0, 9)], SEEN) for place in range(len(days))]
    for place, day in enumerate(days):
        people[place]["condition_occurrence"] = [] if day is None else [(place, 60, day)]
    told = {"outcome": {"from": "condition", "concepts": [60]}, "time_at_risk": {"start": 0, "end": 9}}
    found, _ = rows(database(people), BASE | told | {"prior_outcome": "ever", "both": "first"})
    assert [row.get("outcome") for row in found.values()] == [0, None, *[1] * 10]
    assert all(row | {"outcome": 0} == found[0] for place, row in found.items() if place != 1)


def refused(call, *args, **more):
    with pytest.raises(CounterveilError) as error:
        call(*args, **more)
    return error.value.code


def test_a_condition_stands_for_one_specification_and_fits_into_an_identifier():
    """Analysts write specifications: two of one name must take more trials than anybody has (2^65)."""
    largest = {"target": 2**31 - 1, "comparator": 2**31 - 2}
    asked = cv.omop.Specification(**BASE | SPECIFICATIONS[0] | largest)
    name, letters = asked.eligible.rsplit("_", 1)
    assert name == "eligible_in_2147483647_or_2147483646"
    assert len(set(letters)) > 8
    assert 32 ** len(letters) >= 2**130
    assert len(asked.eligible) <= 63
    longer = BASE | SPECIFICATIONS[0] | largest | {"washout": asked.washout + 1}
    assert asked.eligible != cv.omop.Specification(**longer).eligible


def test_invalid_specifications_are_refused():
    good = {**HAND, "covariates": {}}
    ill = {"from": "condition", "concepts": [5], "days": [-9, -1]}
    lab = {"from": "measurement", "concepts": [5], "days": [-9, -1], "range": [0, 9], "missing": 3}
    wrong = {
        "CV-D900": [
            {"target": True}, {"comparator": 1}, {"outcome": "stroke"}, {"washout": -1}, {"prior_outcome": "no"},
            {"both": "last"}, {"kind": "mean"}, {"kind": "binary", "horizon": 9}, {"time_at_risk": {"start": 1}},
            {"time_at_risk": {"start": 1, "end": 3, "end_anchor": "death"}},
            {"time_at_risk": {"start": 1, "end": 3, "end_anchor": "cohort end"}},
            {"outcome": {"from": "stroke", "concepts": [1]}}, {"outcome": {"from": "drug", "concepts": []}},
            {"covariates": {"age": {"from": "age"}}}, {"covariates": {"target": ill}},
            {"covariates": {"a'b": ill}}, {"covariates": {"x": ill, "X": ill}},
            {"covariates": {"x": ill | {"concepts": ["1) OR (1=1"]}}}, {"covariates": {"x": ill | {"days": 9}}},
            {"covariates": {"x": {key: lab[key] for key in lab if key != "missing"}}}, {"more": 1},
        ],
        "CV-D901": [
            {"time_at_risk": {"start": 9, "end": 3}}, {"covariates": {"x": ill | {"days": [-9, 1]}}},
            {"time_at_risk": {"start": 0, "end": 3}, "covariates": {"x": ill | {"days": [-9, 0]}}},
            {"covariates": {"x": ill | {"days": [-1, -9]}}},
        ],
        "CV-S010": [{"covariates": {"x": lab | {"missing": 99}}}],
        "CV-S002": [{"covariates": {"x": lab | {"range": [9, 0]}}}],
    }  # fmt: skip
    for code, cases in wrong.items():
        for case in cases:
            assert refused(cv.omop.Specification.from_dict, good | case) == code, case


def test_tables_that_do_not_fit_are_refused_before_a_row_is_read():
    asked = cv.omop.Specification(**BASE | SPECIFICATIONS[0])
    open_one = cv.omop.cohort_study
    assert refused(open_one, "people.csv", asked) == "CV-D904"
    assert refused(open_one, {"cohort": 1}, asked) == "CV-D904"
    assert refused(open_one, "absent.duckdb", asked) == "CV-D071"
    assert refused(open_one, duckdb.connect(), asked) == "CV-D902"
    assert refused(open_one, database([]), asked, schema="cdm") == "CV-D902"
    assert refused(open_one, database([]), asked, schema='cdm"; DROP TABLE person; --') == "CV-D900"
    for change in (
        "ALTER TABLE cohort ALTER cohort_start_date TYPE varchar",
        "ALTER TABLE person DROP year_of_birth",
        "ALTER TABLE measurement ALTER value_as_number TYPE varchar",
        "ALTER TABLE observation_period ALTER observation_period_end_date TYPE timestamptz",
        "ALTER TABLE condition_occurrence ALTER condition_concept_id TYPE double",
    ):
        connection = database([])
        connection.execute(change)
        assert refused(open_one, connection, asked) == "CV-D903", change


def test_open_ends_and_moments_are_read_as_days():
    connection = database([person(0, [(1, 0, 9)], SEEN), person(1, [(2, 0, 9)], SEEN)])
    connection.execute("UPDATE observation_period SET observation_period_end_date = DATE 'infinity'")
    connection.execute("UPDATE cohort SET cohort_end_date = DATE 'infinity' WHERE subject_id = 1")
    connection.execute("ALTER TABLE cohort ALTER cohort_start_date TYPE timestamp")
    connection.execute("UPDATE cohort SET cohort_start_date = cohort_start_date + INTERVAL 17 HOUR")
    risk = {"start": 1, "end": 0, "end_anchor": "cohort end"}
    found, _ = rows(connection, HAND | {"time_at_risk": risk, "horizon": 90})
    assert found[0]["days"] == 9
    assert found[1]["days"] == (datetime.date(9999, 12, 31) - datetime.date(2020, 1, 1)).days


TOLD = """
target = 1
comparator = 2
outcome = { from = "condition", concepts = [4329847] }
washout = 365
prior_outcome = "ever"
both = "first"
time_at_risk = { start = 1, end = 365 }

[covariates]
age = { from = "age", range = [40, 80], cuts = [60] }
diabetes = { from = "condition", concepts = [201820], days = [-365, -1] }
"""
PLACES = ("--schema", "cdm", "--cohort-schema", "results")


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    folder = tmp_path_factory.mktemp("omop")
    with duckdb.connect(folder / "hospital.duckdb") as connection:
        tables = omop.tables(1500, 1)
        omop.written(connection, {"cohort": tables.pop("cohort")}, "results")
        omop.written(connection, tables, "cdm")
    (folder / "effect.toml").write_text(TOLD)
    (folder / "curves.toml").write_text('kind = "survival"' + TOLD)
    return folder


@pytest.mark.parametrize(("name", "ask"), [("effect", cv.ate), ("curves", cv.survival)])
def test_answers_are_those_of_a_frame_of_the_rows(hospital, name, ask):
    found = cv.omop.cohort_study(hospital / "hospital.duckdb", hospital / f"{name}.toml", "cdm", "results")
    asked = {"protects": "record", "epsilon": 1, "method": "stratified"}
    one = ask(found.rows, found.study, **asked, noise=cv.SeededNoise(1))
    frame = found.rows.order("person_id DESC").arrow().read_all()
    two = ask(frame, found.study, **asked, noise=cv.SeededNoise(1))
    assert one.to_dict() == two.to_dict()
    facts = " ".join(one.guarantee.public)
    assert "belonging to them is public by declaration and not protected" in facts
    assert "the number of people, by 'person_id'" in facts


def test_from_tables_to_a_report_and_a_ledger(hospital, monkeypatch):
    monkeypatch.chdir(hospital)
    command = ("omop", "hospital.duckdb", *PLACES, "--specification")
    shown = said(*command, "effect.toml", "--study-out", "study.toml")
    assert shown.strip() == (hospital / "study.toml").read_text().strip()
    policy = said("ledger", "access-policy", "--study", "study.toml", "--protects", "record")
    (hospital / "policy.toml").write_text(policy)
    said("ledger", "create", "book.db", "--dataset", "h", "--epsilon", "2", "--access-policy", "policy.toml")
    asked = ("--protects", "record", "--epsilon", "1")
    spent = (*asked, "--ledger", "book.db")
    said(*command, "effect.toml", *spent, "--report", "effect.html")
    assert "eligible_in_1_or_2_" in (hospital / "effect.html").read_text()
    assert refusal(*command, "effect.toml", "--epsilon", "1") == "CV-P001"  # no level is chosen unasked
    # Another specification chooses other people, whom the access policy does not list.
    (hospital / "other.toml").write_text(TOLD.replace("washout = 365", "washout = 300"))
    assert refusal(*command, "other.toml", *spent) == "CV-L080"
    said(*command, "curves.toml", *asked, "--report", "curves.md")
    assert refusal(*command, "curves.toml", *asked, "--estimand", "ATT") == "CV-D900"
