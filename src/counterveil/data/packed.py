"""Encoded rows as bytes, column by column, each in the smallest form that holds every value it may have.

What a row takes depends on the study's declarations alone, so that the size of what is kept says nothing about the
values in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.domains import Range
from counterveil.data.encoding import OUTCOME_STEPS
from counterveil.data.study import Study
from counterveil.data.table import Table

# Columns of a block begin at multiples of this many bytes: compiled loops expect doubles there.
_WORD = 8


def forms(study: Study) -> tuple[np.dtype[Any], ...]:
    """Return the form of each column, from declarations, in the order of `columns`."""
    arms = 2 if study.arms is None else len(study.arms)
    # A range's values stay doubles: its ends need not be shorter numbers, whatever the column holds.
    covariates = (
        np.dtype(np.float64) if isinstance(domain, Range) else np.min_scalar_type(len(domain.labels) - 1)
        for domain in study.covariates.values()
    )
    # A measurement that was not made is -1.
    measures = (np.dtype(np.int32),) * study.measured
    return np.min_scalar_type(arms - 1), np.min_scalar_type(OUTCOME_STEPS), *covariates, *measures


def columns(table: Table) -> Iterator[NDArray[Any]]:
    """Yield the columns of a table, each in its form: arm, outcome, covariates, measures."""
    held = (table.arm, table.outcome, *table.covariates.values(), *table.measures)
    for column, form in zip(held, forms(table.study), strict=True):
        yield np.ascontiguousarray(column, dtype=form)


def table_of(study: Study, held: list[NDArray[Any]]) -> Table:
    """Return the table whose columns these are; doubles are not copied."""
    first, last = _covariates(study)
    return _table(study, held[:first] + held[last:], held[first:last])


def _table(study: Study, rest: list[NDArray[Any]], held: list[NDArray[Any]]) -> Table:
    arm, outcome, *others = rest
    known = zip(study.covariates, held, strict=False)
    covariates = {name: column.astype(np.float64, copy=False) for name, column in known}
    measures = tuple(column.astype(np.int64) for column in others)
    arm = arm.astype(np.intp)
    return Table(study, arm, arm > 0, outcome.astype(np.int64), covariates, measures).sealed()


def packed(table: Table) -> tuple[bytes, bytes]:
    """Return all rows of a table as bytes, and their covariates apart from the rest: some passes need none."""
    found = [_in_words(column) for column in columns(table)]
    first, last = _covariates(table.study)
    return b"".join(found[:first] + found[last:]), b"".join(found[first:last])


def unpacked(study: Study, rows: int, rest: Any, covariates: Any | None) -> Table:
    """Return the table that `packed` made bytes of, without covariates where these are not given.

    Doubles are not copied.
    """
    sizes, (first, last) = forms(study), _covariates(study)
    others = _columns(sizes[:first] + sizes[last:], rows, rest)
    return _table(study, others, [] if covariates is None else _columns(sizes[first:last], rows, covariates))


def _covariates(study: Study) -> tuple[int, int]:
    """Return where covariates begin and end among the columns."""
    return 2, 2 + len(study.covariates)


def _in_words(column: NDArray[Any]) -> bytes:
    return column.tobytes() + bytes(_words(column.nbytes) - column.nbytes)


def _columns(sizes: tuple[np.dtype[Any], ...], rows: int, held: Any) -> list[NDArray[Any]]:
    found, place = [], 0
    for form in sizes:
        found.append(np.frombuffer(held, form, rows, place))
        place += _words(rows * form.itemsize)
    return found


def _words(size: int) -> int:
    return -(-size // _WORD) * _WORD
