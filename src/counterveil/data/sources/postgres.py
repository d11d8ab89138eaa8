"""Columns from a PostgreSQL table, streamed by COPY in its binary form: numbers arrive as the server holds them.

Every message is one row: the number of its fields, then each field's length and bytes, a length of -1 for NULL.
Fields are found column by column for all rows of a part at once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data.cells import Column, Numbers, from_array, from_cells
from counterveil.data.sources.relations import (
    BLANK_CHARACTERS,
    Kind,
    as_decimals,
    ibis_kind,
    order_of_people,
    quoted,
    usable,
)
from counterveil.errors import refusal

# What a column is cast to, so that its fields have one width; exact numbers come as they are written.
_CASTS = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "bigint",
    Kind.FLOAT: "double precision",
    Kind.EXACT: "text",
    Kind.UNBOUNDED: "text",
    Kind.TEXT: "text",
}
_WIDTHS = {Kind.BOOLEAN: ">i1", Kind.INTEGER: ">i8", Kind.FLOAT: ">f8"}
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
# Signature, flags, and the length of what may follow them.
_HEADER = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"
# Rows that are held at once.
_ROWS = 1 << 16
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def read(table: Any, names: tuple[str, ...], order: str | None = None) -> dict[str, Column]:
    """Return the named columns of all rows; dates and times in the column `order` become texts."""
    kinds = _kinds(table, names, order)
    with closing(_messages(table, kinds)) as messages:
        return _columns(list(messages), kinds)


def fetch_parts(
    table: Any,
    names: tuple[str, ...],
    rows: int = _ROWS,
    person: tuple[str, str | None] | None = None,
) -> Iterator[dict[str, Column]]:
    """Yield the same columns in parts of `rows` rows, in the order in which the server sends them.

    `person` names the columns that identify people, whose order rows then come in, and that order the rows of each.
    """
    kinds = _kinds(table, names, None if person is None else person[1])
    by = () if person is None else _order_of_people(person[0], kinds[person[0]])
    with closing(_messages(table, kinds, by)) as messages:
        while part := list(islice(messages, rows)):
            yield _columns(part, kinds)


def _kinds(table: Any, names: tuple[str, ...], order: str | None) -> dict[str, Kind]:
    from counterveil.data.sources.frames import located

    schema = table.schema()
    found = {name: ibis_kind(schema[name], name) for name in located(table, names)}
    return {name: kind if name == order else usable(kind, name) for name, kind in found.items()}


def _order_of_people(name: str, kind: Kind) -> tuple[str, ...]:
    def trimmed(column: str) -> str:
        return f"btrim(CAST({column} AS text), {BLANK_CHARACTERS})"

    def matches(text: str, pattern: str) -> str:
        return f"{text} ~ '^(?:{pattern})$'"

    return order_of_people(
        quoted(name), kind, trimmed, matches, '({}) COLLATE "C"'.format, "double precision"
    )


def _messages(table: Any, kinds: dict[str, Kind], by: tuple[str, ...] = ()) -> Generator[bytes]:
    """Yield one message a row, sorted if asked for; the bytes that come before the first are taken off."""
    import ibis

    schema = table.schema()
    chosen = ", ".join(
        _moment_as_text(quoted(name), schema[name])
        if kind is Kind.MOMENT
        else f"CAST({quoted(name)} AS {_CASTS[kind]})"
        for name, kind in kinds.items()
    )
    rows = f"({ibis.to_sql(table)}) AS rows_1" + (f" ORDER BY {', '.join(by)}" if by else "")
    query = f"COPY (SELECT {chosen} FROM {rows}) TO STDOUT (FORMAT BINARY)"
    connection = table.get_backend().con
    try:
        with connection.transaction(), connection.cursor() as cursor, cursor.copy(query) as copy:
            for message in copy:
                row = bytes(message)
                if row.startswith(_SIGNATURE):
                    row = row[_HEADER + int.from_bytes(row[_HEADER - 4 : _HEADER], "big") :]
                if row and row != _TRAILER:
                    yield row
    except GeneratorExit:
        raise
    except Exception:
        # Whatever the server stumbled on, its message may quote rows.
        raise refusal("CV-D016", kind="a table in a database") from None


def _moment_as_text(column: str, kind: Any) -> str:
    """Return the SQL of a text that stands in the order of the moments, whatever style and zone the session has."""
    text = f"CAST({column} AS text)"
    if kind.is_time():
        return text
    if kind.is_date():
        written = f"to_char(CAST({column} AS timestamp), 'YYYY-MM-DD')"
    else:
        there = column if kind.timezone is None else f"({column} AT TIME ZONE 'UTC')"
        written = f"rtrim(rtrim(to_char({there}, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.')"
    return f"CASE WHEN isfinite({column}) THEN {written} ELSE {text} END"


def _columns(messages: list[bytes], kinds: dict[str, Kind]) -> dict[str, Column]:
    """Return the columns of some rows."""
    data = np.frombuffer(b"".join(messages), np.uint8)
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    # Behind the number of fields.
    place: Places = np.cumsum(sizes) - sizes + 2
    found = {}
    for name, kind in kinds.items():
        size = _taken(data, place, ">i4").astype(np.int64)
        start = place + 4
        place = start + np.maximum(size, 0)
        found[name] = _column(data, start, size, kind, name)
    return found


def _column(data: Bytes, start: Places, size: Places, kind: Kind, name: str) -> Column:
    gaps: NDArray[np.bool_] = size < 0
    if kind in _WIDTHS:
        # A gap has no bytes of its own: those at the beginning are read in their place.
        values = _taken(data, np.where(gaps, 0, start), _WIDTHS[kind])
        native = values.astype(values.dtype.newbyteorder("="))
        if kind is Kind.BOOLEAN:
            return Numbers(native.astype(np.bool_), gaps)
        return from_array(np.where(gaps, 0, native), name, gaps)
    held = data.tobytes()
    cells = [
        None if length < 0 else held[first : first + length].decode()
        for first, length in zip(start.tolist(), size.tolist(), strict=True)
    ]
    column = from_cells(cells, name)
    return as_decimals(column) if kind in (Kind.EXACT, Kind.UNBOUNDED) else column


def _taken(data: Bytes, place: Places, form: str) -> NDArray[Any]:
    """Return the numbers of a form that start at these places."""
    width = np.dtype(form).itemsize
    # Rows of equal length, the usual case, need no copy of single bytes.
    step = int(place[1] - place[0]) if len(place) > 1 else 0
    if step >= width and (np.diff(place) == step).all():
        return np.ndarray((len(place),), form, data.data, int(place[0]), (step,))
    return np.ascontiguousarray(data[place[:, None] + np.arange(width)]).view(form)[:, 0]
