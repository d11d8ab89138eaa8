"""People with several rows have one row each, to the bit, wherever their rows lie and however they are spread."""

import gc
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.system.engines.databases import make
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import SpooledRows, Table, batches, open_table, rows_of_source
from counterveil.data.spark import SparkRows
from counterveil.data.table import Survey, joined_tables
from counterveil.errors import CounterveilError

PEOPLE = 150
DROP, FILL = cv.Drop(), cv.Fill(4)
KNOWN = {"age": cv.Range(0, 9), "site": cv.Categories(["a", "b"])}


def visits(seed=0):
    """Return rows of people, one person's far apart, with ids of every type, ties in their order, and gaps."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(PEOPLE), rng.integers(1, 9, PEOPLE)))
    rows = len(who)

    def gaps(share):
        return rng.random(rows) < share

    blanks = np.array(["", " ", "\t", "\x0b ", "\n"])[rng.integers(0, 5, rows)]
    zeros = np.where(who == 0, rng.choice([0.0, -0.0], rows), who * 3.0 - 40)
    written = ["{}", "0{}", "+{}", "{}.0", "{}.", " {}.00\t", "{}e0", "{}.0E+00", " {}0e-1"]
    spelled = [written[code] for code in rng.integers(0, 9, rows)]
    return pa.table(
        {
            "whole": who * 3 - 40,
            "text": [f"{blank}Ü{each}{blank}" for blank, each in zip(blanks, who.tolist(), strict=True)],
            "real": zeros,
            # One number in many spellings, and texts that are none.
            "spelled": [
                f"-{one.format(each)}".replace("-+", "-").replace("- ", " -")
                if each % 3 == 0
                else one.format(each)
                for one, each in zip(spelled, who.tolist(), strict=True)
            ],
            # Some of them so small that Python writes them with an exponent, on both sides of zero.
            "exact": pa.array([Decimal(each - 40).scaleb(-7) for each in who.tolist()], pa.decimal128(12, 7)),
            "arm": who % 2,
            "y": pa.array(rng.normal(4, 3, rows), mask=gaps(0.1)),
            "count": rng.integers(1, 4, rows).astype(np.float64),
            "age": pa.array(rng.normal(4, 3, rows), mask=gaps(0.05)),
            "site": pa.array(rng.choice(["a", "b"], rows), mask=gaps(0.05)),
            "day": pa.array(rng.integers(0, 4, rows), mask=gaps(0.1)),
            "date": pa.array(rng.integers(18000, 18005, rows).astype("datetime64[D]")),
        }
    )


def study(person, **more):
    usual = {"missing": {"y": DROP, "age": FILL, "site": cv.Fill("a")}, "covariates": KNOWN}
    return study_of("arm", "y", (0, 9), control=0, randomised=True, person=person, **(usual | more))


STUDIES = {
    "text": study("text", order="date", max_rows_per_person=3, per_person={"y": "last", "age": "mean"}),
    "whole": study(
        "whole",
        covariates={"age": KNOWN["age"]},
        per_person={"age": "mean"},
        missing={"y": DROP, "age": FILL},
    ),
    "real": study(
        "real", order="day", per_person={"y": "sum", "arm": "ever", "site": "last"}, where="age < 8"
    ),
    "spelled": study("spelled", order="day", max_rows_per_person=2, per_person={"y": "first"}),
    "exact": study(
        "exact", covariates={}, denominator="count", denominator_range=(0, 30), missing={"y": FILL}
    ),
    "cluster": study(
        None, cluster="whole", protects_cluster=True, order="day", per_cluster={"age": "max", "site": "last"}
    ),
}


def bits(table):
    """Return the rows of a table in an order of their own, to the bit."""
    return sorted(zip(*columns(table), strict=True))


def bits_in_spark(rows):
    """Return the same of rows in Spark."""
    kept = rows.frame.where("held IS NOT NULL").toArrow().to_batches()
    return sorted(row for table in rows.reading.tables(kept, Survey(rows.study)) for row in bits(table))


def columns(table):
    """Return the columns of a table as lists."""
    return [
        column.tolist() for column in (table.arm, table.outcome, *table.covariates.values(), *table.measures)
    ]


def check_people(there):
    """Check that rows in Spark become the same as here, are kept no longer than needed, and are refused alike."""
    declared = STUDIES["text"]
    found, wanted = rows_of_source(there, declared), Table.attach(visits(), declared)
    assert isinstance(found, SparkRows)
    assert found.rows == wanted.rows
    assert bits_in_spark(found) == bits(wanted)
    frame = found.frame
    assert frame.is_cached
    del found
    gc.collect()
    assert not frame.is_cached
    refused_alike(there.mutate(text=(there.y > 5).ifelse(" NA ", there.text)), "CV-D019")


def refused_alike(there, code):
    """Check that rows in Spark are refused as those in memory are."""
    declared = study("text", per_person={"arm": "constant"}, order="date")
    with pytest.raises(CounterveilError) as found:
        rows_of_source(there, declared)
    with pytest.raises(CounterveilError) as wanted:
        Table.attach(there.to_pyarrow(), declared)
    assert (str(found.value), found.value.code) == (str(wanted.value), code)


@pytest.mark.parametrize("name", STUDIES)
def test_large_files_and_relations(name, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 64)
    rows, declared = visits(), STUDIES[name]
    wanted = Table.attach(rows, declared)
    pyarrow.parquet.write_table(rows, tmp_path / "visits.parquet", row_group_size=100)
    for source in (tmp_path / "visits.parquet", duckdb.from_arrow(rows)):
        found = rows_of_source(source, declared)
        assert isinstance(found, SpooledRows)
        assert found.rows == wanted.rows
        # In the same order too: a person's row stands where it would in memory.
        joined = joined_tables(list(found.batches()))
        assert columns(joined) == columns(wanted)
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", "none")
    assert isinstance(rows_of_source(tmp_path / "visits.parquet", declared), Table)


@pytest.fixture(scope="module")
def in_spark(request, tmp_path_factory):
    return make("spark", request, tmp_path_factory.mktemp("people")).table("visits", visits())


@pytest.mark.slow
def test_refusals_and_what_spark_keeps(in_spark):
    check_people(in_spark)
    refused_alike(in_spark.mutate(arm=in_spark.day), "CV-D020")


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_in_every_partitioning(name, in_spark, spark):
    rows, declared = visits(), STUDIES[name]
    wanted = bits(Table.attach(rows, declared))
    for count in (1, 2, 7):
        found = rows_of_source(spark.table("visits").repartition(count), declared)
        assert bits_in_spark(found) == wanted
    assert bits_in_spark(rows_of_source(open_table("spark://", "visits"), declared)) == wanted


@pytest.mark.slow
def test_questions_about_people_everywhere(in_spark, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    pyarrow.parquet.write_table(visits(), tmp_path / "visits.parquet")
    binned = KNOWN | {"age": KNOWN["age"].cut(3, 6)}
    for declared, words in (
        (STUDIES["text"], {"protects": "record", "method": "doubly_robust", "delta": "1e-6"}),
        (STUDIES["text"], {"protects": "outcome", "method": "difference_in_means"}),
        (STUDIES["exact"], {"protects": "outcome", "method": "auto"}),
        (study("whole", covariates=binned, order="day"), {"protects": "record", "method": "stratified"}),
        (study(None, covariates=binned, where="age < 8"), {"protects": "record", "method": "stratified"}),
    ):
        answers = [
            cv.ate(source, declared, epsilon=4, noise=cv.SeededNoise(3), **words).to_dict()
            for source in (visits(), in_spark, tmp_path / "visits.parquet")
        ]
        assert answers[0] == answers[1] == answers[2], words


@pytest.fixture(scope="module", params=["postgres", "sqlite", "polars"])
def there(request, tmp_path_factory):
    rows = visits().drop_columns(["exact", "date"] if request.param == "postgres" else ["exact"])
    return make(request.param, request, tmp_path_factory.mktemp("people")).table("visits", rows)


@pytest.mark.parametrize("name", ["whole", "real", "spelled", "cluster", "text"])
def test_streamed_people_stand_as_in_memory(name, there, monkeypatch):
    if "date" not in there.columns and name == "text":
        pytest.skip("dates in PostgreSQL are in test_databases.py")
    monkeypatch.setattr(batches, "STREAM_FROM", 0)
    monkeypatch.setattr(batches, "BATCH", 64)
    found = rows_of_source(there, STUDIES[name])
    assert columns(joined_tables(list(found.batches()))) == columns(Table.attach(visits(), STUDIES[name]))
