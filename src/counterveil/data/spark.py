"""Rows in Spark: passes are sent to the executors, run there on Arrow batches, and only whole numbers come back.

The Python of the executors needs the same version of this package. No row reaches this process, and what goes wrong
with rows in an executor is caught there, so that no log quotes them.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np

import counterveil.scratch as scratch
from counterveil.data.cells import Column
from counterveil.data.conditions import only_subset
from counterveil.data.features import feature_map
from counterveil.data.passes import Sums, added, reads_covariates
from counterveil.data.people import whole_people
from counterveil.data.silencing import silence
from counterveil.data.sources.relations import (
    BLANK_CHARACTERS,
    Kind,
    as_decimals,
    from_arrow,
    order_of_people,
    plain_column,
    usable,
)
from counterveil.data.spool import forms, packed, unpacked
from counterveil.data.study import Study
from counterveil.data.table import Pass, Survey, Table, joined_tables, without_rows
from counterveil.errors import refusal

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


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a partition are read: a study, and the kind of each of its columns.

    Of people with several rows a partition has all of theirs, sorted, which become one.
    """

    study: Study
    kinds: tuple[tuple[str, Kind], ...]

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches, checked."""
        study = self.study
        parts = (only_subset(self.columns(batch), study.where) for batch in batches if batch.num_rows)
        for part in parts if study.person is None else whole_people(parts, study.person.column):
            columns = survey.together(part)
            if columns is not None:
                yield Table.of_columns(columns, study, survey)

    def columns(self, batch: Any) -> dict[str, Column]:
        """Return the columns of an Arrow batch; they are in the order of the kinds."""
        found = {}
        for place, (name, kind) in enumerate(self.kinds):
            column = plain_column(from_arrow(batch.column(place)), name)
            found[name] = as_decimals(column) if kind in (Kind.EXACT, Kind.UNBOUNDED) else column
        return found


def kinds_of(table: Any, study: Study) -> dict[str, Kind]:
    """Return the kind of each column; the one that orders a person's rows may hold dates."""
    order = None if study.person is None else study.person.order
    # Every session knows this module, few have frames: narwhals is loaded by those.
    from counterveil.data.sources.frames import located

    found = {name: kind for name, (_, kind) in located(table, study.read_columns).items()}
    return {name: kind if name == order else usable(kind, name) for name, kind in found.items()}


def columns_in_spark(table: Any, kinds: dict[str, Kind]) -> Any:
    """Return the columns of a study as a Spark DataFrame."""
    import ibis

    chosen = ", ".join(
        f"CAST({_quoted(name)} AS {_CASTS[kind]}) AS c{place}"
        for place, (name, kind) in enumerate(kinds.items())
    )
    try:
        return table.get_backend().raw_sql(f"SELECT {chosen} FROM ({ibis.to_sql(table)}) AS rows_1")
    except Exception:
        raise refusal("CV-D016", kind="a table in Spark") from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def by_person(frame: Any, reading: Reading) -> Any:
    """Return the same rows, those of a person in one partition and together there."""
    study = reading.study
    assert study.person is not None
    names = [name for name, _ in reading.kinds]
    place = names.index(study.person.column)
    # Bytes: texts may be compared by other rules than their characters.
    keys = order_of_people(
        f"c{place}", reading.kinds[place][1], _trimmed, _matches, "CAST({} AS BINARY)".format, "DOUBLE"
    )
    by = [f"by{number}" for number in range(len(keys))]
    try:
        return (
            frame.selectExpr("*", *(f"{key} AS {name}" for key, name in zip(keys, by, strict=True)))
            .repartition(*by)
            .sortWithinPartitions(*by)
            .select(*(f"c{each}" for each in range(len(names))))
        )
    except Exception:
        raise refusal("CV-D016", kind="a table in Spark") from None


def _trimmed(column: str) -> str:
    return f"trim(BOTH ({BLANK_CHARACTERS}) FROM CAST({column} AS STRING))"


def _matches(text: str, pattern: str) -> str:
    # Nothing may follow: `$` also stands before a last line separator.
    return f"{text} RLIKE '^(?:{pattern})(?![^0]|0)'"


# Rows that executors take at a time, as they encode them and in passes; Spark gives 10,000.
BLOCK_ROWS = 1 << 14
# Bytes of a line. As Spark writes to a disk it holds the last hundred objects of each task (`objectStreamReset`), of
# which one has as many lines as settings say.
_LINE_BYTES = 1 << 18
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_LINES_TOGETHER = "spark.sql.inMemoryColumnarStorage.batchSize"
# Some rows, or a line with what a survey of all rows of a partition found.
_COLUMNS = {"facts": "string", "rows": "int", "held": "binary", "covariates": "binary"}


@dataclass(frozen=True, slots=True)
class Keeping:
    """What an executor does with a partition whose rows are kept."""

    reading: Read

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield lines of encoded rows, then one with what was found; it says nothing where that failed."""
        survey = Survey(self.reading.study)
        tables = self.reading.tables(batches, survey)
        while True:
            try:
                # Not in the executor's log either.
                with silence():
                    table = next(tables, None)
                    # Rows that do not fit have no codes to be kept under; they are refused by what was found.
                    if table is None:
                        made = _lines([(json.dumps(survey.facts()), 0, None, None)])
                    else:
                        made = _lines(_pieces(table) if survey.sound else [])
            except Exception:  # what it says may quote rows
                yield _lines([("null", 0, None, None)])
                return
            yield made
            if table is None:
                return


@dataclass(frozen=True, slots=True)
class Kept:
    """How rows that were kept are read again."""

    study: Study

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches; the survey gets what was found as they were encoded."""
        for batch in batches:
            pieces = []
            for facts, rows, held, *others in zip(*batch.columns, strict=True):
                if held.is_valid:
                    covariates = others[0].as_buffer() if others else None
                    pieces.append(unpacked(self.study, rows.as_py(), held.as_buffer(), covariates))
                else:
                    survey.join(json.loads(facts.as_py()))
            if pieces:
                yield joined_tables(pieces)


# How tables are made of Arrow batches in an executor.
Read: TypeAlias = Reading | Kept


def _pieces(table: Table) -> Iterator[tuple[Any, ...]]:
    step = _rows_of_line(table.study)
    for start in range(0, table.rows, step):
        piece = table.take(slice(start, start + step))
        yield None, piece.rows, *packed(piece)


def _rows_of_line(study: Study) -> int:
    return max(1, _LINE_BYTES // sum(form.itemsize for form in forms(study)))


def _lines(lines: Iterable[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "int": pa.int32(), "binary": pa.binary()}
    schema = pa.schema([(name, types[kind]) for name, kind in _COLUMNS.items()])
    columns: list[Any] = list(zip(*lines, strict=True)) or [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def needed(kept: Any, covariates: bool) -> Any:
    """Return the frame of what a pass needs of the rows that are kept."""
    return kept if covariates else kept.drop("covariates")


def keep(frame: Any, reading: Read) -> Any:
    """Return the frame of encoded rows, which Spark makes when it is first used and then keeps."""
    from pyspark import StorageLevel

    # Not in Java's memory, which reading a table needs; what was just written is in the system's.
    schema = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    try:
        # A frame that is kept has the settings of the moment in which that is asked for.
        with at_a_time(frame, BLOCK_ROWS):
            return frame.mapInArrow(Keeping(reading), schema).persist(StorageLevel.DISK_ONLY)
    except Exception:
        raise refusal("CV-D016", kind="a table in Spark") from None


def found_in(kept: Any) -> list[Any]:
    """Return what surveys of all partitions found, None where one failed; rows are made and kept by this."""
    with at_a_time(kept, BLOCK_ROWS):
        lines = kept.where("facts IS NOT NULL").select("facts").collect()
    return [json.loads(line["facts"]) for line in lines]


def forget(kept: Any) -> None:
    """Let Spark forget the rows it keeps of a frame; a session that ended has forgotten them."""
    with suppress(Exception):
        kept.unpersist()


@contextmanager
def at_a_time(frame: Any, rows: int) -> Iterator[None]:
    """Let executors get so many rows of a frame at a time, where the session's settings may be changed."""
    settings = frame.sparkSession.conf
    before: dict[str, str | None] = {}
    for name, value in ((_BATCH, rows), (_LINES_TOGETHER, 1)):
        with suppress(Exception):
            before[name] = settings.get(name, None)
            settings.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            with suppress(Exception):
                settings.unset(name) if known is None else settings.set(name, known)


# A partition answers with one text: whole numbers as JSON, nothing where it failed.
_ANSWER = "answer string"
# So many answers are added up by one executor, and as many reach this process at most.
_TOGETHER = 32
# What Spark lets a collection bring to this process, unless its settings say otherwise.
_LIMIT, _DEFAULT = "spark.driver.maxResultSize", "1g"
# Bytes of an answer for each pair of features, about twice what moments of 20 to 300 features take; models with squares
# and products of covariates have no more than so many.
_PAIR_BYTES, _MODEL_FEATURES = 64, 140


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


def together(study: Study, batches: Iterator[Any]) -> list[Any]:
    """Return the facts and the sums of several partitions, from what each of them answered."""
    answers = (json.loads(line.as_py()) for batch in batches for line in batch.column(0))
    survey, total = _joined(study, answers)
    return [survey.facts(), None if total is None else [part.tolist() for part in total]]


def _joined(study: Study, answers: Iterable[Any]) -> tuple[Survey, Sums | None]:
    """Return what partitions found and summed; whole numbers, so that every order gives the same."""
    survey = Survey(study)
    total: Sums | None = None
    for facts, sums in answers:
        survey.join(facts)
        if sums is not None:
            total = added(total, tuple(np.array(part, dtype=object) for part in sums))
    return survey, total


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
    batch: int
    partitions: int
    # How many answers this process takes at once.
    most: int

    @classmethod
    def of(cls, table: Any, study: Study) -> SparkRows:
        """Return the rows of an Ibis table on Spark, checked by the executors, or say why they do not fit.

        Spark keeps them encoded; where no rows may be kept, every pass reads the table again.
        """
        kinds = kinds_of(table, study)
        frame = columns_in_spark(table, kinds)
        reading = Reading(study, tuple(kinds.items()))
        if study.person is not None:
            # Sorted on the executors' disks in any case.
            return cls._kept(by_person(frame, reading), reading)
        if scratch.place() is not None:
            return cls._kept(frame, reading)
        return cls._checked(
            reading, frame, _answers(frame, partial(surveyed, reading), BLOCK_ROWS), BLOCK_ROWS
        )

    @classmethod
    def _kept(cls, frame: Any, reading: Read) -> SparkRows:
        kept = keep(frame, reading)
        try:
            facts = _sound(kept, lambda: found_in(kept))
            found = cls._checked(
                Kept(reading.study), kept, facts, max(1, BLOCK_ROWS // _rows_of_line(reading.study))
            )
        except BaseException:
            forget(kept)
            raise
        weakref.finalize(found, forget, kept).atexit = False
        return found

    @classmethod
    def _checked(cls, reading: Read, frame: Any, found: list[Any], batch: int) -> SparkRows:
        survey = Survey(reading.study)
        for facts in found:
            survey.join(facts)
        survey.verdict()
        # Here nothing was charged yet: a pass that could not bring its sums home would lose its charge.
        most = _most_answers(frame, reading.study)
        known = json.dumps(survey.facts())
        return cls(reading.study, survey.rows, reading, frame, known, batch, len(found), most)

    def run(self, passed: Pass, sequential: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over all rows; executors work side by side, each on one block at a time."""
        frame = self.frame
        if isinstance(self.reading, Kept):
            frame = needed(frame, reads_covariates(passed))
        answers = _answers(frame, partial(summed, self.reading, passed), self.batch, self._tree)
        survey, total = _joined(self.study, answers)
        if total is None or json.dumps(survey.facts()) != self.facts:
            raise refusal("CV-D056")
        return total

    def _tree(self, answers: Any) -> Any:
        """Return the answers of partitions as few, added up by executors."""
        count = self.partitions
        while count > self.most:
            count = -(-count // _TOGETHER)
            answers = answers.repartition(count).mapInArrow(Task(partial(together, self.study)), _ANSWER)
        return answers

    def close(self) -> None:
        """Let Spark forget the rows that it keeps."""
        if isinstance(self.reading, Kept):
            forget(self.frame)

    __repr__ = without_rows


def _most_answers(frame: Any, study: Study) -> int:
    """Return how many answers this process may take at once, or raise CV-D061 where it could not take one."""
    features = feature_map(study, 1).size if study.covariates else 0
    size = _PAIR_BYTES * max(features, _MODEL_FEATURES) ** 2
    limit = _driver_limit(frame)
    if limit and size > limit:
        raise refusal("CV-D061", limit=f"{limit:,}", features=features, size=f"{size:,}")
    return min(_TOGETHER, limit // size) if limit else _TOGETHER


def _driver_limit(frame: Any) -> int:
    """Return how many bytes a collection may bring to this process, 0 where there is no limit."""
    text = str(frame.sparkSession.conf.get(_LIMIT, _DEFAULT)).lower()
    found = re.fullmatch(r"\s*([0-9]{1,18})([kmgtp]?)b?\s*", text)
    # Spark itself refuses a setting that is no size.
    number, unit = found.groups() if found else ("1", "g")
    return int(number) << 10 * " kmgtp".index(unit or " ")


def _answers(
    frame: Any,
    answer: Callable[[Iterator[Any]], Any],
    batch: int,
    tree: Callable[[Any], Any] = lambda lines: lines,
) -> list[Any]:
    """Return the answers of all partitions, which get so many rows of the frame at a time; `tree` makes them few."""

    def asked() -> list[Any]:
        with at_a_time(frame, batch):
            lines = tree(frame.mapInArrow(Task(answer), _ANSWER)).collect()
        return [json.loads(line["answer"]) for line in lines]

    return _sound(frame, asked)


def _sound(frame: Any, asked: Callable[[], list[Any]]) -> list[Any]:
    """Return what partitions answered; where one failed, say whether the executors could have answered."""
    try:
        found = asked()
    except Exception:
        # Its message may quote rows.
        _check_executors(frame)
        raise refusal("CV-D016", kind="a table in Spark") from None
    if any(one is None for one in found):
        _check_executors(frame)
        raise refusal("CV-D016", kind="a table in Spark")
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
        raise refusal("CV-D060", version=version()) from None
