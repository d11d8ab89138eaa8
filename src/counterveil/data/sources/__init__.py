"""Where tables come from: frames, files, DuckDB relations, arrays, databases."""

from counterveil.data.sources.dispatch import (
    named_table,
    open_table,
    read,
    source_elsewhere,
    source_in_database,
    without_positions,
)

__all__ = [
    "named_table",
    "open_table",
    "read",
    "source_elsewhere",
    "source_in_database",
    "without_positions",
]
