"""Rows in batches: a table in memory is one batch, a large file or relation is read again at every pass.

A pass over a file holds one batch at a time, so that memory does not grow with the number of rows. Batches cut
the rows at the same places as blocks of a table in memory, so that whatever is added up block by block is the
same to the bit.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, Protocol

import numpy as np

from counterveil.data.cells import Column
from counterveil.data.engines.opening import settings_of_engine
from counterveil.data.sources import files, relations
from counterveil.data.sources.databases import source_elsewhere, source_in_database
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table, check_study, numeric_columns
from counterveil.data.wrong_data import changed_table, failed_source
from counterveil.errors import DataError

# Files and relations of fewer rows are read into memory: that is faster where several passes are needed.
STREAM_FROM = 500_000
# Rows of a batch, a multiple of the blocks in which kernels add rows up.
BATCH = 1 << 16
# What the engine may hold while a file streams by.
MEMORY = "512MB"


class RowBatches(Protocol):
    """Rows that fit a study, in batches; every call of `batches` goes through all of them in the same order."""

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        ...

    def batches(self) -> Iterator[Table]:
        """Yield the rows; every batch but the last has a multiple of BATCH rows, or there is one only."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreamedRows:
    """Rows that stay in a file or a DuckDB relation; made by `rows_of_source`."""

    study: Study
    rows: int
    source: Any

    def batches(self) -> Iterator[Table]:
        """Yield the rows in order, BATCH at a time; rows that changed since they were checked raise CV-D056."""
        survey, seen = Survey(self.study), 0
        with closing(_parts(self.source, self.study)) as parts:
            tables = (Table.of_columns(columns, self.study, survey) for columns in parts)
            for table in _even(tables):
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

    def __repr__(self) -> str:
        # Declarations only, as for a table.
        return f"StreamedRows(treatment={self.study.treatment!r}, outcome={self.study.outcome!r}, rows not shown)"


def rows_of_source(source: object, study: Study) -> Table | StreamedRows:
    """Return the rows of a source, or say why they do not fit the study; large files and relations stay there.

    Reading batch by batch needs pyarrow and a DuckDB that hands over Arrow batches; without them all rows are read
    into memory.
    """
    check_study(study)
    if not _streamable(source) or _count(source, study) < STREAM_FROM:
        return Table.attach(source, study)
    survey = Survey(study)
    with closing(_parts(source, study)) as parts:
        for columns in parts:
            Table.of_columns(columns, study, survey)
    survey.verdict()
    return StreamedRows(study, survey.rows, source)


def _streamable(source: object) -> bool:
    if not source_elsewhere(source) or source_in_database(source):
        return False
    import duckdb

    able = hasattr(duckdb.DuckDBPyRelation, "to_arrow_reader")
    return able and importlib.util.find_spec("pyarrow") is not None


def _count(source: Any, study: Study) -> int:
    with _opened(source, study) as (relation, _):
        return int(relation.aggregate("count(*)").fetchall()[0][0])


def _parts(source: Any, study: Study) -> Generator[dict[str, Column]]:
    """Yield the columns of a source as they stand, about BATCH rows at a time."""
    with _opened(source, study) as (relation, wanted):
        yield from relations.fetch_parts(relation, wanted, numeric_columns(study), BATCH)


@contextmanager
def _opened(source: Any, study: Study) -> Iterator[relations.Located]:
    """Give the relation over a source and where its columns are; errors of the engine are not passed on.

    They quote rows.
    """
    if isinstance(source, str | PathLike):
        with settings_of_engine(MEMORY) as settings, files.opened(source, study.columns, settings) as located:
            yield located
        return
    import duckdb

    try:
        yield source, relations.locate(source, study.columns)
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
    return Table(
        first.study,
        np.concatenate([table.arm for table in tables]),
        np.concatenate([table.treated for table in tables]),
        np.concatenate([table.outcome for table in tables]),
        {name: np.concatenate([table.covariates[name] for table in tables]) for name in first.covariates},
    )
