"""Where tables come from: frames, files, DuckDB relations, arrays."""

from counterveil.data.sources.dispatch import read

__all__ = ["read"]
