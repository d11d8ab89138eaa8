"""Rows in Spark: passes are sent to the executors, run there on Arrow batches, and only whole numbers come back.

The Python of the executors needs the same version of this package. No row reaches this process, and what goes wrong
with rows in an executor is caught there, so that no log quotes them.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any, Protocol

import numpy as np

from counterveil.data.cells import Column
from counterveil.data.passes import Pass, Sums, added
from counterveil.data.silence import silence
from counterveil.data.sources.relations import Kind, as_decimals, from_arrow, plain_column, usable
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import changed_table, failed_source, no_executors

# What a column is cast to; exact numbers come as they are written.
_CASTS = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.EXACT: "STRING",
    Kind.UNBOUNDED: "STRING",
    Kind.TEXT: "STRING",
    # ISO texts are in the order of the moments that they name.
    Kind.MOMENT: "STRING",
}
# A partition answers with one text: whole numbers as JSON, nothing where it failed.
_ANSWER = "answer string"


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a partition are read: a study, and the kind of each of its columns."""

    study: Study
    kinds: tuple[tuple[str, Kind], ...]

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches, checked."""
        for batch in batches:
            if batch.num_rows:
                yield Table.of_columns(only_subset(self.columns(batch), self.study.where), self.study, survey)

    def columns(self, batch: Any) -> dict[str, Column]:
        """Return the columns of an Arrow batch; they are in the order of the kinds."""
        found = {}
        for place, (name, kind) in enumerate(self.kinds):
            column = plain_column(from_arrow(batch.column(place)), name)
            found[name] = as_decimals(column) if kind in (Kind.EXACT, Kind.UNBOUNDED) else column
        return found


class Read(Protocol):
    """How tables are made of Arrow batches in an executor."""

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        ...

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches; the survey gets what was found."""
        ...


@dataclass(frozen=True, slots=True)
class Task:
    """What an executor does with a partition: an answer in whole numbers from its rows."""

    answer: Callable[[Iterator[Any]], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield one Arrow batch with the answer."""
        import pyarrow as pa

        try:
            # Not in the executor's log either.
            with silence():
                found = json.dumps(self.answer(batches))
        except Exception:  # what it says may quote rows
            found = "null"
        yield pa.RecordBatch.from_pydict({"answer": pa.array([found], pa.string())})


def surveyed(reading: Read, batches: Iterator[Any]) -> dict[str, Any]:
    """Return what a survey of a partition finds."""
    survey = Survey(reading.study)
    for _ in reading.tables(batches, survey):
        pass
    return survey.facts()


def summed(reading: Read, passed: Pass, batches: Iterator[Any]) -> list[Any]:
    """Return a survey's facts and the sums of a pass over a partition, None where it has no rows."""
    survey = Survey(reading.study)
    total: Sums | None = None
    for table in reading.tables(batches, survey):
        if table.rows:
            total = added(total, passed(table))
    return [survey.facts(), None if total is None else [part.tolist() for part in total]]


def version(_batches: object = None) -> str:
    """Return the version of this package that a process has."""
    return metadata.version("counterveil")


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class SparkRows:
    """Rows in Spark that fit a study; made by `SparkRows.of`."""

    study: Study
    rows: int
    reading: Read
    frame: Any
    facts: str

    @classmethod
    def of(cls, table: Any, study: Study) -> SparkRows:
        """Return the rows of an Ibis table on Spark, checked by the executors, or say why they do not fit."""
        kinds = _kinds(table, study)
        frame, reading = _frame(table, kinds), Reading(study, tuple(kinds.items()))
        if study.person is None:
            return cls._checked(study, reading, frame)
        from counterveil.data import spark_people

        made = spark_people.made(frame, reading)
        try:
            found = cls._checked(study, spark_people.OnePerPerson(study), made)
        except BaseException:
            forget(made)
            raise
        weakref.finalize(found, forget, made).atexit = False
        return found

    @classmethod
    def _checked(cls, study: Study, reading: Read, frame: Any) -> SparkRows:
        survey = Survey(study)
        for facts in _answers(frame, partial(surveyed, reading)):
            survey.join(facts)
        survey.verdict()
        return cls(study, survey.rows, reading, frame, json.dumps(survey.facts()))

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over all rows; executors work side by side, each on one block at a time."""
        survey = Survey(self.study)
        total: Sums | None = None
        for facts, sums in _answers(self.frame, partial(summed, self.reading, passed)):
            survey.join(facts)
            if sums is not None:
                total = added(total, tuple(np.array(part, dtype=object) for part in sums))
        if total is None or json.dumps(survey.facts()) != self.facts:
            raise changed_table()
        return total

    def close(self) -> None:
        """Let Spark forget the rows that it made of people with several rows."""
        if self.study.person is not None:
            forget(self.frame)

    def __repr__(self) -> str:
        # Declarations only, as for a table.
        return (
            f"SparkRows(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"
        )


def forget(frame: Any) -> None:
    """Let Spark forget the rows it keeps of a frame; a session that ended has forgotten them."""
    with suppress(Exception):
        frame.unpersist()


def _kinds(table: Any, study: Study) -> dict[str, Kind]:
    """Return the kind of each column; the one that orders a person's rows may hold dates."""
    order = None if study.person is None else study.person.order
    # Every session knows this module, few have frames: narwhals is loaded by those.
    from counterveil.data.sources.frames import located

    found = {name: kind for name, (_, kind) in located(table, study.read_columns).items()}
    return {name: kind if name == order else usable(kind, name) for name, kind in found.items()}


def _frame(table: Any, kinds: dict[str, Kind]) -> Any:
    """Return the columns of a study as a Spark DataFrame."""
    import ibis

    chosen = ", ".join(
        f"CAST({_quoted(name)} AS {_CASTS[kind]}) AS c{place}"
        for place, (name, kind) in enumerate(kinds.items())
    )
    try:
        return table.get_backend().raw_sql(f"SELECT {chosen} FROM ({ibis.to_sql(table)}) AS rows_1")
    except Exception:
        raise failed_source("a table in Spark") from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _answers(frame: Any, answer: Callable[[Iterator[Any]], Any]) -> list[Any]:
    """Return the answers of all partitions; where one failed, say whether the executors could have answered."""
    try:
        rows = frame.mapInArrow(Task(answer), _ANSWER).collect()
    except Exception:
        # Its message may quote rows.
        _check_executors(frame)
        raise failed_source("a table in Spark") from None
    found = [json.loads(row["answer"]) for row in rows]
    if any(one is None for one in found):
        _check_executors(frame)
        raise failed_source("a table in Spark")
    return found


def _check_executors(frame: Any) -> None:
    """Raise CV-D060 where an executor lacks this package, or has another version of it."""
    nothing = frame.sparkSession.range(1)
    try:
        rows = nothing.mapInArrow(Task(version), _ANSWER).collect()
        there = {json.loads(row["answer"]) for row in rows}
    except Exception:
        there = set()
    if there != {version()}:
        raise no_executors(version()) from None
