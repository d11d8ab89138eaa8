"""One row for each person in Spark: rows go to the executor of their person, sorted, and become one row there.

The reduction is the one that runs in this process elsewhere; no row reaches this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counterveil.data.people import whole_people
from counterveil.data.sources.relations import BLANK_CHARACTERS, Kind
from counterveil.data.spark_reading import Reading
from counterveil.data.study import Study
from counterveil.data.survey import Survey
from counterveil.data.table import Table
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import failed_source

_TEXTS = (Kind.TEXT, Kind.EXACT, Kind.UNBOUNDED)


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
    person, size = _order(f"c{place}", reading.kinds[place][1])
    try:
        return (
            frame.selectExpr("*", f"{person} AS person", f"{size} AS size")
            .repartition("person")
            .sortWithinPartitions("size", "person")
            .select(*(f"c{each}" for each in range(len(names))))
        )
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
