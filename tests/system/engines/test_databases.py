"""Tables in databases and DuckDB over files: the same strata as numpy, to the bit."""

import sqlite3
import traceback
from contextlib import closing
from functools import partial

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.system.engines.databases import Postgres, make
from tests.thinned import thinned

import counterveil as cv
from counterveil.data import (
    Categories,
    Drop,
    Layout,
    Range,
    Study,
    Table,
    batches,
    check_columns,
    histogram_of_rows,
    histogram_of_source,
    open_table,
    rows_of_source,
    strata_of_source,
)
from counterveil.errors import CounterveilError, DataError

ibis = pytest.importorskip("ibis", reason="ibis is not installed (counterveil[ibis])")
# Missing values, covariates that make strata, and whether prefixes are asked for.
CASES = [("fill", "all", False), ("drop", "floats", True), ("fill", "two", True), ("none", "exact", False)]
SIMPLE = Study(cv.Treatment("arm", treated="new"), cv.Outcome("y", (0, 1)), {"x": Range(0, 1).cut("1/2")})


# One test an engine. Spark is left to `make test-all` here: with it each process of the tests would start one.
@pytest.mark.parametrize(
    "kind", thinned(["duckdb", "postgres", "spark", "sqlite", "polars"], "duckdb", "postgres", "sqlite")
)
def test_every_database_gives_the_same_strata(kind, make_case, to_bits, request, tmp_path):
    database = make(kind, request, tmp_path)
    tables = {}
    for missing, names, _ in CASES:
        case, gappy = make_case(missing, names), missing != "none"
        if gappy not in tables:
            tables[gappy] = database.table(f"people_{gappy}".lower(), case.rows)
        found = strata_of_source(tables[gappy], case.study, case.layout)
        assert to_bits(found) == case.expected(), (missing, names)
    everywhere(tables[False])


def everywhere(table):
    """Check what needs no more than one query, on an engine that runs already."""
    case_rows = table.to_pyarrow()
    study = Study(cv.Treatment("arm", treated="new"), cv.Outcome("y", (0, 1)), {"x": Range(0, 1)})
    grid = tuple(Range(0, 1).cut(*(f"{place}/200" for place in range(1, 200))).cuts)
    counts = histogram_of_source(table, study, "x", grid)
    assert counts.tolist() == histogram_of_rows(Table.attach(case_rows, study), "x", grid).tolist()
    # Whatever expression the user made of the table is counted, and not the table below it.
    half = table.filter(table.id > 0).mutate(x=table.y)
    layout = Layout.of(SIMPLE)
    expected = strata_of_source(half.to_pyarrow(), SIMPLE, layout)
    found = strata_of_source(half, SIMPLE, layout)
    assert found.treated.tolist() == expected.treated.tolist()
    assert found.treated_square.tolist() == expected.treated_square.tolist()
    whole_answers(half)
    refusals(table)


def whole_answers(table):
    """The same noise on the same strata is the same answer, wherever the rows lie."""
    rows = table.to_pyarrow()
    for words in ({}, {"cuts": {"x": 3}}):
        study = (
            Study(
                cv.Treatment("arm", treated="new"),
                cv.Outcome("y", (0, 1)),
                {"x": Range(0, 1)},
            )
            if "cuts" in words
            else SIMPLE
        )
        there, here = (
            cv.ate(
                source,
                study,
                protects="record",
                epsilon=1,
                method="stratified",
                settings=cv.settings.Stratified(**words),
                noise=cv.SeededNoise(3),
            ).to_dict()
            for source in (table, rows)
        )
        assert there == here


URLS = [
    "mysql://steward:5ecret@127.0.0.1:1/registry",
    "clickhouse://steward:a/5ecret@127.0.0.1:1/registry",
    "nowhere://host/registry?access_token=5ecret&x=1",
    "sqlite:///nowhere/people.db?password=5ecret",
]


def test_a_password_is_in_no_result_ledger_report_or_error(request, tmp_path, capfd, caplog):
    database = Postgres(request.getfixturevalue("cluster"))
    database.table(
        "patients", pa.table({"t": [1, 0] * 50, "y": [0.75, 0.25] * 50, "x": [0.2, 0.2, 0.8, 0.8] * 25})
    )
    # Every password opens this server.
    url = f"postgresql://steward:5ecret@127.0.0.1:{request.getfixturevalue('cluster').port}/postgres"
    study = Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": Range(0, 1).cut("1/2")})
    found = []
    with cv.open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        session = cv.Session(
            open_table(url, "patients"), study, budget=cv.Budget(9), ledger=ledger, dataset="a"
        )
        session.publish("t", "x")
        for method in ("stratified", "difference_in_means"):
            result = session.ate(protects="outcome", epsilon=1, method=method)
            found += [result, repr(result), result.full(), result.to_dict(), session.batches]
        result.to_html(tmp_path / "report.html")
        found += [repr(session), *ledger.entries()]
        broken = cv.Session(
            open_table(url, "patients"), study, budget=cv.Budget(9), ledger=ledger, dataset="b"
        )
        with database.connection.con.cursor() as cursor:
            cursor.execute("ALTER TABLE patients DROP COLUMN y")
        database.connection.con.commit()
        for attempt in (
            lambda: broken.ate(protects="outcome", epsilon=1, method="stratified"),
            lambda: broken.ate(protects="outcome", epsilon=1, method="difference_in_means"),
            *(partial(open_table, one, "people") for one in [url, *URLS]),
        ):
            with pytest.raises(CounterveilError) as caught:
                attempt()
            found += [caught.value, *traceback.format_exception(caught.value)]
    said = "".join(map(str, found)) + "".join(capfd.readouterr()) + caplog.text
    assert "5ecret" not in said
    assert not [file for file in tmp_path.iterdir() if b"5ecret" in file.read_bytes()]


def test_sqlite_by_its_address(tmp_path):
    """Large whole numbers beside gaps, and a fraction in a column of integers, are read as they are written."""
    with closing(sqlite3.connect(tmp_path / "people.db")) as connection:
        connection.execute("CREATE TABLE people (who integer, t integer, y integer, k integer)")
        cells = [(2**53 + n, n % 2, None if n < 2 else 1, 1.5 if n % 3 else 1) for n in range(12)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", cells)
        connection.commit()
    table = open_table(f"sqlite://{tmp_path}/people.db", "people")
    known = {"k": Categories([1, 2, 1.5])}
    study = Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), known, people="who", missing={"y": Drop()}
    )
    found = rows_of_source(table, study)
    assert found.rows == 10
    assert sorted(found.covariates["k"].tolist()) == [0] * 3 + [2] * 7
    with pytest.raises(CounterveilError, match="CV-D051"):
        check_columns(ibis.table(table.schema(), name="nowhere"), study)
    with pytest.raises(CounterveilError, match="CV-S017"):
        check_columns(
            table, Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), known, clusters="who")
        )
    with pytest.raises(DataError, match="CV-D070"):
        open_table(f"sqlite://{tmp_path}/people.db", None)


MOMENTS = """
    CREATE TABLE moments AS SELECT n, n / 2 AS id, n / 2 % 2 AS arm, CAST(n % 2 * 9 AS float) AS y,
        timestamptz '2024-10-27 00:16:40+00' + n % 2 * interval '3599 s' AS zoned,
        timestamp '2024-01-31 12:00' + n % 2 * interval '1 day 0.5 s' AS plain,
        date '2024-01-31' + n % 2 AS day,
        CASE n % 2 WHEN 0 THEN date '2024-01-31' ELSE 'infinity' END AS ending,
        time '09:00' + n % 2 * interval '2 h' AS hour
    FROM generate_series(0, 7) AS rows_1(n) ORDER BY n % 3, n
"""


def test_moments_in_postgres_keep_their_order(request, monkeypatch):
    """In a session that writes days first and has the zone of a place where summer time ends."""
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 3)
    connection = Postgres(request.getfixturevalue("cluster")).connection
    with connection.con.cursor() as cursor:
        cursor.execute(
            "SET DateStyle = 'German'; SET TimeZone = 'Europe/Berlin'; DROP TABLE IF EXISTS moments"
        )
        cursor.execute(MOMENTS)
    connection.con.commit()
    table = connection.table("moments")
    for order in ("zoned", "plain", "day", "ending", "hour"):
        last = Study(
            cv.Treatment("arm", control=0),
            cv.Outcome("y", (0, 9)),
            people=cv.People("id", rules={"y": "last"}, order=order),
        )
        assert Table.attach(table, last).outcome.tolist() == [2**24] * 4, order
        spooled = rows_of_source(table, last)
        assert [y for part in spooled.batches() for y in part.outcome.tolist()] == [2**24] * 4, order


def refusals(table):
    def code(call):
        with pytest.raises(DataError) as caught:
            call()
        return caught.value.code

    layout = Layout.of(SIMPLE)
    if table.get_backend().name not in ("duckdb", "postgres"):
        assert code(lambda: Table.attach(table, SIMPLE)) == "CV-D050"
    assert code(lambda: check_columns(table.drop("x"), SIMPLE)) == "CV-D001"
    if table.get_backend().name != "sqlite":  # where every text is a number
        failing = table.mutate(x=table.Word.cast("float64"))
        assert code(lambda: strata_of_source(failing, SIMPLE, layout)) == "CV-D016"
    if table.get_backend().name in ("postgres", "pyspark"):
        text = table.mutate(x=table.x.cast("string"))
        assert code(lambda: strata_of_source(text, SIMPLE, layout)) == "CV-D052"


def parquet(rows, folder):
    pyarrow.parquet.write_table(rows, folder / "rows.parquet", row_group_size=100)
    return folder / "rows.parquet"


def parquet_parts(rows, folder):
    for part in range(3):
        pyarrow.parquet.write_table(rows.slice(part * 200, 200), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def csv(rows, folder):
    pyarrow.csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def relation(rows, folder):
    return duckdb.connect().execute("CREATE TABLE rows AS SELECT * FROM rows").table("rows")


def pandas(rows, folder):
    return rows.to_pandas(ignore_metadata=True)


def polars(rows, folder):
    return pl.from_arrow(rows)


def polars_lazy(rows, folder):
    return pl.from_arrow(rows).lazy()


def arrow(rows, folder):
    return rows


def arrays(rows, folder):
    return rows.to_pydict()


SOURCES = [parquet, parquet_parts, csv, relation, pandas, polars, polars_lazy, arrow, arrays]
# How a column is read depends on its source and on the rule for missing values, and "all" has every column. Which of
# them make strata is left to the engine, which sees one table whatever the source: parquet files stand for all.
PAIRS = [
    pytest.param(
        source,
        (missing, names),
        id=f"{source.__name__}-{missing}-{names}",
        marks=() if missing == "fill" or (source is parquet and names == "all") else pytest.mark.slow,
    )
    for source in SOURCES
    for missing in ("fill", "drop", "none")
    for names in ("all", "two", "exact", "floats", "one", "none")
    if source is parquet or names == "all"
]


@pytest.mark.parametrize(("source", "case"), PAIRS, indirect=["case"])
def test_every_source_gives_the_same_strata(case, source, to_bits, tmp_path):
    made = source(case.rows, tmp_path)
    assert to_bits(strata_of_source(made, case.study, case.layout)) == case.expected()
