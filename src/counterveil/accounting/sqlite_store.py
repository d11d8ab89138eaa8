"""Entries in one SQLite file: write-ahead log, a disk sync at every commit, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from counterveil.accounting.refusals import check_version, not_a_ledger, storage_failed
from counterveil.accounting.sql_entries import SqlEntries
from counterveil.accounting.store import PATIENCE, SCHEMA_VERSION
from counterveil.errors import LedgerError

# Marks the file as ours ("CVL1").
_APPLICATION = 0x43564C31
_TABLE = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, "
    "request_id TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE UNIQUE INDEX entry_of_request ON entries (dataset, request_id, kind)",
    "CREATE INDEX reserves ON entries (dataset, seq) WHERE kind = 'reserve'",
    "CREATE INDEX registers ON entries (seq) WHERE kind = 'register'",
)
_GUARDS = {
    "no_update": "CREATE TRIGGER no_update BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    "no_delete": "CREATE TRIGGER no_delete BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    # INSERT OR REPLACE deletes without calling the trigger above, so it is stopped here.
    "only_append": "CREATE TRIGGER only_append BEFORE INSERT ON entries WHEN NEW.seq IS NOT "
    "(SELECT coalesce(max(seq), 0) + 1 FROM entries) OR EXISTS (SELECT 1 FROM entries WHERE "
    "dataset = NEW.dataset AND request_id = NEW.request_id AND kind = NEW.kind) "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
}


class SqliteStore(SqlEntries):
    """Entries in an SQLite database."""

    table = "entries"
    mark = "?"

    lasting = True

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._storage():
            self._inode = path.stat().st_ino
            self._db = _connect(f"{path.absolute().as_uri()}?mode=rw")
        try:
            self._check_format()
            self._run(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
            self._run("PRAGMA synchronous = FULL")
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction: durable when left, undone when an exception leaves it."""
        self._run("BEGIN IMMEDIATE")
        try:
            self._check_same_file()
            yield
            self._run("COMMIT")
        except BaseException:
            self._undo()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one consistent view of the entries."""
        self._run("BEGIN")
        try:
            yield
        finally:
            self._undo()

    def damage(self) -> str | None:
        """Return what is wrong with the file or its guards, None if nothing is."""
        found = self._run("PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            return "the database file is damaged"
        guards = dict(self._run("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        return None if guards == _GUARDS else "the guards against changing entries were removed or replaced"

    def close(self) -> None:
        """Release the database."""
        self._db.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._storage():
            return self._db.execute(statement, values).fetchall()

    def _undo(self) -> None:
        # The failure that led here is the one to report; SQLite undoes an open transaction by itself.
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _check_format(self) -> None:
        if self._run("PRAGMA application_id") != [(_APPLICATION,)]:
            raise not_a_ledger(str(self._path))
        check_version(self._run("PRAGMA user_version")[0][0])

    def _check_same_file(self) -> None:
        """Refuse to write to a file that was moved or replaced: its entries would be lost."""
        try:
            inode = self._path.stat().st_ino
        except OSError:
            inode = -1
        if inode != self._inode:
            raise LedgerError(
                "CV-L019",
                "the ledger file was moved or replaced while it was open",
                expected="the file that was opened, at the same place",
                got=str(self._path),
                fix="open the ledger again and compare its head with the one you noted",
            )

    @contextmanager
    def _storage(self) -> Iterator[None]:
        """Turn the database's failures into the ledger's."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise _failure(error, str(self._path)) from error


def create_file(path: Path) -> None:
    """Make an empty ledger at `path` in one step, unless something is there already; None is returned."""
    if path.exists():
        return
    draft = None
    try:
        handle, draft = tempfile.mkstemp(prefix=".ledger-", dir=path.parent)  # readable by its owner alone
        os.close(handle)
        database = _connect(Path(draft).absolute().as_uri())
        database.execute("PRAGMA journal_mode = WAL")
        _create(database)
        database.close()
        _sync(Path(draft))
        # A link appears at once or not at all, and never over another process's ledger.
        with suppress(FileExistsError):
            os.link(draft, path)
        _sync(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise _failure(error, str(path)) from error
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)


def _connect(address: str) -> sqlite3.Connection:
    # Transactions are opened and closed by us; the ledger lets one thread in at a time.
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE)


def _create(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    for statement in (*_TABLE, *_GUARDS.values()):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    database.execute("COMMIT")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failure(error: sqlite3.Error | OSError, place: str) -> LedgerError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return not_a_ledger(place)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerError(
            "CV-L010",
            "the ledger is busy",
            expected=f"a turn to write within {PATIENCE} seconds",
            got="another process holds the ledger",
            fix="try again; if it persists, look for a process that hangs with the ledger open",
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return LedgerError(
            "CV-L016",
            "the ledger's database is damaged",
            expected="a readable database",
            got=str(error),
            fix="stop spending, run `counterveil ledger verify`, and restore the ledger from a copy",
        )
    return storage_failed(str(error), place)
