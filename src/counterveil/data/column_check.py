"""Whether a source has the columns of a study; no row is read."""

from __future__ import annotations

from counterveil.data.engines import check
from counterveil.data.study import Study
from counterveil.data.table import refuse_in_spark


def check_columns(source: object, study: Study) -> None:
    """Raise where a source lacks the study's columns or has them in an unsupported type; reads no row."""
    refuse_in_spark(source, study)
    # Not the column that orders rows: it may hold dates.
    person = () if study.person is None else (study.person.column,)
    subset = () if study.where is None else study.where.columns
    check(source, tuple(dict.fromkeys((*study.columns, *study.cluster_columns, *person, *subset))))
