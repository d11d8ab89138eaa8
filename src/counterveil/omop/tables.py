"""Opens OMOP tables in DuckDB or PostgreSQL as the rows of a study, after their columns were checked; reads no row."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from counterveil.data import Study
from counterveil.data.sources.relations import Kind, duckdb_kind, quoted
from counterveil.errors import DataError, installing, masked, refusal, shown
from counterveil.omop.query import DATE, ID, NUMBER, cohort_query, columns, needed
from counterveil.omop.specification import Specification

_SCHEMA = re.compile(r"[^\W\d]\w{0,62}(?:\.[^\W\d]\w{0,62})?")
_TYPES = {"BIGINT": "int64", "DOUBLE PRECISION": "float64", "VARCHAR": "string"}


@dataclass(frozen=True, slots=True)
class CohortStudy:
    """A study and its rows, which stay in the database: one for each person with an entry to either cohort.

    `rows` and `study` are the first two arguments of every question; `sql` is the query behind the rows.
    """

    rows: Any
    study: Study
    sql: str


def cohort_study(
    database: object,
    specification: Specification | str | PathLike[str],
    schema: str | None = None,
    cohort_schema: str | None = None,
) -> CohortStudy:
    """Return the study of a specification and its rows in a database; tables and columns are checked, no row is read.

    Args:
        database: the path of a DuckDB file, a postgresql:// URL, a DuckDB connection, or an Ibis backend of either.
        specification: the comparison, or the path of its TOML file.
        schema: where the tables of the common data model are; the connection's own if omitted.
        cohort_schema: where the table `cohort` is; `schema` if omitted.
    """
    asked = specification
    if not isinstance(asked, Specification):
        asked = Specification.from_toml(asked)
    places = {"cohort": cohort_schema or schema}
    for given in (schema, cohort_schema):
        if given is not None and not (isinstance(given, str) and _SCHEMA.fullmatch(given)):
            raise refusal("CV-D900", expected="the name of a schema", got=shown(given))

    def place(table: str) -> str | None:
        return places.get(table, schema)

    def named(table: str) -> str:
        within = place(table)
        return ".".join(quoted(part) for part in (*(within.split(".") if within else ()), table))

    opened = _opened(database)
    in_duckdb = not hasattr(opened, "get_schema")
    for table, wanted in needed(asked).items():
        held = _in_duckdb(opened, named(table)) if in_duckdb else _in_postgres(opened, table, place(table))
        if held is None:
            raise refusal("CV-D902", table=table, place=shown(place(table)))
        for column, kind in wanted.items():
            if kind not in held.get(column, ()):
                got = "a column of another type" if column in held else "no such column"
                raise refusal("CV-D903", table=table, column=column, kind=kind, got=got)
    text = cohort_query(asked, named)
    if in_duckdb:
        return CohortStudy(opened.sql(text), asked.study(), text)
    types = {name: _TYPES[kind] for name, kind in columns(asked).items()}
    return CohortStudy(opened.sql(text, schema=types), asked.study(), text)


def _opened(database: object) -> Any:
    """Return a DuckDB connection or an Ibis backend of PostgreSQL, or raise CV-D904."""
    if isinstance(database, str | PathLike):
        return _connected(fspath(database))
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(database, duckdb.DuckDBPyConnection):
        return database
    backend: Any = database
    if type(database).__module__.startswith("ibis.backends."):
        if backend.name == "duckdb":
            return backend.con
        if backend.name == "postgres":
            return backend
    raise refusal("CV-D904", got=type(database).__name__)


def _connected(place: str) -> Any:
    if place.startswith(("postgresql://", "postgres://")):
        if any(importlib.util.find_spec(package) is None for package in ("ibis", "psycopg")):
            problem = "tables on a PostgreSQL server need an extra"
            raise refusal("CV-E030", problem=problem, package="psycopg", fix=installing("ibis"))
        import ibis

        try:
            return ibis.connect(place)
        except Exception:
            # The driver's message may quote the URL and its password.
            raise refusal("CV-D071", kind=f"no server that answers at {masked(place)}") from None
    if not place.endswith((".duckdb", ".ddb")):
        raise refusal("CV-D904", got=shown(place))
    import duckdb

    try:
        return duckdb.connect(place, read_only=True)
    except duckdb.Error:
        raise refusal("CV-D071", kind="no DuckDB file that can be opened") from None


def _in_duckdb(connection: Any, table: str) -> dict[str, tuple[str, ...]] | None:
    """Return what each column of a table may stand for, None where there is no such table."""
    import duckdb

    try:
        found = connection.sql(f"SELECT * FROM {table} LIMIT 0")
    except duckdb.Error:
        return None
    names = (name.lower() for name in found.columns)
    return {name: _duckdb_meaning(str(kind), name) for name, kind in zip(names, found.types, strict=True)}


def _duckdb_meaning(kind: str, name: str) -> tuple[str, ...]:
    if kind == "DATE" or (kind.startswith("TIMESTAMP") and "ZONE" not in kind):
        return (DATE,)
    try:
        found = duckdb_kind(kind, name)
    except DataError:
        return ()
    return {Kind.INTEGER: (ID, NUMBER), Kind.FLOAT: (NUMBER,), Kind.EXACT: (NUMBER,)}.get(found, ())


def _in_postgres(backend: Any, table: str, schema: str | None) -> dict[str, tuple[str, ...]] | None:
    try:
        found = backend.get_schema(table, database=schema)
    except Exception:
        # The driver's message may quote its address.
        return None
    return {name: _postgres_meaning(kind) for name, kind in found.items()}


def _postgres_meaning(kind: Any) -> tuple[str, ...]:
    if kind.is_date() or (kind.is_timestamp() and kind.timezone is None):
        return (DATE,)
    if kind.is_integer():
        return (ID, NUMBER)
    return (NUMBER,) if kind.is_floating() or kind.is_decimal() else ()
