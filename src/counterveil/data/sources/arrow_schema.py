"""The types that Arrow notes in a Parquet file beside Parquet's own, read without Arrow.

Parquet has no type of durations: Arrow writes whole numbers, and keeps its own schema in the file's metadata as a
message of its stream format. Of that message the names of the top columns and the numbers of their types are read.
"""

from __future__ import annotations

import base64
import struct

_DURATION = 18  # of the union Type in Arrow's Schema.fbs
_CONTINUATION = b"\xff\xff\xff\xff"


def durations(noted: bytes) -> frozenset[str]:
    """Return the columns that the value of `ARROW:schema` calls durations; none where it cannot be read."""
    try:
        message = base64.b64decode(noted)
        start = 8 if message.startswith(_CONTINUATION) else 4
        schema = _Table.root(message[start:]).table(2)
        return frozenset(field.text(0) for field in schema.tables(1) if field.byte(2) == _DURATION)
    except (ValueError, IndexError, struct.error, RecursionError):
        return frozenset()


class _Table:
    """A table of a flatbuffer: its fields by their places in the schema's text."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        (back,) = struct.unpack_from("<i", data, place)
        self._fields = place - back

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """Return the table that a buffer begins with."""
        return cls(data, _offset(data, 0))

    def _at(self, field: int) -> int:
        (size,) = struct.unpack_from("<H", self._data, self._fields)
        if 4 + 2 * field >= size:
            raise ValueError("no such field")
        (offset,) = struct.unpack_from("<H", self._data, self._fields + 4 + 2 * field)
        return self._place + int(offset)

    def byte(self, field: int) -> int:
        """Return a field of one byte."""
        return self._data[self._at(field)]

    def table(self, field: int) -> _Table:
        """Return a table in a field."""
        return _Table(self._data, _offset(self._data, self._at(field)))

    def text(self, field: int) -> str:
        """Return a text in a field."""
        start = _offset(self._data, self._at(field))
        (length,) = struct.unpack_from("<I", self._data, start)
        return self._data[start + 4 : start + 4 + length].decode()

    def tables(self, field: int) -> list[_Table]:
        """Return a list of tables in a field."""
        start = _offset(self._data, self._at(field))
        (count,) = struct.unpack_from("<I", self._data, start)
        places = range(start + 4, min(start + 4 + 4 * count, len(self._data)), 4)
        return [_Table(self._data, _offset(self._data, place)) for place in places]


def _offset(data: bytes, place: int) -> int:
    (step,) = struct.unpack_from("<I", data, place)
    return place + int(step)
