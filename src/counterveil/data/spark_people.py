"""One row for each person in Spark: rows go to the executor of their person, sorted, and become one row there.

The reduction is the one that runs in this process elsewhere. Spark keeps the rows it makes, encoded as passes take
them, until they are dropped here; no row reaches this process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterveil.data.people import whole_people
from counterveil.data.silence import silence
from counterveil.data.sources.relations import BLANK_CHARACTERS, Kind, from_arrow
from counterveil.data.spark import Reading
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import failed_source

_TEXTS = (Kind.TEXT, Kind.EXACT, Kind.UNBOUNDED)


@dataclass(frozen=True, slots=True)
class Reducing:
    """What an executor does with a partition that has all rows of its people, sorted: one row for each."""

    reading: Reading

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the rows made, then a line with what a survey of them found; it says nothing where that failed."""
        survey = Survey(self.reading.study)
        tables = self._tables(batches, survey)
        while True:
            try:
                # Not in the executor's log either.
                with silence():
                    table = next(tables, None)
                    made = _batch(self.reading.study, table, json.dumps(survey.facts()))
            except Exception:  # what it says may quote rows
                yield _batch(self.reading.study, None, "null")
                return
            yield made
            if table is None:
                return

    def _tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        study = self.reading.study
        assert study.person is not None
        parts = (only_subset(self.reading.columns(batch), study.where) for batch in batches if batch.num_rows)
        for part in whole_people(parts, study.person.column):
            columns = survey.together(part)
            if columns is not None:
                yield Table.of_columns(columns, study, survey)


@dataclass(frozen=True, slots=True)
class OnePerPerson:
    """How rows that were made are read again."""

    study: Study

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield the rows of Arrow batches; the survey gets what was found as they were made."""
        for batch in batches:
            said = batch.column(0)
            for facts in said.drop_null().to_pylist():
                survey.join(json.loads(facts))
            rows = batch.filter(said.is_null())
            if rows.num_rows:
                yield self._table([from_arrow(rows.column(place)) for place in range(1, rows.num_columns)])

    def _table(self, columns: list[Any]) -> Table:
        arm, outcome, *others = columns
        known = dict(zip(self.study.covariates, others, strict=False))
        measures = tuple(others[len(known) :])
        return Table(self.study, arm.astype(np.intp), arm > 0, outcome, known, measures).sealed()


def _schema(study: Study) -> dict[str, str]:
    """Return the columns of rows that were made and their types in Spark."""
    names = {"facts": "string", "arm": "int", "outcome": "bigint"}
    names |= {f"x{place}": "double" for place in range(len(study.covariates))}
    return names | {f"m{place}": "bigint" for place in range(study.measured)}


def _batch(study: Study, table: Table | None, facts: str) -> Any:
    """Return the Arrow batch of rows that were made, or the line of facts."""
    import pyarrow as pa

    types = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}
    if table is None:
        values: list[Any] = [[facts], [0], *([0] for _ in range(len(_schema(study)) - 2))]
    else:
        values = [pa.nulls(table.rows, pa.string()), table.arm, table.outcome]
        values += [*table.covariates.values(), *table.measures]
    return pa.RecordBatch.from_pydict(
        {
            name: pa.array(column, types[kind])
            for (name, kind), column in zip(_schema(study).items(), values, strict=True)
        }
    )


def made(frame: Any, reading: Reading) -> Any:
    """Return the frame of one row for each person, which Spark makes when it is first used and then keeps."""
    from pyspark import StorageLevel

    study = reading.study
    assert study.person is not None
    names = [name for name, _ in reading.kinds]
    place = names.index(study.person.column)
    person, size = _order(f"c{place}", reading.kinds[place][1])
    schema = ", ".join(f"{name} {kind}" for name, kind in _schema(study).items())
    try:
        sorted_rows = (
            frame.selectExpr("*", f"{person} AS person", f"{size} AS size")
            .repartition("person")
            .sortWithinPartitions("size", "person")
            .select(*(f"c{each}" for each in range(len(names))))
        )
        return sorted_rows.mapInArrow(Reducing(reading), schema).persist(StorageLevel.MEMORY_AND_DISK)
    except Exception:
        raise failed_source("a table in Spark") from None


def _order(column: str, kind: Kind) -> tuple[str, str]:
    """Return the SQL of what tells people apart, and of what they are sorted by first, as `places` sorts them."""
    if kind in _TEXTS:
        text = f"trim(BOTH ({BLANK_CHARACTERS}) FROM {column})"
        # Bytes: texts may be compared by other rules than their characters.
        return f"CAST({text} AS BINARY)", f"char_length({text})"
    # Adding zero makes one zero of the two.
    return f"{column} + CAST(0 AS DOUBLE)" if kind is Kind.FLOAT else column, "0"
