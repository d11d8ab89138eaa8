"""Rows of a source: in memory, or of a large file, relation or database in batches.

These are read once and kept in a scratch file, over which passes run; a pass holds one batch a core at a time, so that
memory does not grow with the number of rows. Where no scratch file can or may be written, every pass reads them again.
"""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any

import counterveil.scratch as scratch
from counterveil.data.cells import Column
from counterveil.data.conditions import only_subset
from counterveil.data.passes import BLOCK_ROWS as BATCH
from counterveil.data.passes import Sums, in_order
from counterveil.data.people import whole_people
from counterveil.data.silencing import silence
from counterveil.data.sources import files, relations, warehouses
from counterveil.data.sources.dispatch import (
    check,
    engine_of,
    in_spark,
    named_table,
    opened_here,
    settings_of_engine,
    source_elsewhere,
    source_in_database,
)
from counterveil.data.spool import SpooledRows, spool
from counterveil.data.study import Study
from counterveil.data.table import (
    Pass,
    Survey,
    Table,
    check_study,
    joined_tables,
    numeric_columns,
    refuse_clusters,
    without_rows,
)
from counterveil.errors import DataError, refusal

if TYPE_CHECKING:
    from counterveil.data.spark import SparkRows

# Files and relations of fewer rows are read into memory: that is faster where several passes are needed.
STREAM_FROM = 500_000
# Bytes that the engine may hold while a file streams by: no less than it needs to read ahead, and so many times
# the largest row group, since it reads these whole.
MEMORY = 256_000_000
_ROW_GROUPS = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreamedRows:
    """Rows that stay in a file or a database and are read again at every pass; made by `rows_of_source`."""

    study: Study
    rows: int
    source: Any

    def batches(self) -> Generator[Table]:
        """Yield the rows in order, BATCH at a time; rows that changed since they were checked raise CV-D056."""
        survey = Survey(self.study)
        seen = 0
        with closing(_tables(self.source, self.study, survey)) as tables:
            for table in tables:
                seen += table.rows
                if seen > self.rows:
                    raise refusal("CV-D056")
                yield table
        try:
            survey.verdict()
        except DataError:
            raise refusal("CV-D056") from None
        if seen != self.rows:
            raise refusal("CV-D056")

    def run(self, passed: Pass, sequential: bool = False) -> Sums:  # noqa: ARG002
        """Return a pass's sums over all rows, which one core reads."""
        with closing(self.batches()) as tables:
            return in_order(passed, tables, self.rows)

    __repr__ = without_rows


@silence()
def rows_of_source(source: object, study: Study) -> Table | SpooledRows | StreamedRows | SparkRows:
    """Return the rows of a source, or say why they do not fit the study; large files are not read into memory.

    They are read once into a scratch file or, where that is not possible, stay in the source. Reading batch by batch
    needs pyarrow and a DuckDB that hands over Arrow batches; without them all rows are read into memory.
    """
    check_study(study)
    source = opened_here(named_table(source))
    if in_spark(source):
        refuse_clusters(source, study)
        from counterveil.data.spark import SparkRows

        return SparkRows.of(source, study)
    if not _sorted_there(source, study):
        return Table.attach(source, study)
    extent = _extent(source, study)
    if extent is not None and extent.rows < STREAM_FROM:
        return Table.attach(source, study)
    survey = Survey(study)
    with closing(_tables(source, study, survey)) as tables:
        first: deque[Table] = deque()
        if extent is None and _few(tables, first):
            survey.verdict()
            return joined_tables(list(first))
        spooled = _spooled(chain(_drained(first), tables), survey, extent)
    return spooled or StreamedRows(study, survey.rows, source)


@silence()
def table_of_source(source: object, study: Study, borrow: bool = False) -> Table:
    """Return all rows of a source in memory; of people with several rows no more than one for each, where it can."""
    check_study(study)
    source = opened_here(source)
    if study.person is None or not _sorted_there(source, study):
        return Table.attach(source, study, borrow)
    extent = _extent(source, study)
    survey = Survey(study)
    if extent is not None and extent.rows < STREAM_FROM:
        return Table.attach(source, study)
    with closing(_tables(source, study, survey)) as tables:
        found = list(tables)
    survey.verdict()
    return joined_tables(found)


def _sorted_there(source: object, study: Study) -> bool:
    """Return whether rows can be streamed, those of people with several rows sorted: on a disk, where one may be used.

    Clusters are numbered with all rows at hand.
    """
    may = study.person is None or scratch.place() is not None
    return may and not study.clustered and not in_spark(source) and _streamable(source)


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
    # Of people with several rows one is kept for each: how many there are is not known yet.
    known = None if extent is None or survey.study.person is not None else extent.rows
    kept = spool(survey.study, BATCH, known)
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
    if source_in_database(source):
        return True
    if not source_elsewhere(source):
        return False
    import duckdb

    has_reader = hasattr(duckdb.DuckDBPyRelation, "to_arrow_reader")
    return has_reader and importlib.util.find_spec("pyarrow") is not None


def _extent(source: Any, study: Study) -> files.Extent | None:
    """Return how large a source is where it says so for nothing."""
    return files.extent(source, study.read_columns) if isinstance(source, str | PathLike) else None


def _tables(source: Any, study: Study, survey: Survey) -> Generator[Table]:
    """Yield the rows of a source, checked, BATCH at a time; of people with several rows one for each."""
    person = None if study.person is None else (study.person.column, study.person.order)
    with closing(_parts(source, study, person)) as parts:
        chosen = (only_subset(columns, study.where) for columns in parts)
        whole = chosen if person is None else whole_people(chosen, person[0])
        together = (survey.together(columns) for columns in whole)
        yield from _even(
            Table.of_columns(columns, study, survey) for columns in together if columns is not None
        )


def _parts(source: Any, study: Study, person: tuple[str, str | None] | None) -> Generator[dict[str, Column]]:
    """Yield the columns of a source in parts of about BATCH rows; of people with several rows person by person."""
    if engine_of(source) == "postgres":
        from counterveil.data.sources import postgres

        yield from postgres.fetch_parts(source, study.read_columns, BATCH, person)
        return
    with _opened(source, study) as (relation, wanted):
        yield from relations.fetch_parts(relation, wanted, numeric_columns(study), BATCH, person)


@contextmanager
def _opened(source: Any, study: Study) -> Iterator[relations.Located]:
    """Give the relation over a source and where its columns are; errors of the engine are not passed on.

    They quote rows.
    """
    if isinstance(source, str | PathLike) or source_in_database(source):
        extent = _extent(source, study)
        opened = warehouses.opened if source_in_database(source) else files.opened
        memory = MEMORY if extent is None else max(MEMORY, _ROW_GROUPS * extent.row_group)
        # One thread: each holds row groups, and the rows are waited for by one.
        with (
            settings_of_engine(f"{memory}B") as settings,
            opened(source, study.read_columns, settings | {"threads": 1}) as located,
        ):
            yield located
        return
    import duckdb

    try:
        yield source, relations.locate(source, study.read_columns)
    except duckdb.Error:
        raise refusal("CV-D016", kind="a DuckDB relation") from None


def _even(tables: Iterator[Table]) -> Iterator[Table]:
    """Yield the same rows with BATCH rows a table, the last one with what is left."""
    waiting: list[Table] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.rows
        if held < BATCH:
            continue
        joined = joined_tables(waiting)
        whole = held - held % BATCH
        for start in range(0, whole, BATCH):
            yield joined.take(slice(start, start + BATCH))
        waiting = [joined.take(slice(whole, held))] if held > whole else []
        held = held - whole
    if held:
        yield joined_tables(waiting)


def check_columns(source: object, study: Study) -> None:
    """Raise where a source lacks the study's columns or has them in an unsupported type; reads no row."""
    refuse_clusters(source, study)
    # Not the column that orders rows: it may hold dates.
    person = () if study.person is None else (study.person.column,)
    subset = () if study.where is None else study.where.columns
    check(source, tuple(dict.fromkeys((*study.columns, *study.cluster_columns, *person, *subset))))
