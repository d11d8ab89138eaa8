"""Where tables come from: frames, files, DuckDB relations, arrays, databases."""

from counterveil.data.sources.databases import source_elsewhere, source_in_database
from counterveil.data.sources.dispatch import read
from counterveil.data.sources.opening import open_table

__all__ = ["open_table", "read", "source_elsewhere", "source_in_database"]
