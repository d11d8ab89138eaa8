"""Engines: the same aggregate query in DuckDB or inside the database that holds a table."""

from counterveil.data.engines.opening import Engine, check, opened

__all__ = ["Engine", "check", "opened"]
