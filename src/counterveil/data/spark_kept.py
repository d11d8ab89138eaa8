"""Encoded rows that Spark keeps for the passes of a question: bytes on the executors' disks.

Spark turns rows into Arrow batches cell by cell, which takes several times as long as reading them. Here a line has
many rows in one cell, so that a pass costs little more than what it computes. No row reaches this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from counterveil.data.silence import silence
from counterveil.data.spark_reading import Read
from counterveil.data.spool import forms, packed, unpacked
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table, joined_tables
from counterveil.data.wrong_data import failed_source

# Rows that executors take at a time, as they encode them and in passes; Spark gives 10,000.
BLOCK_ROWS = 1 << 14
# Bytes of a line. As Spark writes to a disk it holds the last hundred objects of each task (`objectStreamReset`), of
# which one has as many lines as settings say.
_LINE_BYTES = 1 << 18
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_TOGETHER = "spark.sql.inMemoryColumnarStorage.batchSize"
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


def _pieces(table: Table) -> Iterator[tuple[Any, ...]]:
    step = _rows_of_line(table.study)
    for start in range(0, table.rows, step):
        piece = table.take(slice(start, start + step))
        yield None, piece.rows, *packed(piece)


def _rows_of_line(study: Study) -> int:
    return max(1, _LINE_BYTES // sum(form.itemsize for form in forms(study)))


def lines_at_a_time(study: Study) -> int:
    """Return how many lines have about BLOCK_ROWS rows."""
    return max(1, BLOCK_ROWS // _rows_of_line(study))


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
        raise failed_source("a table in Spark") from None


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
    for name, value in ((_BATCH, rows), (_TOGETHER, 1)):
        with suppress(Exception):
            before[name] = settings.get(name, None)
            settings.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            with suppress(Exception):
                settings.unset(name) if known is None else settings.set(name, known)
