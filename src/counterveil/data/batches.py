"""Rows of a large file or relation, in batches: it is read once and kept in a scratch file, over which passes run.

A pass holds one batch a core at a time, so that memory does not grow with the number of rows.
Where no scratch file can or may be written, every pass reads the file or relation again.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import FileIO
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Range
from counterveil.data.encoding import OUTCOME_STEPS
from counterveil.data.engines.opening import settings_of_engine
from counterveil.data.forks import side_by_side
from counterveil.data.passes import BLOCK_ROWS as BATCH
from counterveil.data.passes import Pass, Sums, in_order
from counterveil.data.silence import silence
from counterveil.data.sources import files, relations
from counterveil.data.sources.dispatch import (
    engine_of,
    in_spark,
    named_table,
    opened_here,
    source_elsewhere,
    source_in_database,
)
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table, check_study, numeric_columns, refuse_in_spark
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import changed_table, failed_source, lost_scratch, unusable_scratch
from counterveil.errors import DataError

if TYPE_CHECKING:
    from counterveil.data.spark import SparkRows

# Scratch rows: encoded once, kept in an unnamed file, read from there at every pass.
#
# What the file takes of a row depends on the study's declarations alone, so that its size says nothing about the
# values in it. It is gone when it is closed, when its rows are dropped, and when the process ends, however it ends.


# Names the folder of such files, or says "none": never write rows to a disk.
VARIABLE = "COUNTERVEIL_SCRATCH"
NEVER = "none"
# Bytes that are left free for others.
_RESERVE = 1 << 30


class SpooledRows:
    """Rows that fit a study, in an unnamed file; `add` takes them, `batches` yields them as often as needed."""

    def __init__(self, study: Study, batch: int, file: FileIO) -> None:
        self.study = study
        self.rows = 0
        self._batch = batch
        self._file = file
        self._forms = _forms(study)
        self._end = weakref.finalize(self, file.close)

    def add(self, table: Table) -> bool:
        """Return whether a batch was taken; the file of a disk without room for it is given up.

        Every batch but the last has the same number of rows.
        """
        columns = (table.arm, table.outcome, *table.measures, *table.covariates.values())
        try:
            if not self._room(table.rows):
                raise OSError
            for column, form in zip(columns, self._forms, strict=True):
                left = np.ascontiguousarray(column, dtype=form).view(np.uint8).data
                while left:
                    left = left[self._file.write(left) :]
        except OSError:
            self.close()
            return False
        self.rows += table.rows
        return True

    def batches(self) -> Iterator[Table]:
        """Yield the rows in order, in the batches in which they came."""
        for number in range(-(-self.rows // self._batch)):
            yield self._read(number)

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:
        """Return a pass's sums over all rows; batches are read and worked on by all cores."""
        if in_turn:
            return in_order(passed, self.batches(), self.rows)
        return side_by_side(passed, self._read, -(-self.rows // self._batch), self.rows)

    def _read(self, number: int) -> Table:
        """Return a batch by its number."""
        start = number * self._batch
        count = min(self._batch, self.rows - start)
        place = _size(self._forms, start)
        columns = []
        for form in self._forms:
            columns.append(self._column(place, count, form))
            place += count * form.itemsize
        return self._table(columns)

    def close(self) -> None:
        """Remove the rows from the disk."""
        self._end()

    def _room(self, rows: int) -> bool:
        disk = os.fstatvfs(self._file.fileno())
        return _size(self._forms, rows) + _RESERVE <= disk.f_bavail * disk.f_frsize

    def _column(self, place: int, count: int, form: np.dtype[Any]) -> NDArray[Any]:
        try:
            # At a place of its own, not at the file's: passes may overlap, also in several threads.
            found = os.pread(self._file.fileno(), count * form.itemsize, place)
        except OSError:
            raise lost_scratch() from None
        if len(found) != count * form.itemsize:
            raise lost_scratch()
        return np.frombuffer(found, dtype=form)

    def _table(self, columns: list[NDArray[Any]]) -> Table:
        arm, end = columns[0].astype(np.intp), 2 + _measures(self.study)
        outcome, *measures = (column.astype(np.int64) for column in columns[1:end])
        covariates = {
            name: column.astype(np.float64, copy=False)
            for name, column in zip(self.study.covariates, columns[end:], strict=True)
        }
        return Table(self.study, arm, arm > 0, outcome, covariates, tuple(measures)).sealed()

    def __repr__(self) -> str:
        # Declarations only, as for a table.
        return (
            f"SpooledRows(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"
        )


def spool(study: Study, batch: int, rows: int | None) -> SpooledRows | None:
    """Return an empty spool for batches of so many rows, None where there is none to be had.

    That is where the variable says so, and where the disk has no room for `rows` rows, as far as they are known.
    A folder that the variable names and that cannot be used raises CV-D057.
    """
    named = os.environ.get(VARIABLE)
    if named == NEVER:
        return None
    try:
        # Unlinked at once or, where the file system can, never linked; for its owner alone.
        file = tempfile.TemporaryFile(buffering=0, dir=named or tempfile.gettempdir())  # noqa: SIM115
    except OSError:
        if named:
            raise unusable_scratch(VARIABLE) from None
        return None
    found = SpooledRows(study, batch, file)
    if rows is not None and not found._room(rows):
        found.close()
        return None
    return found


def _forms(study: Study) -> tuple[np.dtype[Any], ...]:
    """Return the smallest form that holds every value of a column, from declarations.

    In the order of columns: arm, outcome, measures, covariates.
    """
    arms = 2 if study.arms is None else len(study.arms)
    # A range's values stay doubles: its ends need not be shorter numbers, whatever the column holds.
    covariates = (
        np.dtype(np.float64) if isinstance(domain, Range) else np.min_scalar_type(len(domain.labels) - 1)
        for domain in study.covariates.values()
    )
    # A measurement that is missing is -1.
    measures = (np.min_scalar_type(-OUTCOME_STEPS),) * _measures(study)
    return np.min_scalar_type(arms - 1), np.min_scalar_type(OUTCOME_STEPS), *measures, *covariates


def _measures(study: Study) -> int:
    """Return how many private numbers a row of a table has beside its outcome."""
    if study.before is not None:
        return len(study.before.labels(study.outcome))
    return 0 if study.event is not None else len(study.outcomes) - 1


def _size(forms: tuple[np.dtype[Any], ...], rows: int) -> int:
    return rows * sum(form.itemsize for form in forms)


# Files and relations of fewer rows are read into memory: that is faster where several passes are needed.
STREAM_FROM = 500_000
# Bytes that the engine may hold while a file streams by: no less than it needs to read ahead, and so many times
# the largest row group, since it reads these whole.
MEMORY = 256_000_000
_ROW_GROUPS = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreamedRows:
    """Rows that stay in a file or a DuckDB relation and are read again at every pass; made by `rows_of_source`."""

    study: Study
    rows: int
    source: Any

    def batches(self) -> Generator[Table]:
        """Yield the rows in order, BATCH at a time; rows that changed since they were checked raise CV-D056."""
        survey, seen = Survey(self.study), 0
        with closing(_tables(self.source, self.study, survey)) as tables:
            for table in tables:
                seen += table.rows
                if seen > self.rows:
                    raise changed_table()
                yield table
        try:
            survey.verdict()
        except DataError:
            raise changed_table() from None
        if seen != self.rows:
            raise changed_table()

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over all rows, which one core reads."""
        with closing(self.batches()) as tables:
            return in_order(passed, tables, self.rows)

    def __repr__(self) -> str:
        # Declarations only, as for a table.
        return f"StreamedRows(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"


@silence()
def rows_of_source(source: object, study: Study) -> Table | SpooledRows | StreamedRows | SparkRows:
    """Return the rows of a source, or say why they do not fit the study; large files are not read into memory.

    They are read once into a scratch file or, where that is not possible, stay in the source. Reading batch by batch
    needs pyarrow and a DuckDB that hands over Arrow batches; without them all rows are read into memory.
    """
    check_study(study)
    source = opened_here(named_table(source))
    if in_spark(source):
        refuse_in_spark(source, study)
        from counterveil.data.spark import SparkRows

        return SparkRows.of(source, study)
    # Rows of one person or cluster may lie anywhere in a file.
    if study.person is not None or study.cluster is not None or not _streamable(source):
        return Table.attach(source, study)
    extent = _extent(source, study)
    if extent is not None and extent.rows < STREAM_FROM:
        return Table.attach(source, study)
    survey = Survey(study)
    with closing(_tables(source, study, survey)) as tables:
        first: deque[Table] = deque()
        if extent is None and _few(tables, first):
            survey.verdict()
            return _joined(list(first))
        spooled = _spooled(chain(_drained(first), tables), survey, extent)
    return spooled or StreamedRows(study, survey.rows, source)


def _few(tables: Iterator[Table], held: deque[Table]) -> bool:
    """Return whether a source has few enough rows for memory; holds those that had to be read to know."""
    count = 0
    for table in tables:
        held.append(table)
        count += table.rows
        if count >= STREAM_FROM:
            return False
    return True


def _drained(held: deque[Table]) -> Iterator[Table]:
    while held:
        yield held.popleft()


def _spooled(tables: Iterator[Table], survey: Survey, extent: files.Extent | None) -> SpooledRows | None:
    """Return all rows in a scratch file, None if they were only checked; raises if they do not fit."""
    kept = spool(survey.study, BATCH, None if extent is None else extent.rows)
    try:
        for table in tables:
            # Rows that do not fit are refused at the end, and have no codes to be kept under.
            if kept is not None and survey.sound and not kept.add(table):
                kept = None
        survey.verdict()
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return kept


def _streamable(source: object) -> bool:
    if engine_of(source) == "postgres":
        return True
    if not source_elsewhere(source) or source_in_database(source):
        return False
    import duckdb

    able = hasattr(duckdb.DuckDBPyRelation, "to_arrow_reader")
    return able and importlib.util.find_spec("pyarrow") is not None


def _extent(source: Any, study: Study) -> files.Extent | None:
    """Return how large a source is where it says so for nothing."""
    return files.extent(source, study.read_columns) if isinstance(source, str | PathLike) else None


def _tables(source: Any, study: Study, survey: Survey) -> Generator[Table]:
    """Yield the rows of a source, checked, BATCH at a time."""
    if engine_of(source) == "postgres":
        from counterveil.data.sources import postgres

        parts = postgres.fetch_parts(source, study.read_columns, BATCH)
        yield from _even(
            Table.of_columns(only_subset(columns, study.where), study, survey) for columns in parts
        )
        return
    with _opened(source, study) as (relation, wanted):
        parts = relations.fetch_parts(relation, wanted, numeric_columns(study), BATCH)
        yield from _even(
            Table.of_columns(only_subset(columns, study.where), study, survey) for columns in parts
        )


@contextmanager
def _opened(source: Any, study: Study) -> Iterator[relations.Located]:
    """Give the relation over a source and where its columns are; errors of the engine are not passed on.

    They quote rows.
    """
    if isinstance(source, str | PathLike):
        extent = _extent(source, study)
        memory = MEMORY if extent is None else max(MEMORY, _ROW_GROUPS * extent.row_group)
        # One thread: each holds row groups, and the rows are waited for by one.
        with (
            settings_of_engine(f"{memory}B") as settings,
            files.opened(source, study.read_columns, settings | {"threads": 1}) as located,
        ):
            yield located
        return
    import duckdb

    try:
        yield source, relations.locate(source, study.read_columns)
    except duckdb.Error:
        raise failed_source("a DuckDB relation") from None


def _even(tables: Iterator[Table]) -> Iterator[Table]:
    """Yield the same rows with BATCH rows a table, the last one with what is left."""
    waiting: list[Table] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.rows
        if held < BATCH:
            continue
        joined = _joined(waiting)
        whole = held - held % BATCH
        for start in range(0, whole, BATCH):
            yield joined.take(slice(start, start + BATCH))
        waiting, held = ([joined.take(slice(whole, held))] if held > whole else []), held - whole
    if held:
        yield _joined(waiting)


def _joined(tables: list[Table]) -> Table:
    first = tables[0]
    if len(tables) == 1:
        return first
    joined = Table(
        first.study,
        np.concatenate([table.arm for table in tables]),
        np.concatenate([table.treated for table in tables]),
        np.concatenate([table.outcome for table in tables]),
        {name: np.concatenate([table.covariates[name] for table in tables]) for name in first.covariates},
        tuple(np.concatenate(parts) for parts in zip(*(table.measures for table in tables), strict=True)),
    )
    return joined.sealed()
