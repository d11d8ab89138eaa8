"""Columns from CSV and Parquet files, through DuckDB."""

from __future__ import annotations

import csv
import glob
import gzip
from os import PathLike
from pathlib import Path

from counterveil.data.cells import Column
from counterveil.data.sources import relations
from counterveil.data.wrong_data import (
    duplicated_columns,
    no_such_column,
    no_such_file,
    unreadable_file,
    unsupported_source,
)

_DELIMITERS = (",", ";", "\t", "|")
_CSV = ("a CSV file in UTF-8 with a header line", (".csv", ".csv.gz", ".tsv", ".tsv.gz"))
_PARQUET = ("a Parquet file", (".parquet", ".pq"))


def read(path: str | PathLike[str], names: tuple[str, ...], numeric: frozenset[str]) -> dict[str, Column]:
    """Return the named columns of a file; the ending of its name says its form."""
    file = Path(path)
    lowered = file.name.lower()
    form, reader = (_CSV[0], _read_csv) if lowered.endswith(_CSV[1]) else (_PARQUET[0], _read_parquet)
    if reader is _read_parquet and not lowered.endswith(_PARQUET[1]):
        raise unsupported_source(f"a path ending in {file.suffix!r}")
    if not file.is_file():
        raise no_such_file(file.name)
    import duckdb

    try:
        return reader(file, names, numeric)
    except (duckdb.Error, OSError, EOFError, UnicodeDecodeError, csv.Error):
        # The engine's own message quotes the line it stumbled on, so it is not passed on.
        raise unreadable_file(file.name, form) from None


def _read_csv(file: Path, names: tuple[str, ...], numeric: frozenset[str]) -> dict[str, Column]:
    import duckdb

    delimiter, header = _header(file, names)
    for name in names:
        if name not in header:
            raise no_such_column(name, header)
    twice = [name for name in names if header.count(name) > 1]
    if twice:
        raise duplicated_columns(twice)
    # Places instead of names: SQL names ignore case, the names of a file do not.
    places = {f"c{place}": "VARCHAR" for place in range(len(header))}
    with duckdb.connect() as connection:
        relation = connection.read_csv(
            glob.escape(str(file)),
            columns=places,
            header=True,
            auto_detect=False,
            delimiter=delimiter,
            quotechar='"',
            escapechar='"',
            compression="gzip" if file.name.lower().endswith(".gz") else "none",
        )
        wanted = {name: (f"c{header.index(name)}", "VARCHAR") for name in names}
        return relations.fetch(relation, wanted, numeric)


def _header(file: Path, names: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the delimiter under which the header names most of the study's columns, and the names."""
    opened = gzip.open if file.name.lower().endswith(".gz") else open
    with opened(file, "rt", encoding="utf-8-sig", newline="") as lines:
        first = lines.readline()
    headers = {mark: next(csv.reader([first], delimiter=mark), []) for mark in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda mark: (len(set(names) & set(headers[mark])), len(headers[mark])))
    return best, headers[best]


def _read_parquet(file: Path, names: tuple[str, ...], numeric: frozenset[str]) -> dict[str, Column]:
    import duckdb

    with duckdb.connect() as connection:
        path = glob.escape(str(file))
        # The engine renames the second of two equal names, so the names are taken from the file itself.
        schema = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [path]).fetchall()
        folded = [name.casefold() for name in _top_level(schema)]
        twice = [name for name in names if folded.count(name.casefold()) > 1]
        if twice:
            raise duplicated_columns(twice)
        relation = connection.read_parquet(path)
        return relations.fetch(relation, relations.locate(relation, names), numeric)


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
