"""Where tables come from: frames, files, DuckDB relations, arrays, databases."""

from counterveil.data.sources.dispatch import (
    in_spark,
    named_table,
    open_table,
    read,
    source_elsewhere,
    source_in_database,
)

__all__ = ["in_spark", "named_table", "open_table", "read", "source_elsewhere", "source_in_database"]
