"""Engines: the same aggregate query in DuckDB, or in the database where a table lives."""

from counterveil.data.engines.opening import Engine, check, opened

__all__ = ["Engine", "check", "opened"]
