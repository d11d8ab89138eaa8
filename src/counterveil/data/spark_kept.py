"""Encoded rows that Spark keeps for the passes of a question: blocks of bytes, in memory or on the executors' disks.

Spark turns rows into Arrow batches cell by cell, which takes several times as long as reading them. A block of rows is
one cell here, so that a pass costs little more than what it computes. No row reaches this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from counterveil.data.packed import packed, unpacked
from counterveil.data.silence import silence
from counterveil.data.spark_reading import Read
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table
from counterveil.data.wrong_data import failed_source

# Rows that executors take at a time as they encode them; what is kept of them is one block. Spark gives 10,000.
BLOCK_ROWS = 1 << 14
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
# A block of rows, or a line with what a survey of all rows of a partition found.
_COLUMNS = {"facts": "string", "rows": "int", "held": "binary", "covariates": "binary"}


@dataclass(frozen=True, slots=True)
class Keeping:
    """What an executor does with a partition whose rows are kept."""

    reading: Read

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield blocks of encoded rows, then a line with what was found; it says nothing where that failed."""
        survey = Survey(self.reading.study)
        tables = self.reading.tables(batches, survey)
        while True:
            try:
                # Not in the executor's log either.
                with silence():
                    table = next(tables, None)
                    facts = json.dumps(survey.facts())
                    # Rows that do not fit have no codes to be kept under; they are refused by what was found.
                    made = (
                        _line(None, table.rows, *packed(table))
                        if table is not None and survey.sound
                        else None
                    )
            except Exception:  # what it says may quote rows
                yield _line("null")
                return
            if made is not None:
                yield made
            if table is None:
                yield _line(facts)
                return


@dataclass(frozen=True, slots=True)
class Kept:
    """How rows that were kept are read again."""

    study: Study

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches; the survey gets what was found as they were encoded."""
        for batch in batches:
            for facts, rows, held, *others in zip(*batch.columns, strict=True):
                if held.is_valid:
                    covariates = others[0].as_buffer() if others else None
                    yield unpacked(self.study, rows.as_py(), held.as_buffer(), covariates)
                else:
                    survey.join(json.loads(facts.as_py()))


def _line(
    facts: str | None, rows: int = 0, held: bytes | None = None, covariates: bytes | None = None
) -> Any:
    import pyarrow as pa

    types = (pa.string(), pa.int32(), pa.binary(), pa.binary())
    values = zip((facts, rows, held, covariates), types, strict=True)
    return pa.RecordBatch.from_arrays([pa.array([one], kind) for one, kind in values], list(_COLUMNS))


def needed(kept: Any, covariates: bool) -> Any:
    """Return the frame of what a pass needs of the rows that are kept."""
    return kept if covariates else kept.drop("covariates")


def keep(frame: Any, reading: Read) -> Any:
    """Return the frame of encoded rows, which Spark makes when it is first used and then keeps."""
    from pyspark import StorageLevel

    schema = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    try:
        return frame.mapInArrow(Keeping(reading), schema).persist(StorageLevel.MEMORY_AND_DISK_DESER)
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
    settings, before = frame.sparkSession.conf, None
    with suppress(Exception):
        before = settings.get(_BATCH, None)
        settings.set(_BATCH, rows)
    try:
        yield
    finally:
        with suppress(Exception):
            settings.unset(_BATCH) if before is None else settings.set(_BATCH, before)
