"""Chooses the reader for a source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from os import PathLike
from typing import TypeAlias

from counterveil.data.cells import Column
from counterveil.data.sources import arrays, files, relations
from counterveil.data.sources.databases import source_in_database
from counterveil.data.wrong_data import rows_of_a_database

Columns: TypeAlias = dict[str, Column]


def read(source: object, names: tuple[str, ...], numeric: frozenset[str]) -> Columns:
    """Return the named columns of any supported source; `numeric` names those that must be numbers."""
    if isinstance(source, str | PathLike):
        return files.read(source, names, numeric)
    if isinstance(source, Mapping):
        return arrays.read(source, names)
    if source_in_database(source):
        raise rows_of_a_database()
    duckdb = sys.modules.get("duckdb")
    # A relation can only exist if its library was imported; no need to import it for a frame.
    if duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation):
        return relations.read(source, names, numeric)
    from counterveil.data.sources import frames

    return frames.read(source, names)
