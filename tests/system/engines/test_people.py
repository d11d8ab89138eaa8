"""People with several rows have one row each, to the bit, wherever their rows lie and however they are spread."""

import duckdb
import pyarrow.parquet
import pytest
from tests.system.engines.databases import make
from tests.system.engines.people import (
    KNOWN,
    STUDIES,
    bits,
    bits_in_spark,
    check_people,
    columns,
    refused_alike,
    study,
    visits,
)

import counterveil as cv
from counterveil.data import SpooledRows, Table, batches, open_table, rows_of_source
from counterveil.data.table import joined_tables


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
