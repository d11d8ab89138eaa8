"""From the columns of a table in Spark to checked and encoded rows in executors, one for each person if declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from counterveil.data.cells import Column
from counterveil.data.people import whole_people
from counterveil.data.sources.relations import (
    BLANK_CHARACTERS,
    Kind,
    as_decimals,
    from_arrow,
    order_of_people,
    plain_column,
    usable,
)
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import failed_source

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
        raise failed_source("a table in Spark") from None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class OnePerPerson:
    """How a partition is read that has all rows of its people, sorted."""

    reading: Reading

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        return self.reading.study

    def tables(self, batches: Iterator[Any], survey: Survey) -> Iterator[Table]:
        """Yield one row for each person of Arrow batches, checked."""
        study = self.study
        assert study.person is not None
        parts = (only_subset(self.reading.columns(batch), study.where) for batch in batches if batch.num_rows)
        for part in whole_people(parts, study.person.column):
            columns = survey.together(part)
            if columns is not None:
                yield Table.of_columns(columns, study, survey)


def by_person(frame: Any, reading: Reading) -> Any:
    """Return the same rows, those of a person in one partition and together there."""
    study = reading.study
    assert study.person is not None
    names = [name for name, _ in reading.kinds]
    place = names.index(study.person.column)
    # Bytes: texts may be compared by other rules than their characters.
    keys = order_of_people(
        f"c{place}", reading.kinds[place][1], _trimmed, _matches, "CAST({} AS BINARY)".format
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
        raise failed_source("a table in Spark") from None


def _trimmed(column: str) -> str:
    return f"trim(BOTH ({BLANK_CHARACTERS}) FROM CAST({column} AS STRING))"


def _matches(text: str, pattern: str) -> str:
    # Nothing may follow: `$` also stands before a last line separator.
    return f"{text} RLIKE '^(?:{pattern})(?![^0]|0)'"
