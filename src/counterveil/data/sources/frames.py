"""Columns from pandas, polars and pyarrow frames, through narwhals; tables in databases, through Ibis.

Queries are aggregated inside the database, and only results come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from counterveil.data.cells import Column, duplicated_columns, from_array, from_cells, no_such_column
from counterveil.data.sources.relations import Kind, ibis_kind, quoted
from counterveil.errors import refusal

# Numpy has no such integers; they are read as Python's.
_WIDE = (nw.Int128, nw.UInt128)


def read(source: object, names: tuple[str, ...], order: str | None = None) -> dict[str, Column]:
    """Return the named columns; the index is ignored and the frame is not changed.

    Dates and times in the column `order` become texts in the same order.
    """
    frame = _open(source)
    kinds = _kinds(frame, names)
    chosen = frame.select(
        *(_as_text(name, kinds[name]) if name == order else nw.col(name) for name in names),
    )
    eager = _collect(chosen) if isinstance(chosen, nw.LazyFrame) else chosen
    return {name: column_of(eager[name], name) for name in names}


def _as_text(name: str, kind: DType) -> nw.Expr:
    """Return moments as texts in the same order, in UTC where they have a zone; what is no moment as it is."""
    column = nw.col(name)
    if not kind.is_temporal() or kind == nw.Duration:
        # Spans of time are refused: their texts are in another order.
        return column
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        # In its own zone an hour comes twice when summer time ends.
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(nw.String)


def schema_of(source: object) -> dict[str, DType]:
    """Return the names and types of all columns of a frame."""
    return _schema(_open(source))


def check(source: object, names: tuple[str, ...]) -> None:
    """Raise where a frame lacks one of the columns or has it in an unsupported type."""
    for name, kind in _kinds(_open(source), names).items():
        _check_kind(kind, name)


def _kinds(frame: nw.DataFrame[Any] | nw.LazyFrame[Any], names: tuple[str, ...]) -> dict[str, DType]:
    schema = _schema(frame)
    for name in names:
        if name not in schema:
            raise no_such_column(name, list(schema))
    return {name: schema[name] for name in names}


def _schema(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> dict[str, DType]:
    """Return the names and types of all columns."""
    try:
        return dict(frame.collect_schema())
    except ValueError:
        return (
            {name: _type_of(frame[name]) for name in frame.columns} if isinstance(frame, nw.DataFrame) else {}
        )


def _type_of(series: nw.Series[Any]) -> DType:
    try:
        return series.dtype
    except ValueError:
        # Arrow has decimals of a negative scale, which narwhals has no type for; cell by cell they are read exactly.
        return nw.Unknown()


def _check_kind(kind: DType, name: str) -> None:
    if kind.is_temporal() or kind.is_nested() or kind == nw.Binary:
        raise refusal("CV-D013", name=name, kind=str(kind))


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    try:
        return frame.collect()
    except Exception:
        # Whatever the plan stumbled on, its message may quote the rows.
        raise refusal("CV-D016", kind="a lazy frame") from None


def _open(source: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    # A lazy frame cannot hold one name twice, and asking it for its names would run its plan.
    if not hasattr(source, "collect"):
        headers = getattr(source, "column_names", getattr(source, "columns", []))
        twice = [name for name, count in Counter(headers).items() if count > 1]
        if twice:
            raise duplicated_columns(twice)
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any]
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise refusal("CV-D011", kind=type(source).__name__) from None
    if isinstance(frame, nw.LazyFrame) and frame.implementation is not nw.Implementation.POLARS:
        raise refusal("CV-D011", kind=f"a lazy {frame.implementation.value} frame")
    return frame


def column_of(series: nw.Series[Any], name: str) -> Column:
    """Return a column of a frame."""
    kind = _type_of(series)
    _check_kind(kind, name)
    if kind == nw.Boolean or (kind.is_integer() and kind not in _WIDE) or kind.is_float():
        gaps = np.array(series.is_null().to_numpy(), dtype=np.bool_)
        zero = False if kind == nw.Boolean else 0
        filled = series.fill_null(zero) if gaps.any() else series
        values = np.asarray(filled.to_numpy())
        if values.dtype.kind in "biuf":
            return from_array(values, name, gaps)
    # What holds nothing is found cell by cell: a library's own test fails on a signalling NaN.
    return from_cells(series.to_list(), name)


# Each of these adds up the same integers as the others. Elsewhere infinities, floors, divisions or the size of integers
# are not the same, and rows are read in batches.
ENGINES = ("duckdb", "postgres", "pyspark")

_TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "int64",
    Kind.FLOAT: "float64",
    Kind.TEXT: "string",
}


def opened(
    table: Any, names: tuple[str, ...], rows: str
) -> tuple[dict[str, tuple[str, Kind]], Callable[[str, Mapping[str, Kind]], dict[str, Column]] | None, bool]:
    """Return where the names are in a table, a function that answers queries, and whether DuckDB does it.

    The function is None where sums would not be exact.
    """
    import ibis
    import sqlglot

    try:
        backend = table.get_backend()
    except Exception:
        raise refusal("CV-D051") from None

    def ask(text: str, kinds: Mapping[str, Kind]) -> dict[str, Column]:
        (query,) = sqlglot.transpile(text, read="duckdb", write=backend.dialect)
        try:
            answer = _answer(backend, f"WITH {rows} AS ({ibis.to_sql(table)}) {query}", kinds)
        except Exception:
            # Whatever the database stumbled on, its message may quote rows.
            raise refusal("CV-D016", kind="a table in a database") from None
        return {name: column_of(answer[name], name) for name in kinds}

    return located(table, names), ask if backend.name in ENGINES else None, backend.name == "duckdb"


def _answer(backend: Any, query: str, kinds: Mapping[str, Kind]) -> nw.DataFrame[Any]:
    """Return the result of a query whose columns are those of `kinds`, in that order."""
    if backend.name == "pyspark":
        # Ibis would go through pandas, where an integer beside a gap becomes a float.
        return nw.from_native(backend.raw_sql(query).toArrow(), eager_only=True)
    schema = {name: _TYPES[kind] for name, kind in kinds.items()}
    return nw.from_native(backend.sql(query, schema=schema).to_pyarrow(), eager_only=True)


def located(table: Any, names: tuple[str, ...]) -> dict[str, tuple[str, Kind]]:
    """Return the SQL identifier and the kind of each name in an Ibis table, or raise CV-D001 or CV-D010."""
    schema = dict(table.schema().items())
    folded = Counter(name.casefold() for name in schema)
    for name in names:
        if name not in schema:
            raise no_such_column(name, schema)
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise duplicated_columns(twice)
    return {name: (quoted(name), ibis_kind(schema[name], name)) for name in names}
