"""Names and types of all columns of a source, from its header or schema; no row is read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from counterveil.data.sources import files, frames
from counterveil.data.sources.dispatch import source_in_database
from counterveil.data.sources.relations import Kind, duckdb_kind, ibis_kind
from counterveil.errors import DataError

# What a type says of a column; a CSV file says nothing.
NUMBER, BOOLEAN, TEXT, MOMENT, OTHER = "number", "boolean", "text", "date or time", "another type"
_WORDS = {Kind.BOOLEAN: BOOLEAN, Kind.TEXT: TEXT, Kind.MOMENT: MOMENT}


def columns_of(source: Any) -> dict[str, str | None]:
    """Return the columns of a source and what each holds by its type, None where only the names are known."""
    if isinstance(source, str | PathLike):
        return {name: kind and _sql(kind, name) for name, kind in files.column_types(source).items()}
    if isinstance(source, Mapping):
        return {str(name): _array(values) for name, values in source.items()}
    if isinstance(source, list | tuple) and all(isinstance(name, str) for name in source):
        return dict.fromkeys(source)
    if source_in_database(source):
        return {name: _ibis(kind, name) for name, kind in source.schema().items()}
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation):
        return {name: _sql(str(kind), name) for name, kind in zip(source.columns, source.types, strict=True)}
    return {name: _frame(kind) for name, kind in frames.schema_of(source).items()}


def _sql(kind: str, name: str) -> str:
    try:
        return _WORDS.get(duckdb_kind(kind, name), NUMBER)
    except DataError:
        return OTHER


def _ibis(kind: Any, name: str) -> str:
    try:
        return _WORDS.get(ibis_kind(kind, name), NUMBER)
    except DataError:
        return OTHER


def _array(values: object) -> str | None:
    """Return what an array's type says; that of a list is not known without looking at its cells."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    words = {"b": BOOLEAN, "i": NUMBER, "u": NUMBER, "f": NUMBER, "U": TEXT, "T": TEXT, "M": MOMENT}
    return None if kind == "O" else words.get(kind, OTHER)


def _frame(kind: Any) -> str | None:
    if str(kind) == "Object":
        return None
    if kind.is_temporal():
        return MOMENT
    if kind.is_nested() or str(kind) == "Binary":
        return OTHER
    if str(kind) == "Boolean":
        return BOOLEAN
    return NUMBER if kind.is_numeric() else TEXT
