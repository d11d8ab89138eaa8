"""Answers of Spark's partitions are added up by executors; what its driver could not take is refused uncharged."""

import json
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests.system.engines.databases import make
from tests.system.engines.test_backends import people, study, treated_and_old

import counterveil as cv
from counterveil.accounting import Ledger
from counterveil.data import Table, rows_of_source, spark
from counterveil.errors import DataError


@pytest.mark.slow
def test_few_answers_reach_this_process_and_no_bit_changes(monkeypatch, request, tmp_path):
    database = make("spark", request, tmp_path)
    table = database.table("people_many", people(True))
    monkeypatch.setattr(spark, "_TOGETHER", 2)
    found = rows_of_source(
        database.connection.raw_sql("SELECT * FROM people_many").repartition(3), study(True)
    )
    assert found.partitions == 3
    (wanted,) = Table.attach(people(True), study(True)).run(treated_and_old)
    collected, joined = [], spark._joined

    def counted(declared, answers):
        collected.append(len(answers))
        return joined(declared, answers)

    monkeypatch.setattr(spark, "_joined", counted)
    assert found.run(treated_and_old)[0].tolist() == wanted.tolist()
    assert collected == [2]
    # What could not be brought home is refused before anything is charged.
    monkeypatch.setattr(spark, "_PAIR_BYTES", 2**30)
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("people", cv.Budget(10))
        with pytest.raises(DataError, match="CV-D061"):
            cv.ate(table, study(True), protects="record", epsilon=1, ledger=ledger, dataset="people")
        assert ledger.account("people").requests == 0


class StoppedError(BaseException):
    """Ends a request between two passes, as a killed driver would."""


@pytest.mark.slow
def test_a_request_that_stopped_goes_on_after_its_last_pass(monkeypatch, request, tmp_path):
    """Each release of a pass in Spark is stored before the next pass is begun."""
    table = make("spark", request, tmp_path).table("people_that_stop", people(False))
    passes, run, keep = [], spark.SparkRows.run, Ledger.release
    monkeypatch.setattr(
        spark.SparkRows, "run", lambda self, *given, **own: passes.append(1) or run(self, *given, **own)
    )

    def asked(ledger):
        passes.clear()
        return cv.ate(
            table, study(False), protects="record", epsilon=1, ledger=ledger, dataset="people", request_id="a"
        )

    def released(ledger):
        entries = [entry.facts for entry in ledger.entries() if entry.kind == "release"]
        return {facts["name"]: facts["values"] for facts in entries}

    with cv.open_ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register("people", cv.Budget(10))

        def stops(self, *given):
            found = keep(self, *given)
            if len(released(ledger)) == 2:
                raise StoppedError
            return found

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "release", stops)
            with pytest.raises(StoppedError):
                asked(ledger)
        before, first = released(ledger), len(passes)
        asked(ledger)
        after = released(ledger)
        assert len(before) == 2 < len(after)
        assert after | before == after
        # One pass prepares the rows; those of the two that are stored are not run again.
        assert len(passes) + first - len(after) in (0, 1, 2)
        assert ledger.account("people").spent.epsilon == 1
        assert ledger.verify().ok


def test_a_partition_that_failed_is_noticed_through_the_tree():
    facts = {"rows": 2, "faults": [], "arms": {"counts": [1, 1], "others": [], "other_rows": 0}}
    answers = [json.dumps([facts, [[1, 2**70]]]), json.dumps([facts, None]), json.dumps([facts, [[3, -4]]])]
    task = spark.Task(partial(spark.together, study(True)))
    ((found, sums),) = (json.loads(line["answer"][0].as_py()) for line in task(batches(answers)))
    assert found["rows"] == 6
    assert sums == [[4, 2**70 - 4]]
    (line,) = task(batches([*answers, "null"]))
    assert line["answer"][0].as_py() == "null"


def batches(answers):
    return iter([pa.RecordBatch.from_pydict({"answer": [answer]}) for answer in answers])


@pytest.mark.parametrize(
    ("text", "size"),
    [("1g", 2**30), ("512m", 2**29), ("2GB", 2**31), ("1024", 1024), ("0", 0), ("4kb", 4096), ("64b", 64)],
)
def test_the_limit_of_the_driver_is_read_as_spark_reads_it(text, size):
    session = SimpleNamespace(conf={spark._LIMIT: text})
    assert spark._driver_limit(SimpleNamespace(sparkSession=session)) == size


def test_answers_of_many_features_come_one_by_one():
    session = SimpleNamespace(conf={})
    frame = SimpleNamespace(sparkSession=session)
    names = [f"x{place}" for place in range(2000)]
    assert (
        spark._most_answers(
            frame,
            cv.Study(
                "t",
                cv.Outcome("y", (0, 1)),
                dict.fromkeys(names[:100], cv.Binary()),
            ),
        )
        == 32
    )
    assert (
        spark._most_answers(frame, cv.Study("t", cv.Outcome("y", (0, 1)), dict.fromkeys(names, cv.Binary())))
        == 4
    )
