"""The public order of rows: single matching takes rows in it, and no row is read where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.batches import rows_of_source
from counterveil.data.cells import Coded, Column
from counterveil.data.engines import check
from counterveil.data.engines.opening import is_relation
from counterveil.data.passes import Carrier
from counterveil.data.sources import read, source_in_database
from counterveil.data.study import Study
from counterveil.data.table import Table, numeric_columns, refuse_in_spark
from counterveil.data.where import only_subset
from counterveil.data.wrong_data import bad_order, no_order


def check_columns(source: object, study: Study, order: str | None = None) -> None:
    """Raise where a source lacks the study's columns or has them in an unsupported type; reads no row."""
    check_order(study, order)
    refuse_in_spark(source, study)
    # Not the column that orders rows: it may hold dates.
    person = () if study.person is None else (study.person.column,)
    subset = () if study.where is None else study.where.columns
    check(source, tuple(dict.fromkeys((*study.columns, *study.cluster_columns, *person, *subset))), order)


def check_order(study: Study, name: str | None) -> None:
    """Raise CV-D054 for a column of the study: it is part of a person's record, an order must not be."""
    if name in study.columns:
        raise bad_order(str(name), "a column of the study")


def refuse_private_order(source: object, study: Study, order: str | None) -> None:
    """Raise where single matching would take rows in an order that is not public; reads no row.

    A table in a database has no order but `order` (CV-D053): that in which rows arrive follows what was written to it,
    also what is private. Rows that have an order take no other (CV-D054).
    """
    check_order(study, order)
    if order is None:
        if study.person is None and source_in_database(source):
            raise no_order("a database table without order=")
    elif study.person is not None:
        raise bad_order(order, "people, who come in the order of what identifies them")
    elif not source_in_database(source) and not is_relation(source):
        raise bad_order(order, "a file or a frame, whose rows already have an order")
    else:
        check_columns(source, study, order)


def rows_made(source: object, study: Study, prefix: bool, order: str | None) -> Carrier:
    """Return the rows that are counted; with `prefix` in their public order."""
    if prefix or order is not None:
        refuse_private_order(source, study, order)
    if not prefix or order is None:
        return rows_of_source(source, study)
    names = tuple(dict.fromkeys((*study.read_columns, order)))
    columns = read(source, names, numeric_columns(study), order)
    # Of all rows, before a condition chooses some of them: where in it the order decides depends on private rows.
    rows = _sorted(columns[order], order)
    chosen = only_subset({name: column.keep(rows) for name, column in columns.items()}, study.where)
    return Table.of_columns({name: chosen[name] for name in study.read_columns}, study)


def _sorted(column: Column, name: str) -> NDArray[np.intp]:
    """Return the rows in the order of a column's values, or raise CV-D054 where these do not decide it."""
    if isinstance(column, Coded):
        # Texts, or exact numbers, in an order of their own.
        known: list[Any] = [cell for cell in column.cells if cell == cell]
        place = {cell: at for at, cell in enumerate(sorted(known))}
        missing = column.codes < 0
        values = column.take(np.array([place.get(cell, -1) for cell in column.cells], dtype=np.int64), -1)
    else:
        missing, values = column.missing, column.values
    if missing.any():
        raise bad_order(name, "missing values")
    rows = np.argsort(values, kind="stable")
    if (values[rows][1:] == values[rows][:-1]).any():
        raise bad_order(name, "two rows with the same value")
    return rows
