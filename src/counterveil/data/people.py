"""What orders people and their rows, and parts of sorted rows, cut where people end: each has all rows of its people.

No more is held than one part and the rows of the person at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import encoding
from counterveil.data.cells import BLANKS, Coded, Column, Mask, Numbers, double_of
from counterveil.data.labels import number_of
from counterveil.data.wrong_data import failed_source, no_person

Places: TypeAlias = NDArray[np.intp]


def places(column: Column, name: str) -> tuple[Places, int]:
    """Return each row's person or cluster, numbered by what identifies them, and how many there are.

    Rows that name none raise CV-D019.
    """
    if np.count_nonzero(encoding.gaps(column, None)):
        raise no_person(name)
    if isinstance(column, Numbers):
        known, place = np.unique(column.values, return_inverse=True)
        return place.astype(np.intp), len(known)
    # By what is written: the number 7 and the text "7" are one person.
    texts = [identity(cell) for cell in column.cells]
    # Shorter texts first, so that whole numbers stand in the same order as text and as numbers.
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts), key=lambda text: (len(text), text)))}
    of_cell = np.array([ranks[text] for text in texts], dtype=np.intp)
    present, place = np.unique(of_cell[column.codes], return_inverse=True)
    return place.astype(np.intp), len(present)


def identity(cell: object) -> str:
    """Return what is written in a cell that names a person: numbers without exponents, as engines write decimals."""
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell).strip(BLANKS)


def first_of_each(column: Column, name: str) -> Mask:
    """Return which rows are the first of their person, as they come in the data."""
    place, _ = places(column, name)
    first = np.zeros(len(place), dtype=np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    return first


def ranks(column: Column, exact: bool = True) -> NDArray[np.float64]:
    """Return numbers that order rows: those with numbers by their value, then those with texts, such as dates.

    Which of two rows comes first depends on these two alone: what others hold must not turn numbers into texts.
    Infinity, which may be a moment, comes after both, and rows without a value come last. Without `exact`, numbers
    whose nearest double is the same are not told apart.
    """
    if isinstance(column, Numbers):
        values = column.values
        if exact and values.dtype.kind in "iu":
            # As whole numbers: beyond 2^53 several of them have the same nearest double.
            values = np.unique(values, return_inverse=True)[1]
        return np.where(column.missing, np.inf, values.astype(np.float64))
    doubles = [double_of(cell) for cell in column.cells]
    sharing = Counter(doubles)
    keys = [
        _key(cell, double, exact and sharing[double] > 1)
        for cell, double in zip(column.cells, doubles, strict=True)
    ]
    place_of = {key: place for place, key in enumerate(sorted(set(keys)))}
    per_cell = np.array([place_of[key] for key in keys], dtype=np.float64)
    return np.where(encoding.gaps(column, None), np.inf, column.take(per_cell, for_missing=0.0))


def _key(cell: object, double: float | None, exact: bool) -> tuple[int, float, Fraction, str]:
    if double is None:
        return 1, 0.0, Fraction(0), str(cell)
    number = number_of(cell) if exact else None
    return 2 if double == np.inf else 0, double, number or Fraction(0), ""


Columns = dict[str, Column]
_WHERE = "a source that was to put rows in the order of their people"


def whole_people(parts: Iterator[Columns], person: str) -> Iterator[Columns]:
    """Yield the same rows with all rows of a person in one part.

    Rows must come in the order of `places`: a person who came up twice would be counted as two. Rows of nobody are
    passed on, to be refused.
    """
    waiting: list[Columns] = []
    last: float | tuple[int, str] | None = None
    for part in parts:
        rows = len(part[person])
        if not rows:
            continue
        if np.count_nonzero(encoding.gaps(part[person], None)):
            yield part
            continue
        place, _ = places(part[person], person)
        first = _who(part[person], 0)
        if (np.diff(place) < 0).any() or (last is not None and first < last):  # type: ignore[operator]
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


def _who(column: Column, row: int) -> float | tuple[int, str]:
    """Return what a row's person is ordered by, as in `places`."""
    if isinstance(column, Numbers):
        found: float = column.values[row].item()
        return found
    text = identity(column.cells[column.codes[row]])
    return len(text), text


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
