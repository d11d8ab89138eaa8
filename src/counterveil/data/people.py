"""What orders people and their rows, and parts of sorted rows, cut where people end: each has all rows of its people.

Which of two rows or people comes first depends on these two alone, whatever container holds them: what one cell holds
may turn a column of numbers into one of texts, or whole numbers into doubles. Proof: `person.proof.md`.
No more is held than one part and the rows of the person at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding
from counterveil.data.cells import BLANKS, SPELLED, Coded, Column, Mask, Numbers, double_of
from counterveil.data.labels import EXACT_DOUBLES, number_of
from counterveil.data.wrong_data import failed_source, no_person

Places: TypeAlias = NDArray[np.intp]
# "7", "007" and "7.0" are one person, "1e5" is a text. The same in SQL: `relations.order_of_people`.
_SPELLED = re.compile(SPELLED)


def places(column: Column, name: str) -> tuple[Places, int]:
    """Return each row's person or cluster, numbered by what identifies them, and how many there are.

    Whole numbers stand in the order of their values, negative ones behind all others. Rows that name nobody raise
    CV-D019.
    """
    if nobody(column).any():
        raise no_person(name)
    if isinstance(column, Numbers):
        whole = column.values if column.values.dtype.kind in "iu" else column.values.astype(np.int64)
        known, place = np.unique(whole, return_inverse=True)
        negative = int(np.count_nonzero(known < 0))
        place = np.where(place < negative, len(known) - 1 - place, place - negative)
        return place.astype(np.intp), len(known)
    keys = [_sorted_by(cell) for cell in column.cells]
    rank = {key: at for at, key in enumerate(sorted(set(keys)))}
    of_cell = np.array([rank[key] for key in keys], dtype=np.intp)
    present, place = np.unique(of_cell[column.codes], return_inverse=True)
    return place.astype(np.intp), len(present)


def _sorted_by(cell: object) -> tuple[bool, int, str]:
    text = identity(cell) or ""
    return text.startswith("-"), len(text), text


def nobody(column: Column) -> Mask:
    """Return which rows name no person: gaps, and floats that are no whole number or may stand for several."""
    if isinstance(column, Numbers):
        values = column.values
        if values.dtype.kind != "f":
            return column.missing
        return np.asarray(column.missing | ~((np.abs(values) < EXACT_DOUBLES) & (np.floor(values) == values)))
    unnamed = np.array([identity(cell) is None for cell in column.cells], dtype=np.bool_)
    return np.asarray(encoding.gaps(column, None) | column.take(unnamed, for_missing=True))


def identity(cell: object) -> str | None:
    """Return the text that identifies a person, one for all spellings of a number; None for a cell that names nobody.

    A float names somebody where it is a whole number that no other one is rounded to.
    """
    if isinstance(cell, str):
        text = cell.strip(BLANKS)
    elif isinstance(cell, float | np.floating):
        number = float(cell)
        return str(int(number)) if abs(number) < EXACT_DOUBLES and number.is_integer() else None
    else:
        exact = number_of(cell)
        if exact is None:
            return None
        try:
            text = format(cell, "f") if isinstance(cell, Decimal) else str(exact)
        except ValueError:
            # More digits than Python writes.
            return None
    if not _SPELLED.fullmatch(text):
        return text
    whole, _, part = text.lstrip("+-").partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    size = f"{whole}.{part}" if part else whole
    return f"-{size}" if text.startswith("-") and size != "0" else size


def first_of_each(column: Column, name: str) -> Mask:
    """Return which rows are the first of their person, as they come in the data."""
    place, _ = places(column, name)
    first = np.zeros(len(place), dtype=np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def ranks(column: Column) -> NDArray[np.intp]:
    """Return numbers that order rows: by numbers, then by texts, such as dates; then infinity, which may be a moment.

    Rows without a value come last. Numbers are those of the nearest doubles, which is what a gap elsewhere may make of
    whole numbers.
    """
    if isinstance(column, Numbers):
        known, place = np.unique(column.values.astype(np.float64), return_inverse=True)
        return np.where(column.missing, len(known), place)
    keys = [_key(cell, double_of(cell)) for cell in column.cells]
    place_of = {key: place for place, key in enumerate(sorted(set(keys)))}
    per_cell = np.array([place_of[key] for key in keys], dtype=np.intp)
    return np.where(encoding.gaps(column, None), len(keys), column.take(per_cell, for_missing=0))


def _key(cell: object, double: float | None) -> tuple[int, float, str]:
    return (1, 0.0, str(cell)) if double is None else (2 if double == np.inf else 0, double, "")


Columns = dict[str, Column]
_WHERE = "a source that was to put rows in the order of their people"


def whole_people(parts: Iterator[Columns], person: str) -> Iterator[Columns]:
    """Yield the same rows with all rows of a person in one part.

    Rows must come in the order of `places`: a person who came up twice would be counted as two. Rows of nobody are
    passed on, to be refused.
    """
    waiting: list[Columns] = []
    last: tuple[bool, int, str] | None = None
    for part in parts:
        rows = len(part[person])
        if not rows:
            continue
        if nobody(part[person]).any():
            yield part
            continue
        place, _ = places(part[person], person)
        first = _who(part[person], 0)
        if (np.diff(place) < 0).any() or (last is not None and first < last):
            raise failed_source(_WHERE)
        start = int(np.searchsorted(place, place[-1]))
        if start or (last is not None and first != last):
            ended = [*waiting, _some(part, slice(0, start))] if start else waiting
            yield joined_columns(ended)
            waiting = []
        waiting.append({name: _compact(column) for name, column in _some(part, slice(start, rows)).items()})
        last = _who(part[person], rows - 1)
    if waiting:
        yield joined_columns(waiting)


def _who(column: Column, row: int) -> tuple[bool, int, str]:
    """Return what a row's person is ordered by, as in `places`."""
    return _sorted_by(
        column.values[row].item() if isinstance(column, Numbers) else column.cells[column.codes[row]]
    )


def _some(part: Columns, rows: slice) -> Columns:
    chosen = np.arange(rows.start, rows.stop)
    return {name: column.keep(chosen) for name, column in part.items()}


def _compact(column: Column) -> Column:
    """Return the same rows without the cells that none of them holds."""
    if isinstance(column, Numbers):
        return column
    held, codes = np.unique(column.codes, return_inverse=True)
    gap = int(len(held) > 0 and held[0] < 0)
    return Coded(codes.astype(np.int64) - gap, tuple(column.cells[code] for code in held[gap:]))


def joined_columns(parts: list[Columns]) -> Columns:
    """Return the rows of all parts, one after the other."""
    return (
        parts[0] if len(parts) == 1 else {name: _joined([part[name] for part in parts]) for name in parts[0]}
    )


def _joined(columns: list[Column]) -> Column:
    numbers = [column for column in columns if isinstance(column, Numbers)]
    if len(numbers) == len(columns):
        texts = [np.zeros(len(one), np.bool_) if one.text is None else one.text for one in numbers]
        return Numbers(
            np.concatenate([one.values for one in numbers]),
            np.concatenate([one.missing for one in numbers]),
            None if all(one.text is None for one in numbers) else np.concatenate(texts),
        )
    cells: tuple[object, ...] = ()
    codes = []
    for column in columns:
        assert isinstance(column, Coded)
        codes.append(np.where(column.codes < 0, -1, column.codes + len(cells)))
        cells += column.cells
    return Coded(np.concatenate(codes), cells)
