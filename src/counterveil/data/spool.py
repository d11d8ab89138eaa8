"""Scratch rows: encoded once, packed as bytes, kept in an unnamed file, read from there at every pass.

The file has no name: it is gone when it is closed, when its rows are dropped, and when the process ends, however it
ends.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterveil.scratch as scratch
from counterveil.data.domains import OUTCOME_STEPS, Range
from counterveil.data.passes import Sums, in_order, side_by_side
from counterveil.data.study import Study
from counterveil.data.table import Pass, Table, without_rows
from counterveil.errors import refusal

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
    found = [column.tobytes() + bytes(_words(column.nbytes) - column.nbytes) for column in columns(table)]
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


def _columns(sizes: tuple[np.dtype[Any], ...], rows: int, held: Any) -> list[NDArray[Any]]:
    found = []
    place = 0
    for form in sizes:
        found.append(np.frombuffer(held, form, rows, place))
        place += _words(rows * form.itemsize)
    return found


def _words(size: int) -> int:
    return -(-size // _WORD) * _WORD


# Bytes that are left free for others.
_RESERVE = 1 << 30


class SpooledRows:
    """Rows that fit a study, in an unnamed file; `add` takes them, `batches` yields them as often as needed."""

    def __init__(self, study: Study, batch: int, file: FileIO) -> None:
        self.study = study
        self.rows = 0
        self._batch = batch
        self._file = file
        self._forms = forms(study)
        self._end = weakref.finalize(self, file.close)

    def add(self, table: Table) -> bool:
        """Return whether a batch was taken; the file of a disk without room for it is given up.

        Every batch but the last has the same number of rows.
        """
        try:
            if not self._room(table.rows):
                raise OSError
            for column in columns(table):
                left = column.view(np.uint8).data
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

    def run(self, passed: Pass, sequential: bool = False) -> Sums:
        """Return a pass's sums over all rows; batches are read and worked on by all cores."""
        if sequential:
            return in_order(passed, self.batches(), self.rows)
        return side_by_side(passed, self._read, -(-self.rows // self._batch), self.rows)

    def _read(self, number: int) -> Table:
        """Return a batch by its number."""
        start = number * self._batch
        count = min(self._batch, self.rows - start)
        place = _size(self._forms, start)
        found = []
        for form in self._forms:
            found.append(self._column(place, count, form))
            place += count * form.itemsize
        return table_of(self.study, found)

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
            raise refusal("CV-D058") from None
        if len(found) != count * form.itemsize:
            raise refusal("CV-D058")
        return np.frombuffer(found, dtype=form)

    __repr__ = without_rows


def spool(study: Study, batch: int, rows: int | None) -> SpooledRows | None:
    """Return an empty spool for batches of so many rows, None where there is none to be had.

    That is where the variable says so, and where the disk has no room for `rows` rows, as far as they are known.
    A folder that the variable names and that cannot be used raises CV-D057.
    """
    file = scratch.unnamed_file()
    if file is None:
        return None
    found = SpooledRows(study, batch, file)
    if rows is not None and not found._room(rows):
        found.close()
        return None
    return found


def _size(of_row: tuple[np.dtype[Any], ...], rows: int) -> int:
    return rows * sum(form.itemsize for form in of_row)
