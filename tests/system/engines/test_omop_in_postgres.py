"""OMOP tables in PostgreSQL: the rows and the answer are those of DuckDB."""

from types import SimpleNamespace

import pytest
from tests.unit.omop.readings import BASE, COLUMNS, SPECIFICATIONS, TYPES, database, dated, people_of, rows_of

import counterveil as cv

ibis = pytest.importorskip("ibis", reason="ibis is not installed (counterveil[ibis])")
PEOPLE = 400


@pytest.fixture(scope="module")
def url(cluster):
    backend = ibis.connect(cluster.url)
    people = people_of(1, PEOPLE)
    with backend.con.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS cdm CASCADE; CREATE SCHEMA cdm")
        for table, columns in COLUMNS.items():
            said = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns.items())
            cursor.execute(f"CREATE TABLE cdm.{table} ({said})")
            with cursor.copy(f"COPY cdm.{table} FROM STDIN") as copy:
                for row in dated(table, people):
                    copy.write_row(row)
    backend.con.commit()
    return cluster.url


@pytest.mark.parametrize("told", SPECIFICATIONS)
def test_rows_and_answers_are_those_of_duckdb(url, told):
    asked = cv.omop.Specification(**BASE | told)
    here = cv.omop.cohort_study(database(people_of(1, PEOPLE)), asked)
    there = cv.omop.cohort_study(url, asked, schema="cdm")
    rows = there.rows.get_backend().raw_sql(there.sql)
    found = SimpleNamespace(columns=[each.name for each in rows.description], fetchall=rows.fetchall)
    assert rows_of(found, asked.eligible) == rows_of(here.rows, asked.eligible)
    question = cv.ate if asked.kind == "binary" else cv.survival
    said = {"protects": "record", "epsilon": 5, "method": "stratified"}
    answers = [question(each.rows, each.study, **said, noise=cv.SeededNoise(1)) for each in (here, there)]
    assert answers[0].to_dict() == answers[1].to_dict()


def test_absent_tables_are_refused(url):
    with pytest.raises(cv.CounterveilError) as error:
        cv.omop.cohort_study(
            ibis.connect(url), cv.omop.Specification(**BASE | SPECIFICATIONS[0]), schema="absent"
        )
    assert error.value.code == "CV-D902"
