"""Rows of an Ibis table on any database, as Arrow batches that DuckDB reads once, checks and sorts.

The database computes and compares nothing. Whole and exact numbers come as the texts that they are written as, whatever
the way of its client: some clients go through pandas, where an integer beside a gap is a float, and SQLite keeps 1.5 in
a column of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from counterveil.data.sources import files
from counterveil.data.sources.relations import Kind, Located
from counterveil.errors import CounterveilError, refusal

# Rows of a batch.
_ROWS = 1 << 16
# Columns that come as text, and the SQL type that says what they hold.
_WRITTEN = dict.fromkeys((Kind.BOOLEAN, Kind.INTEGER, Kind.EXACT, Kind.UNBOUNDED), "DECIMAL")


@contextmanager
def opened(table: Any, names: tuple[str, ...], settings: files.Settings) -> Iterator[Located]:
    """Give a relation over the rows, good for one query, and where the names are in it.

    With one thread in the settings, as some databases serve no other than the one that they were opened in.
    """
    import duckdb

    from counterveil.data.sources.frames import located

    kinds = {name: kind for name, (_, kind) in located(table, names).items()}
    sqlite = table.get_backend().name == "sqlite"
    # It keeps moments as the texts that they were written as.
    written = _WRITTEN | ({Kind.MOMENT: "TIMESTAMP"} if sqlite else {})
    try:
        chosen = table.select(
            **{
                f"c{place}": _as_text(table[name]) if kind in written else table[name]
                for place, (name, kind) in enumerate(kinds.items())
            }
        )
        with duckdb.connect(config=settings) as connection, files.with_room():
            relation = connection.from_arrow(_batches(chosen, sqlite))
            types = map(str, relation.types)
            yield (
                relation,
                {
                    name: (f"c{place}", written.get(kind, sql_type))
                    for place, ((name, kind), sql_type) in enumerate(zip(kinds.items(), types, strict=True))
                },
            )
    except CounterveilError:
        raise
    except Exception:
        # Whatever the database stumbled on, its message may quote rows, or its address.
        raise refusal("CV-D016", kind="a table in a database") from None


def _as_text(column: Any) -> Any:
    import ibis

    return ibis.cases((column, "1"), (~column, "0")) if column.type().is_boolean() else column.cast("string")


def _batches(chosen: Any, sqlite: bool) -> Any:
    if not sqlite:
        return chosen.to_pyarrow_batches(chunk_size=_ROWS)
    from ibis.backends.sql import SQLBackend

    # Its own way holds all rows in a pandas frame.
    return SQLBackend.to_pyarrow_batches(chosen.get_backend(), chosen, chunk_size=_ROWS)
