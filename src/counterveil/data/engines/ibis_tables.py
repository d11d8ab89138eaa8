"""Tables that live in a database, through Ibis: the query goes there, and only its result comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw

from counterveil.data.cells import Column
from counterveil.data.sources.frames import column_of
from counterveil.data.sources.kinds import Kind, ibis_kind
from counterveil.data.sources.relations import quoted
from counterveil.data.wrong_data import (
    duplicated_columns,
    failed_source,
    no_such_column,
    unknown_database,
)

# Each of these is tested to give the same integers as the others.
ENGINES = ("duckdb", "postgres", "pyspark")

_TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "int64",
    Kind.FLOAT: "float64",
    Kind.TEXT: "string",
}


def opened(
    table: Any, names: tuple[str, ...], rows: str
) -> tuple[dict[str, tuple[str, Kind]], Callable[[str, Mapping[str, Kind]], dict[str, Column]], bool]:
    """Return where the names are in a table, a function that answers queries, and whether DuckDB does it."""
    import ibis
    import sqlglot

    try:
        backend = table.get_backend()
    except Exception:
        raise unknown_database("a table that is not connected to a database", ENGINES) from None
    if backend.name not in ENGINES:
        raise unknown_database(backend.name, ENGINES)

    def ask(text: str, kinds: Mapping[str, Kind]) -> dict[str, Column]:
        (query,) = sqlglot.transpile(text, read="duckdb", write=backend.dialect)
        try:
            answer = _answer(backend, f"WITH {rows} AS ({ibis.to_sql(table)}) {query}", kinds)
        except Exception:
            # Whatever the database stumbled on, its message may quote rows.
            raise failed_source("a table in a database") from None
        return {name: column_of(answer[name], name) for name in kinds}

    return _located(table, names), ask, backend.name == "duckdb"


def _answer(backend: Any, query: str, kinds: Mapping[str, Kind]) -> nw.DataFrame[Any]:
    """Return the result of a query whose columns are those of `kinds`, in that order."""
    if backend.name == "pyspark":
        # Ibis would go through pandas, where an integer beside a gap becomes a float.
        return nw.from_native(backend.raw_sql(query).toArrow(), eager_only=True)
    schema = {name: _TYPES[kind] for name, kind in kinds.items()}
    return nw.from_native(backend.sql(query, schema=schema).to_pyarrow(), eager_only=True)


def _located(table: Any, names: tuple[str, ...]) -> dict[str, tuple[str, Kind]]:
    schema = dict(table.schema().items())
    folded = Counter(name.casefold() for name in schema)
    for name in names:
        if name not in schema:
            raise no_such_column(name, schema)
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise duplicated_columns(twice)
    return {name: (quoted(name), ibis_kind(schema[name], name)) for name in names}
