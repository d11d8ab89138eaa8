"""Columns from CSV and Parquet files, through DuckDB."""

from __future__ import annotations

import base64
import codecs
import csv
import errno
import glob
import gzip
import os
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import counterveil.scratch as scratch
from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.data.cells import (
    Column,
    duplicated_columns,
    no_such_column,
    row_in_place_of_names,
    unreadable_file,
)
from counterveil.data.sources import relations
from counterveil.errors import CounterveilError, refusal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Settings: TypeAlias = dict[str, str | bool | int | float | list[str]]

_DELIMITERS = (",", ";", "\t", "|")
# Bytes of a line: what DuckDB reads at most, enough for 100,000 columns. A compressed file may hold a line of any size.
LONGEST_LINE = 2_097_152
_LINE_END = re.compile(rb"\r\n?|\n")
_CHUNK = 65_536
# Where the zeros of UTF-16 show, which has one in every ASCII letter.
_SAMPLE = 4
_CSV = ("a CSV file in UTF-8 with a header line", (".csv", ".csv.gz", ".tsv", ".tsv.gz"))
_PARQUET = ("a Parquet file", (".parquet", ".pq"))


def read(
    path: str | PathLike[str], names: tuple[str, ...], numeric: frozenset[str], order: str | None = None
) -> dict[str, Column]:
    """Return the named columns of a file, or of the files of a pattern in the order of their names."""
    with (
        scratch.folder() as folder,
        opened(path, names, {"temp_directory": in_utf8(folder or "")}) as (relation, wanted),
    ):
        return relations.fetch(relation, wanted, numeric, order)


def column_names(path: str | PathLike[str]) -> list[str]:
    """Return the names of all columns of a file, from its header line or its end; reads no row."""
    files, parquet = _found(Path(path))
    if not parquet:
        with _readable(Path(path), parquet):
            return _header(files[0], ())[1]
    with _connected(Path(path), parquet) as connection:
        query = "SELECT name, num_children FROM parquet_schema(?)"
        return _top_level(connection.execute(query, [_escaped(files)[0]]).fetchall())


def column_types(path: str | PathLike[str]) -> dict[str, str | None]:
    """Return all columns of a file and their SQL types, None in a CSV file, which has none; reads no row."""
    files, parquet = _found(Path(path))
    names = column_names(path)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise row_in_place_of_names(names) or duplicated_columns(twice)
    if not parquet:
        return dict.fromkeys(names)
    with _connected(Path(path), parquet) as connection:
        relation = connection.read_parquet(_escaped(files)[0])
        spans = _durations(connection, files[:1])
        types = (
            "INTERVAL" if name in spans else str(kind)
            for name, kind in zip(names, relation.types, strict=True)
        )
        return dict(zip(names, types, strict=True))


@contextmanager
def opened(
    path: str | PathLike[str], names: tuple[str, ...], settings: Settings | None = None
) -> Iterator[relations.Located]:
    """Give the relation over the files at `path` and where the names are in it; the ending says their form.

    The relation lives on a connection of its own with these settings, for as long as the context does. Without settings
    it is for looking at the relation alone: no rows may lie on a disk.
    """
    files, parquet = _found(Path(path))
    with _connected(Path(path), parquet, settings) as connection:
        yield (_open_parquet if parquet else _open_csv)(connection, files, names)


@dataclass(frozen=True, slots=True)
class Extent:
    """What Parquet files say of themselves: their rows, and the bytes of these columns in the largest row group."""

    rows: int
    row_group: int


def extent(path: str | PathLike[str], names: tuple[str, ...]) -> Extent | None:
    """Return how large the Parquet files at `path` are, from their ends alone; None for other files."""
    files, parquet = _found(Path(path))
    if not parquet:
        return None
    # A column inside another has the path "outer, inner"; such columns are refused elsewhere.
    query = """
        SELECT coalesce(sum(rows), 0), coalesce(max(size), 0) FROM (
            SELECT max(row_group_num_rows) AS rows,
                   sum(total_compressed_size) FILTER (path_in_schema IN (SELECT unnest(?))) AS size
            FROM parquet_metadata(?) GROUP BY file_name, row_group_id
        )"""
    with _connected(Path(path), parquet) as connection:
        found = connection.execute(query, [list(names), _escaped(files)]).fetchall()
    return Extent(*map(int, found[0]))


def _found(given: Path) -> tuple[list[Path], bool]:
    """Return the files of a path or a pattern and whether they are Parquet, or raise CV-D011 or CV-D012."""
    try:
        checked_path(given)
    except UnreadableError as error:
        raise refusal("CV-D012", name=str(error)) from None
    lowered = given.name.lower()
    parquet = lowered.endswith(_PARQUET[1])
    if not parquet and not lowered.endswith(_CSV[1]):
        # The text may hold rows, and is not repeated.
        raise refusal("CV-D011", kind="a path with another ending")
    files = [given] if given.is_file() else _matching(given)
    if not files:
        raise refusal("CV-D012", name=given.name)
    return files, parquet


@contextmanager
def _connected(given: Path, parquet: bool, settings: Settings | None = None) -> Iterator[DuckDBPyConnection]:
    import duckdb

    chosen = settings or {"temp_directory": ""}
    with _readable(given, parquet), duckdb.connect(config=chosen) as connection, with_room():
        yield connection


@contextmanager
def with_room() -> Iterator[None]:
    """Turn what an engine raises where memory or disk do not suffice into CV-D312."""
    import duckdb

    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException, MemoryError) as error:
        # A full disk is told by the words of the operating system, which the engine passes on.
        if isinstance(error, duckdb.IOException) and os.strerror(errno.ENOSPC) not in str(error):
            raise
        raise refusal("CV-D312", variable=scratch.VARIABLE) from None


@contextmanager
def _readable(given: Path, parquet: bool) -> Iterator[None]:
    """Turn every error of a reader into CV-D015: its own message quotes the line it stumbled on."""
    kind = (_PARQUET if parquet else _CSV)[0]
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error):
        raise unreadable_file(given.name, kind) from None
    except Exception as error:
        # A header line is read without the engine, which then is not loaded either.
        engine = sys.modules.get("duckdb")
        if engine is None or not isinstance(error, engine.Error):
            raise
        raise unreadable_file(given.name, kind) from None


def _matching(pattern: Path) -> list[Path]:
    """Return the files of a pattern, in the order of their names: the public order of their rows."""
    return sorted(Path(found) for found in glob.glob(str(pattern)) if Path(found).is_file())  # noqa: PTH207


def _escaped(files: list[Path]) -> list[str]:
    """Return the paths as the engine reads them, which takes a name for a pattern."""
    return [glob.escape(in_utf8(str(file))) for file in files]


def in_utf8(path: str) -> str:
    """Return a path as the engine takes it: in UTF-8, also where the system's encoding of names is another one."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def _open_csv(connection: DuckDBPyConnection, files: list[Path], names: tuple[str, ...]) -> relations.Located:
    delimiter, header = _header(files[0], names)
    for name in names:
        if name not in header:
            # Where few names fit, or one stands twice, a row of data may be in the first line: it is not shown.
            fits = 2 * len({*names} & {*header}) >= len(names) and len({*header}) == len(header)
            raise no_such_column(name, header) if fits else refusal("CV-D001", name=name)
    twice = [name for name in names if header.count(name) > 1]
    if twice:
        raise duplicated_columns(twice)
    for file in files[1:]:
        if _header(file, names) != (delimiter, header):
            raise unreadable_file(file.name, "CSV files with the same header line")
    mixed = any(map(_mixed, files))
    for file in files if mixed else ():
        _check_rows(file, delimiter, len(header))
    # Places instead of names: SQL names ignore case, the names of a file do not.
    places = {f"c{place}": "VARCHAR" for place in range(len(header))}
    # Strictly, all lines must end alike. Otherwise broken rows are repaired silently, so that none may be there.
    lenient: dict[str, Any] = {"strict_mode": False} if mixed else {}
    # The engine takes a list of paths; its type hints do not say so.
    paths: Any = _escaped(files)
    relation = connection.read_csv(
        paths,
        columns=places,
        header=True,
        auto_detect=False,
        delimiter=delimiter,
        quotechar='"',
        escapechar='"',
        compression="gzip" if files[0].name.lower().endswith(".gz") else "none",
        **lenient,
    )
    return relation, {name: (f"c{header.index(name)}", "VARCHAR") for name in names}


def _opener(file: Path) -> Callable[..., Any]:
    return gzip.open if file.name.lower().endswith(".gz") else open


def _first_lines(file: Path, count: int) -> list[bytes]:
    """Return the first lines of a file with their ends, each cut at LONGEST_LINE + 1 bytes.

    As bytes: the header line alone decides whether names can be read, not the rows that come after it.
    """
    found: list[bytes] = []
    with _opener(file)(file, "rb") as content:
        held = b""
        while len(found) < count:
            # A line may end in \r, \n or both: one byte more tells whether \n follows a \r.
            end = _LINE_END.search(held)
            if end is not None and (end.end() < len(held) or end.group() != b"\r"):
                found.append(held[: end.end()])
                held = held[end.end() :]
                continue
            more = content.read(_CHUNK) if len(held) <= LONGEST_LINE else b""
            if not more:
                return [*found, held[: LONGEST_LINE + 1]]
            held += more
    return found


def _mixed(file: Path) -> bool:
    """Return whether the header line of a file ends in another way than the line after it."""
    header, *others = (line[len(line.rstrip(b"\r\n")) :] for line in _first_lines(file, 2))
    return any(end and end != header for end in others)


def _check_rows(file: Path, delimiter: str, columns: int) -> None:
    """Raise what an unreadable file raises where a row has a broken quotation or another number of cells."""
    with _opener(file)(file, "rt", encoding="utf-8-sig", newline="") as content:
        rows = csv.reader(_bounded(content), delimiter=delimiter, strict=True)
        if any(len(row) not in (0, columns) for row in rows):
            raise csv.Error("a row of another length")


def _bounded(content: Any) -> Iterator[str]:
    """Yield the lines of a file, or raise what an unreadable file raises where one is too long for memory."""
    while line := content.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise csv.Error("a line without an end")
        yield line


def _header(file: Path, names: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the delimiter under which the header names most of the study's columns, and the names.

    Raises CV-D310 where the header line is not UTF-8, and CV-D311 where it is too long.
    """
    first = _header_line(file)
    try:
        headers = {mark: next(csv.reader([first], delimiter=mark), []) for mark in _DELIMITERS}
    except csv.Error:
        # The only fault of one line of text: a cell beyond `csv.field_size_limit()`.
        raise _endless_header(file) from None
    best = max(_DELIMITERS, key=lambda mark: (len(set(names) & set(headers[mark])), len(headers[mark])))
    return best, headers[best]


def _header_line(file: Path) -> str:
    line = _first_lines(file, 1)[0]
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in line[:_SAMPLE]:
        raise refusal("CV-D310", name=file.name, encoding="UTF-16 (Excel: Unicode Text)", codec="utf-16")
    if len(line) > LONGEST_LINE:
        raise _endless_header(file)
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = "Windows-1252 or Latin-1 (Excel: CSV)"
        raise refusal("CV-D310", name=file.name, encoding=encoding, codec="cp1252") from None


def _endless_header(file: Path) -> CounterveilError:
    return refusal("CV-D311", name=file.name, longest=csv.field_size_limit(), line=LONGEST_LINE)


def _open_parquet(
    connection: DuckDBPyConnection, files: list[Path], names: tuple[str, ...]
) -> relations.Located:
    paths = _escaped(files)
    # The engine renames the second of two equal names, so the names are taken from the file itself.
    query = "SELECT name, num_children FROM parquet_schema(?)"
    schema = connection.execute(query, [paths[0]]).fetchall()
    folded = [name.casefold() for name in _top_level(schema)]
    twice = [name for name in names if folded.count(name.casefold()) > 1]
    if twice:
        raise duplicated_columns(twice)
    for name in sorted(_durations(connection, files) & set(names)):
        raise refusal("CV-D013", name=name, kind="a duration")
    relation = connection.read_parquet(paths)
    return relation, relations.locate(relation, names)


def _durations(connection: DuckDBPyConnection, files: list[Path]) -> frozenset[str]:
    """Return the columns that Arrow wrote as durations, which the engine reads as whole numbers."""
    query = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'ARROW:schema'"
    noted = connection.execute(query, [_escaped(files)]).fetchall()
    return frozenset().union(*(durations(value) for (value,) in noted))


def _top_level(schema: list[tuple[str, int | None]]) -> list[str]:
    """Return the names of the columns in a schema listed depth first, whose first entry is the root."""
    names: list[str] = []
    # How many entries are still to come on each level that is open.
    open_levels = [schema[0][1] or 0]
    for name, children in schema[1:]:
        if len(open_levels) == 1:
            names.append(name)
        open_levels[-1] -= 1
        if children:
            open_levels.append(children)
        while len(open_levels) > 1 and open_levels[-1] == 0:
            open_levels.pop()
    return names


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
