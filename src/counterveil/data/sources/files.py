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
        relation = connection.read_parquet(glob.escape(str(file)))
        return relations.fetch(relation, relations.locate(relation, names), numeric)
