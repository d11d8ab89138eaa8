"""Parts of rows that come sorted by person, cut where people end, so that each part has all rows of its people.

No more is held than one part and the rows of the person at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from counterveil.data import encoding
from counterveil.data.cells import Coded, Column, Numbers
from counterveil.data.ranks import identity, places
from counterveil.data.wrong_data import failed_source

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
