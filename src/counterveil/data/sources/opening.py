"""Opens a source for queries: on DuckDB where the rows are files or relations, in place for Ibis."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from counterveil.data.cells import Column
from counterveil.data.sources import files, relations
from counterveil.data.sources.dispatch import check_arrays, source_in_database
from counterveil.data.sources.relations import Kind, duckdb_kind, usable
from counterveil.errors import refusal

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

# The name under which a query finds the rows.
ROWS = "counterveil_rows"

# Groups beyond this much memory go to a private folder on disk, which is removed with the connection.
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
def settings_of_engine(memory: str = _MEMORY, inside: str | None = None) -> Iterator[files.Settings]:
    """Give the settings of an engine of our own: bounded memory, and a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="counterveil-", dir=inside) as folder:
        yield {"memory_limit": memory, "temp_directory": folder, "perfect_ht_threshold": _DENSE_BITS}
