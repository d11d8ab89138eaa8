"""Where tables come from: frames, files, DuckDB relations, arrays, databases."""

from counterveil.data.sources.dispatch import open_table, read, source_elsewhere, source_in_database

__all__ = ["open_table", "read", "source_elsewhere", "source_in_database"]
