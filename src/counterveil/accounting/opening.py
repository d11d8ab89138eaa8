"""Finding the place where a ledger is kept: a file, a database server, or memory."""

from __future__ import annotations

import importlib.util
import os

from counterveil.accounting.ledger import Ledger
from counterveil.accounting.memory_store import MemoryStore
from counterveil.accounting.sqlite_store import SqliteStore, create_file
from counterveil.accounting.store import Store
from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.errors import LedgerError, MissingExtraError

MEMORY = ":memory:"
_SERVER = ("postgresql://", "postgres://")


def open_ledger(place: str | os.PathLike[str], *, create: bool = False) -> Ledger:
    """Return the ledger at `place`: a path, "postgresql://...", or ":memory:" for one process."""
    if place == MEMORY:
        return Ledger(MemoryStore())
    if isinstance(place, str) and place.startswith(_SERVER):
        return Ledger(_server(place, create))
    try:
        path = checked_path(place)
    except UnreadableError as error:
        raise _no_ledger(str(error)) from None
    if create:
        create_file(path)
    if not path.exists():
        raise _no_ledger(str(path))
    return Ledger(SqliteStore(path))


def _no_ledger(got: str) -> LedgerError:
    return LedgerError(
        "CV-L001",
        "there is no ledger here",
        expected="an existing ledger, because a new one would forget what was spent",
        got=got,
        fix="check the path, or make a ledger with open_ledger(path, create=True) "
        "or `counterveil ledger create`",
    )


def _server(url: str, create: bool) -> Store:
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtraError(
            "CV-E010",
            "a ledger on a PostgreSQL server needs an extra",
            expected="the package psycopg",
            got="it is not installed",
            fix="pip install 'counterveil[postgres]'",
        )
    from counterveil.accounting.postgres_store import PostgresStore

    return PostgresStore(url, create=create)
