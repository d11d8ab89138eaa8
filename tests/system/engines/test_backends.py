"""Every question that is answered in passes has one answer, to the bit, wherever its rows lie."""

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.system.engines.databases import make
from tests.thinned import examples, thinned
from tests.unit.estimators.moments.pass_questions import (
    ARMS,
    COVARIATES,
    EVENTS,
    MISSING,
    QUESTIONS,
    RULE,
    SEVERAL,
    WORDS,
    answered,
    people,
    study,
)
from tools.golden.ways import Slope
from tools.loose_study import study_of
from tools.reference.backends_page import BY_ROWS, lines

import counterveil as cv
from counterveil.data import (
    Layout,
    SpooledRows,
    StreamedRows,
    Table,
    batches,
    open_table,
    rows_of_source,
    strata_of_source,
)
from counterveil.data.spark import SparkRows
from counterveil.errors import CounterveilError, DataError


@pytest.fixture(scope="module")
def known():
    """The answers of rows in memory, each found when it is asked for."""
    tables = {randomised: Table.attach(people(randomised), study(randomised)) for randomised in (False, True)}

    class Known(dict):
        def __missing__(self, name):
            randomised, ask = QUESTIONS[name]
            self[name] = answered(ask, tables[randomised])
            return self[name]

    return Known()


@pytest.fixture
def stream_everything(monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)


def check(sources, known, names=tuple(QUESTIONS)):
    for name in names:
        randomised, ask = QUESTIONS[name]
        assert answered(ask, sources[randomised]) == known[name], name


@pytest.mark.parametrize("scratch", ["folder", "none"])
def test_files_and_relations(known, tmp_path, scratch, monkeypatch, stream_everything):
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(tmp_path) if scratch == "folder" else scratch)
    for randomised in (False, True):
        pyarrow.parquet.write_table(
            people(randomised), tmp_path / f"{randomised}.parquet", row_group_size=700
        )
    files = {randomised: tmp_path / f"{randomised}.parquet" for randomised in (False, True)}
    check(files, known, ["doubly robust"] + ["overlap"] * (scratch == "folder"))
    check({one: duckdb.read_parquet(str(file)) for one, file in files.items()}, known, ["groups"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "postgres", "sqlite", "polars"])
def test_every_question_in_files_and_databases(kind, known, request, tmp_path, stream_everything):
    if kind == "parquet":
        for one in (False, True):
            pyarrow.parquet.write_table(people(one), tmp_path / f"{one}.parquet", row_group_size=700)
        check({one: tmp_path / f"{one}.parquet" for one in (False, True)}, known)
    else:
        database = make(kind, request, tmp_path)
        check({one: database.table(f"people_{one}".lower(), people(one)) for one in (False, True)}, known)


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_tables_in_databases(kind, known, request, tmp_path, monkeypatch, stream_everything):
    database = make(kind, request, tmp_path)
    tables = {one: database.table(f"people_{one}".lower(), people(one)) for one in (False, True)}
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", str(tmp_path))
    assert isinstance(rows_of_source(tables[True], study(True)), SpooledRows)
    check(tables, known, ["doubly robust", "adjusted trial", "groups"] if kind == "postgres" else ["policy"])
    check(tables, known, ["periods of outcomes"])
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", "none")
    assert isinstance(rows_of_source(tables[True], study(True)), StreamedRows)
    check(tables, known, ["comparison"])
    monkeypatch.undo()
    # Few rows are read into memory, where every method runs.
    assert isinstance(rows_of_source(tables[True], study(True)), Table)
    check(tables, known, ["groups"])
    for words in ({"method": "matching"}, {"method": "weighting"}, {"method": "difference_in_means"}):
        words |= {"protects": "outcome", "epsilon": 1}
        sources = (tables[False], people(False))
        there, here = (cv.ate(one, study(False), noise=cv.SeededNoise(3), **words) for one in sources)
        assert there.to_dict() == here.to_dict()
    visits = people(False).append_column("who", pa.array(np.arange(3000) // 3))
    visits_there, one = database.table("visits", visits), of_visits()
    there, here = (
        answered(lambda data: cv.ate(data, one, method="trial", **WORDS), source)
        for source in (visits_there, visits)
    )
    assert there == here
    assert here["details"]["rows"] == 1000
    with pytest.raises(DataError, match="CV-D016"):
        rows_of_source(tables[True].mutate(y=tables[True].b.cast("float64")), study(True))


def of_visits():
    """Return a study of people with three rows each."""
    rules = {"t": "ever", "a": "max"}
    people = {"person": "who", "per_person": rules, "missing": {"a": cv.Fill("0.5")}}
    return study_of("t", "y", (0, 3), {"a": cv.Range(0, 1)}, control=0, **people)


@pytest.fixture
def in_spark(request, tmp_path):
    database = make("spark", request, tmp_path)
    return {one: database.table(f"people_{one}".lower(), people(one)) for one in (False, True)}


def test_spark(known, in_spark, spark):
    found = rows_of_source(in_spark[True], study(True))
    assert isinstance(found, SparkRows)
    assert found.rows == Table.attach(people(True), study(True)).rows
    assert "rows not shown" in repr(found)
    # A DataFrame is a source as well, and its partitions change no bit.
    frames = {one: spark.table(f"people_{one}".lower()).repartition(3) for one in (False, True)}
    check(frames, known, ["comparison"])
    with pytest.raises(DataError, match="CV-D071"):
        open_table("spark://", "nobody")
    with pytest.raises(DataError, match="CV-D070"):
        open_table("spark://", None)
    with pytest.raises(CounterveilError, match="CV-S017"):
        rows_of_source(in_spark[False], study(False, cluster="town"))
    refused_by_name(in_spark[False])


@pytest.mark.slow
def test_subsets_strata_and_refusals_in_spark(in_spark, to_bits):
    found = rows_of_source(in_spark[True], study(True))
    # What a command line or a site of a federation names.
    named = open_table("spark://", "people_true")
    assert rows_of_source(named, study(True)).rows == found.rows
    some = study(False, where="b in ['yes'] and a < 0.9")
    there, here = (
        answered(lambda data: cv.ate(data, some, method="trial", **WORDS), source)
        for source in (in_spark[False], people(False))
    )
    assert there == here
    layout = Layout.of(study(False), ("b",))
    there, here = (
        strata_of_source(source, study(False), layout) for source in (in_spark[False], people(False))
    )
    assert to_bits(there) == to_bits(here)
    refused_rows(in_spark[False])
    nothing_kept(in_spark[True], found)


def nothing_kept(table, kept):
    """Check that Spark keeps rows only where it may, gives back its settings, and lets go of rows when told."""
    name, session = "spark.sql.execution.arrow.maxRecordsPerBatch", kept.frame.sparkSession
    session.conf.set(name, 77)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUNTERVEIL_SCRATCH", "none")
        again = rows_of_source(table, study(True))
    assert kept.frame.is_cached
    assert not again.frame.is_cached
    assert again.facts == kept.facts
    (wanted,) = kept.run(treated_and_old)
    assert again.run(treated_and_old)[0].tolist() == wanted.tolist()
    assert session.conf.get(name) == "77"
    session.conf.unset(name)
    kept.close()
    assert not kept.frame.is_cached
    # What was lost is made anew.
    assert kept.run(treated_and_old)[0].tolist() == wanted.tolist()


def treated_and_old(table):
    return (np.array([table.treated.sum(), (table.covariates["a"] > 0.25).sum(), table.outcome.sum()]),)


@pytest.mark.slow
def test_every_question_in_spark(known, in_spark, spark, monkeypatch):
    check(in_spark, known, tuple(QUESTIONS))
    with monkeypatch.context() as patch:
        patch.setenv("COUNTERVEIL_SCRATCH", "none")
        check(in_spark, known, ["doubly robust", "overlap", "groups"])
    for count in (1, 2, 7):
        frames = {one: spark.table(f"people_{one}".lower()).repartition(count) for one in (False, True)}
        check(frames, known, ["doubly robust", "periods", "groups"])


PERIODS = {"time": "quarter", "before": [0, 1], "after": [2, 3], "missing": {"y": cv.Drop()}}
QUARTERS = study_of("t", "y", (0, 3), control=0, person="who", **PERIODS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_periods_of_people_with_several_rows(kind, request, tmp_path, stream_everything):
    rng, who = np.random.default_rng(5), np.repeat(np.arange(400), 4)
    columns = {"who": who, "quarter": np.tile(np.arange(4), 400), "t": who % 2}
    # Some have no row in a quarter.
    rows = pa.table(columns | {"y": rng.random(1600) + who % 2}).take(rng.permutation(1600)[:1580])
    source = make(kind, request, tmp_path).table("quarters", rows)
    for protects in ("outcome", "record"):
        words = {"protects": protects, "epsilon": 1}
        there, here = (
            cv.event_study(data, QUARTERS, noise=cv.SeededNoise(3), **words).to_dict()
            for data in (source, rows)
        )
        assert there == here
        assert 300 < there["details"]["rows"] < 400


def refused_rows(table):
    """Check that executors refuse rows as `Table.attach` does, and that a table which changes is noticed."""
    rows = people(False)
    wrong = {
        "b": (table.mutate(b=table.c), rows.set_column(3, "b", rows["c"])),
        "y": (table.mutate(y=table.b), rows.set_column(1, "y", rows["b"])),
        "t": (table.mutate(t=table.t + 1), rows.set_column(0, "t", pa.array(rows["t"].to_numpy() + 1))),
    }
    for source, here in wrong.values():
        with pytest.raises(CounterveilError) as there:
            rows_of_source(source, study(False))
        with pytest.raises(CounterveilError) as expected:
            Table.attach(here, study(False))
        assert str(there.value) == str(expected.value)
    kept = rows_of_source(table, study(False))
    fewer = rows_of_source(table.filter(table.y > 0.3), study(False))
    with pytest.raises(DataError, match="CV-D056"):
        replace(kept, frame=fewer.frame).run(number_of_rows)


def number_of_rows(table):
    return (np.array([table.rows]),)


def refused_by_name(table):
    """Check that what the table of methods says is refused is refused by its name, with nothing spent."""
    seen = 0
    for question, method, unit, how in lines():
        if how != BY_ROWS:
            continue
        words = words_for(question, method, unit)
        session = cv.Session(table, study_for(question, **words), budget=cv.Budget(1))
        with pytest.raises(DataError, match="CV-D050") as caught:
            getattr(session, question)(**words, epsilon=1)
        assert method in str(caught.value)
        assert session.account().spent.epsilon == 0
        seen += 1
    assert seen > 8


@pytest.fixture(scope="module")
def every_line():
    """Lines of the table of methods that are no refusals, with their answers from rows in memory."""
    words = {"epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(1)}
    model = cv.cate(people(False), study(False), protects="record", method="t_learner", **words)
    more = {"targeting_curve": {"model": model}}
    found = []
    for question, method, unit, _ in [line for line in lines() if line[-1] != BY_ROWS][:: examples(5, 1)]:
        words = words_for(question, method, unit) | {"epsilon": 4} | more.get(question, {})
        words |= {"delta": "1e-6"} if unit.value == "record" else {}
        found.append((question, words, asked_of(people(False), question, words)))
    return found


def asked_of(source, question, words):
    return getattr(cv, question)(
        source, study_for(question, **words), noise=cv.SeededNoise(3), **words
    ).to_dict()


@pytest.mark.parametrize("kind", thinned(["duckdb", "postgres", "sqlite", "polars"], "sqlite"))
def test_every_method_that_streams_in_every_database(kind, every_line, request, tmp_path, stream_everything):
    table = make(kind, request, tmp_path).table("people_of_all", people(False))
    for question, words, answer in every_line:
        assert asked_of(table, question, words) == answer, (question, words)
    if kind in ("sqlite", "polars"):
        refused_by_name(table)


def words_for(question, method, unit):
    """Return the words of a question by a method."""
    more = {"groups": {"by": "c"}, "policy_value": {"policy": RULE}, "targeting_curve": {"model": Slope()}}
    words = {"protects": unit.value} | more.get(question, {})
    if method == "stratified" and question == "ate":
        words["settings"] = cv.settings.Stratified(strata=("b", "c"))
    return words | ({"method": method} if method else {})


def study_for(question, protects, **_):
    """Return a study that a question can be asked about by every method at this level."""
    known = {"b": COVARIATES["b"]}
    if question == "arms":
        return ARMS._changed(covariates=known)
    if question == "event_study":
        return EVENTS._changed(covariates=known)
    if question == "outcomes":
        alone = () if protects == "treatment and outcome" else SEVERAL.several.baseline
        return SEVERAL._changed(covariates=known, several=replace(SEVERAL.several, baseline=alone))
    if question == "survival":
        declared = {"event": "t", "horizon": 3, "treated": "yes", "control": "no", "randomised": True}
        return study_of("b", "y", covariates={"c": COVARIATES["c"]}, missing={"c": MISSING["c"]}, **declared)
    return study(True)
