"""Tables that live elsewhere: in a database, a file, a DuckDB relation."""

from __future__ import annotations

import sys
from os import PathLike


def source_in_database(source: object) -> bool:
    """Return whether a source is a table in a database (an Ibis table expression), whose rows stay there."""
    # Such a table can only exist if its library was imported.
    types = sys.modules.get("ibis.expr.types")
    return types is not None and isinstance(source, types.Table)


def source_elsewhere(source: object) -> bool:
    """Return whether the rows of a source are not in memory: in a file, a DuckDB relation or a database."""
    duckdb = sys.modules.get("duckdb")
    relation = duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation)
    return relation or isinstance(source, str | PathLike) or source_in_database(source)
