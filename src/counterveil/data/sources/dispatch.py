"""Chooses the reader for a source: what it holds by its type, its columns, the table that a command line names."""

from __future__ import annotations

import importlib.util
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import counterveil.scratch as scratch
from counterveil.data.cells import Column, from_array, from_cells, no_such_column, uneven_arrays
from counterveil.data.sources import files, relations
from counterveil.data.sources.relations import Kind, duckdb_kind, ibis_kind, usable
from counterveil.errors import DataError, installing, masked, refusal, shown

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


def source_in_database(source: object) -> bool:
    """Return whether a source is a table in a database (an Ibis table expression), whose rows stay there."""
    # Such a table can only exist if its library was imported.
    types = sys.modules.get("ibis.expr.types")
    return types is not None and isinstance(source, types.Table)


def source_elsewhere(source: object) -> bool:
    """Return whether the rows of a source are not in memory: in a file, a DuckDB relation, a database or Spark."""
    duckdb = sys.modules.get("duckdb")
    relation = duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation)
    return relation or isinstance(source, str | PathLike) or source_in_database(source) or in_spark(source)


def in_spark(source: object) -> bool:
    """Return whether a source is a table in Spark: a DataFrame, or an Ibis table on Spark."""
    return _spark_frame(source) or engine_of(source) == "pyspark"


def without_positions(source: object) -> bool:
    """Return whether rows have no public order: in Spark, and in databases that may sort them by what they hold."""
    return _spark_frame(source) or engine_of(source) not in (None, "duckdb", "postgres")


def _spark_frame(source: object) -> bool:
    return type(source).__module__.startswith("pyspark.sql.") and type(source).__name__ == "DataFrame"


def named_table(source: object) -> object:
    """Return a Spark DataFrame as the Ibis table of a view on it, other sources as they are."""
    if not _spark_frame(source):
        return source
    import ibis

    frame: Any = source
    view = f"counterveil_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    return ibis.pyspark.connect(frame.sparkSession).table(view)


def engine_of(source: object) -> str | None:
    """Return the name of the engine behind an Ibis table, None for other sources and for tables without an engine."""
    if not source_in_database(source):
        return None
    try:
        return str(source.get_backend().name)  # type: ignore[attr-defined]
    except Exception:
        return None


def opened_here(source: object) -> object:
    """Return an Ibis table on DuckDB as the relation that it is, other sources as they are."""
    if engine_of(source) != "duckdb":
        return source
    import ibis

    backend = source.get_backend()  # type: ignore[attr-defined]
    try:
        return backend.con.sql(ibis.to_sql(source))
    except Exception:
        # Its message may quote rows.
        raise refusal("CV-D016", kind="a table in a database") from None


Columns: TypeAlias = dict[str, Column]


def read(
    source: object, names: tuple[str, ...], numeric: frozenset[str], order: str | None = None
) -> Columns:
    """Return the named columns of any supported source; `numeric` names those that must be numbers.

    The column `order` may hold dates or times; it is then read as texts in the same order.
    """
    if isinstance(source, str | PathLike):
        return files.read(source, names, numeric, order)
    if isinstance(source, Mapping):
        return read_arrays(source, names, order)
    source = opened_here(source)
    if engine_of(source) == "postgres":
        from counterveil.data.sources import postgres

        return postgres.read(source, names, order)
    if source_in_database(source) or in_spark(source):
        raise refusal("CV-D050", method="a method that reads all rows into this process")
    duckdb = sys.modules.get("duckdb")
    # A relation can only exist if its library was imported; no need to import it for a frame.
    if duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation):
        return relations.read(source, names, numeric, order)
    from counterveil.data.sources import frames

    return frames.read(source, names, order)


_SPARK = "spark://"
_SERVER = ("postgresql://", "postgres://")
_FILE = (".duckdb", ".ddb")


def open_table(place: str, table: str | None) -> Any:
    """Return the source that `place` names: a file as it is, or the table of a database.

    A URL that Ibis connects to gives an Ibis table and a DuckDB file a relation; they stay where they are. "spark://"
    alone means the session that Spark's own settings describe.
    """
    if place.startswith(_SPARK):
        return _cluster(place, _named("Spark", table))
    if "://" in place:
        return _server(place, _named(place.partition("://")[0], table))
    if place.endswith(_FILE):
        return _file(place, _named("a DuckDB file", table))
    if table is not None:
        raise refusal("CV-D070b", table=table)
    return place


def _named(kind: str, table: str | None) -> str:
    if table:
        return table
    raise refusal("CV-D070", kind=kind)


def _require(package: str, problem: str, extra: str) -> None:
    if importlib.util.find_spec("ibis") is None or importlib.util.find_spec(package) is None:
        raise refusal("CV-E030", problem=problem, package=package, fix=installing(extra))


def _server(url: str, table: str) -> Any:
    _require("psycopg" if url.startswith(_SERVER) else "ibis", "a table in a database needs an extra", "ibis")
    import ibis

    try:
        backend = ibis.connect(url)
        if backend.name == "duckdb":
            spilling_here(backend.con)
        return backend.table(table)
    except Exception:
        # The driver's message may quote the URL and its password.
        raise refusal("CV-D071", kind=f"no table {shown(table)} at {masked(url)}") from None


def _cluster(url: str, table: str) -> Any:
    """Return a table of Spark's catalogue, or the Parquet files at a path."""
    _require("pyspark", "a table in Spark needs an extra", "spark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if SparkSession.getActiveSession() is None:
        # What Spark keeps on its disks: in clear for nobody, and here where somebody says where.
        builder = builder.config("spark.io.encryption.enabled", "true")
        folder = scratch.lasting() if os.environ.get(scratch.VARIABLE) else None
        builder = builder if folder is None else builder.config("spark.local.dir", folder)
    try:
        session = (builder if url == _SPARK else builder.master(url)).getOrCreate()
        frame = session.read.parquet(table) if "/" in table else session.table(table)
        return named_table(frame)
    except Exception:
        raise refusal("CV-D071", kind=f"no table {shown(table)} in Spark") from None


def _file(path: str, table: str) -> Any:
    import duckdb

    try:
        return spilling_here(duckdb.connect(files.in_utf8(path), read_only=True)).table(table)
    except duckdb.Error:
        raise refusal("CV-D071", kind=f"no table {shown(table)} in the DuckDB file") from None


def read_arrays(
    source: Mapping[Any, Any], names: tuple[str, ...], order: str | None = None
) -> dict[str, Column]:
    """Return the named columns; masked entries, None and NaN are missing.

    Dates and times in the column `order` become texts in the same order.
    """
    check_arrays(source, names)
    columns = {
        name: _column_of(_as_texts(source[name]) if name == order else source[name], name) for name in names
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise uneven_arrays(names)
    return columns


def check_arrays(source: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    """Raise where a dictionary lacks one of the columns."""
    for name in names:
        if name not in source:
            raise no_such_column(name, source)


def _as_texts(values: Any) -> Any:
    """Return moments as ISO texts, and everything else as it is."""
    array = np.asarray(values)
    if array.dtype.kind != "M":
        return values
    texts = np.datetime_as_string(array).astype(object)
    texts[np.isnat(array)] = None
    return texts


def _column_of(values: Any, name: str) -> Column:
    if isinstance(values, list | tuple):
        # Not through numpy, which would turn a list of numbers and texts into texts.
        return from_cells(list(values), name)
    gaps: NDArray[np.bool_] | None = None
    if isinstance(values, np.ma.MaskedArray):
        gaps = np.ma.getmaskarray(values)
        values = values.data
    try:
        array = np.asarray(values)
    except Exception:
        # Whatever the object stumbled on, its message may quote rows.
        raise uneven_arrays([name]) from None
    if array.ndim != 1:
        raise uneven_arrays([name])
    return from_array(array, name, gaps)


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
    from counterveil.data.sources import frames

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


# The name under which a query finds the rows.
ROWS = "counterveil_rows"

# What does not fit into this much memory goes to a scratch folder.
_MEMORY = "2GB"
# Up to 2^18 combinations of small integers are counted in a plain array instead of a hash table.
_DENSE_BITS = 18

Ask: TypeAlias = Callable[[str, Mapping[str, Kind]], dict[str, Column]]


@dataclass(frozen=True, slots=True)
class Engine:
    """A place where a query can be run over a source.

    `columns` gives the SQL and the kind of each column; `ask(text, kinds)` returns the named columns of a query's
    result; `native` says whether the text may use what only DuckDB has.
    """

    columns: dict[str, tuple[str, Kind]]
    ask: Ask
    native: bool


@contextmanager
def opened(source: object, names: tuple[str, ...]) -> Iterator[Engine | None]:
    """Give the engine for a source, None for one whose rows are read instead; raises CV-D001 and its like.

    Nothing is asked of the rows.
    """
    in_database, relation = source_in_database(source), is_relation(source)
    if in_database:
        from counterveil.data.sources import frames as ibis_tables

        columns, ask, native = ibis_tables.opened(source, names, ROWS)
        _check(columns, names)
        yield None if ask is None else Engine(columns, ask, native)
    elif isinstance(source, str | PathLike):
        with settings_of_engine() as settings, files.opened(source, names, settings) as located:
            engine = _engine(*located)
            _check(engine.columns, names)
            yield engine
    elif relation:
        with _over_relation(source, names) as engine:
            _check(engine.columns, names)
            yield engine
    else:
        yield None


def check(source: object, names: tuple[str, ...]) -> None:
    """Raise where a source lacks one of the columns or has it in an unsupported type; reads no row."""
    if source_in_database(source) or isinstance(source, str | PathLike) or is_relation(source):
        with opened(source, names):
            return
    if isinstance(source, Mapping):
        check_arrays(source, names)
        return
    from counterveil.data.sources import frames

    frames.check(source, names)


def is_relation(source: object) -> bool:
    """Return whether a source is a DuckDB relation."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation)


@contextmanager
def _over_relation(relation: Any, names: tuple[str, ...]) -> Iterator[Engine]:
    import duckdb

    try:
        yield _engine(relation, relations.locate(relation, names))
    except duckdb.Error:
        raise refusal("CV-D016", kind="a DuckDB relation") from None
    finally:
        # A query over a relation leaves a view on its connection, which is not ours.
        with suppress(duckdb.Error):
            relation.query(ROWS, f"DROP VIEW {ROWS}")


def _engine(relation: DuckDBPyRelation, wanted: dict[str, tuple[str, str]]) -> Engine:
    def ask(text: str, kinds: Mapping[str, Kind]) -> dict[str, Column]:
        found = relation.query(ROWS, text)
        answer = {} if found is None else found.fetchnumpy()
        return {name: relations.plain_column(answer[name], name) for name in kinds}

    kinds = {name: duckdb_kind(sql_type, name) for name, (_, sql_type) in wanted.items()}
    columns = {
        name: (f"CAST({identifier} AS VARCHAR)" if kinds[name] is Kind.TEXT else identifier, kinds[name])
        for name, (identifier, _) in wanted.items()
    }
    return Engine(columns, ask, native=True)


def _check(columns: dict[str, tuple[str, Kind]], names: tuple[str, ...]) -> None:
    """Raise CV-D013 where a column has a kind that its role cannot use."""
    for name in names:
        usable(columns[name][1], name)


@contextmanager
def settings_of_engine(memory: str = _MEMORY) -> Iterator[files.Settings]:
    """Give the settings of an engine of our own: bounded memory beside a folder that is removed afterwards.

    Where no rows may lie on a disk, as much memory as the engine takes by itself.
    """
    with scratch.folder() as folder:
        where = (
            {"temp_directory": ""}
            if folder is None
            else {"temp_directory": files.in_utf8(folder), "memory_limit": memory}
        )
        yield {**where, "perfect_ht_threshold": _DENSE_BITS}


def spilling_here(connection: Any) -> Any:
    """Return a connection to somebody's DuckDB, told to write what does not fit into memory into our scratch folder."""
    import duckdb

    folder = files.in_utf8(scratch.lasting() or "").replace("'", "''")
    # Rows of a query that runs already stay where they are.
    with suppress(duckdb.Error):
        connection.execute(f"SET temp_directory = '{folder}'")
    return connection
