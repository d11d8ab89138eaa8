"""Entries in one table of an SQL database: the statements that all databases share, and the SQLite file.

A file has a write-ahead log, a disk sync at every commit, and one writer at a time.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, ClassVar

from counterveil.accounting.records import Row, sync
from counterveil.errors import CounterveilError, LedgerError, refusal

SCHEMA_VERSION = 4
GUARDS_CHANGED = "the ledger's tables or triggers were removed or replaced"
# How long a writer waits for the lock, in seconds.
PATIENCE = 60


_COLUMNS = "seq, kind, dataset, request_id, name, body, previous, hash"
_BATCH = 1000


class Store(ABC):
    """An append-only table of entries with one writer at a time; failures are raised as LedgerError.

    The statements are the same in every SQL database, which names the table, says how it marks values, and runs them.
    """

    lasting = True  # whether entries outlive the process
    role = ""  # the role that the database knows the process by; none in a file
    table: ClassVar[str]
    # How transactions are begun.
    begin_writing: ClassVar[str] = "BEGIN"
    begin_reading: ClassVar[str] = "BEGIN"
    mark: ClassVar[str]
    # What stands before the "@" of a request id, as the index on it says it.
    study: ClassVar[str]

    @abstractmethod
    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a statement gives; failures are raised as LedgerError."""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction: durable when left, undone when an exception leaves it."""
        self._run(self.begin_writing)
        try:
            self._take_turn()
            yield
            self._run("COMMIT")
        except BaseException:
            self._undo()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one consistent view of the entries."""
        self._run(self.begin_reading)
        try:
            yield
        finally:
            self._undo()

    @abstractmethod
    def _take_turn(self) -> None:
        """Wait for, or check, what only one writer may have."""

    @abstractmethod
    def _undo(self) -> None:
        """Undo an open transaction; the failure that led here is the one to report."""

    @abstractmethod
    def guards(self) -> str | None:
        """Return what is wrong with the tables, indexes and triggers, at a cost that entries do not change."""

    def quick_damage(self) -> str | None:
        """Return what is wrong with the database as far as that can be found at a bounded cost."""
        return None

    def damage(self) -> str | None:
        """Return what is wrong with the database itself or its guards, None if nothing is."""
        return self.guards()

    @abstractmethod
    def close(self) -> None:
        """Close the database."""

    def append(self, row: Row) -> None:
        """Add an entry; only inside `writing`."""
        fields = [getattr(row, name) for name in _COLUMNS.split(", ")]
        marks = ", ".join([self.mark] * len(fields))
        self._run(f"INSERT INTO {self.table} ({_COLUMNS}) VALUES ({marks})", *fields)

    def last(self) -> Row | None:
        """Return the newest entry."""
        return self._one("ORDER BY seq DESC LIMIT 1")

    def registration(self, dataset: str) -> Row | None:
        """Return the entry that registered `dataset`."""
        return self.of_request(dataset, "", "register")

    def published(self, dataset: str) -> list[Row]:
        """Return the entries that made columns of `dataset` public, in order."""
        rows: list[Row] = []
        while (row := self.of_request(dataset, "", "publish", str(len(rows) + 1))) is not None:
            rows.append(row)
        return rows

    def at(self, seq: int) -> Row | None:
        """Return the entry with this number."""
        return self._one(f"WHERE seq = {self.mark}", seq)

    def latest_reserve(self, dataset: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry of `dataset`, or the newest before a number."""
        return self._latest(f"dataset = {self.mark}", before, dataset)

    def latest_of_study(self, dataset: str, study: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry whose request id begins with the study's name and "@"."""
        return self._latest(f"dataset = {self.mark} AND {self.study} = {self.mark}", before, dataset, study)

    def of_request(self, dataset: str, request_id: str, kind: str, name: str = "") -> Row | None:
        """Return the reserve or settle entry of a request, or that of its release of this name."""
        where = " AND ".join(
            f"{column} = {self.mark}" for column in ("dataset", "request_id", "kind", "name")
        )
        return self._one(f"WHERE {where}", dataset, request_id, kind, name)

    def request_rows(self, dataset: str, request_id: str, release: str) -> dict[str, Row]:
        """Return the entries of a request by kind: its reservation, its answer, and its release of this name."""
        rows = self._rows(
            f"WHERE dataset = {self.mark} AND request_id = {self.mark} "
            f"AND kind IN ('reserve', 'release', 'settle') AND name IN ('', {self.mark})",
            *(dataset, request_id, release),
        )
        return {row.kind: row for row in rows if row.name == (release if row.kind == "release" else "")}

    def registrations(self) -> list[Row]:
        """Return the register entries in order."""
        return self._rows("WHERE kind = 'register' ORDER BY seq")

    def rows(self, dataset: str | None = None, after: int = 0) -> Iterator[Row]:
        """Return the entries in order, read in batches."""
        seq = after
        only, names = ("", ()) if dataset is None else (f"AND dataset = {self.mark}", (dataset,))
        while batch := self._rows(f"WHERE seq > {self.mark} {only} ORDER BY seq LIMIT {_BATCH}", seq, *names):
            yield from batch
            seq = batch[-1].seq

    def between(self, first: int, last: int) -> list[Row]:
        """Return the entries with these numbers and those between, in order."""
        return self._rows(f"WHERE seq >= {self.mark} AND seq <= {self.mark} ORDER BY seq", first, last)

    def not_found(self, after: int) -> int | None:
        """Return the first entry after `after` that a search for its request would miss, None if there is none."""
        # The sign before the number keeps the search on the index of requests.
        found = self._run(
            f"SELECT min(a.seq) FROM {self.table} a WHERE a.seq > {self.mark} AND NOT EXISTS (SELECT 1 FROM "
            f"{self.table} b WHERE b.dataset = a.dataset AND b.request_id = a.request_id AND b.kind = a.kind "
            "AND b.name = a.name AND +b.seq = a.seq)",
            after,
        )
        return None if found == [(None,)] else int(found[0][0])

    def _latest(self, where: str, before: int | None, *values: object) -> Row | None:
        older, limit = ("", ()) if before is None else (f"AND seq < {self.mark}", (before,))
        return self._one(
            f"WHERE kind = 'reserve' AND {where} {older} ORDER BY seq DESC LIMIT 1", *values, *limit
        )

    def _one(self, where: str, *values: object) -> Row | None:
        rows = self._rows(where, *values)
        return rows[0] if rows else None

    def _rows(self, where: str, *values: object) -> list[Row]:
        found = self._run(f"SELECT {_COLUMNS} FROM {self.table} {where}", *values)
        # A damaged page can hold values of other kinds than were written.
        if any(type(seq) is not int or any(type(text) is not str for text in texts) for seq, *texts in found):
            raise refusal(
                "CV-L016", problem="an entry of the ledger is damaged", got="a column of another type"
            )
        return [Row(*fields) for fields in found]


def check_version(version: object) -> None:
    """Raise CV-L003 for a ledger that another version of the package wrote."""
    if version != SCHEMA_VERSION:
        raise refusal("CV-L003", schema_version=SCHEMA_VERSION, version=version)


# Marks the file as ours ("CVL1").
_APPLICATION = 0x43564C31
_STUDY = "substr(request_id, 1, instr(request_id, '@') - 1)"
_TABLE = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, "
    "request_id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE UNIQUE INDEX entry_of_request ON entries (dataset, request_id, kind, name)",
    "CREATE INDEX reserves ON entries (dataset, seq) WHERE kind = 'reserve'",
    "CREATE INDEX registers ON entries (seq) WHERE kind = 'register'",
    f"CREATE INDEX studies ON entries (dataset, {_STUDY}, seq) WHERE kind = 'reserve'",
)
# A commit is on disk before it counts; a damaged page is refused where it is read; functions and views that
# somebody put into the file are not run.
_SETTINGS = ("synchronous = FULL", "cell_size_check = ON", "trusted_schema = OFF", "mmap_size = 0")
_GUARDS = {
    "no_update": "CREATE TRIGGER no_update BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    "no_delete": "CREATE TRIGGER no_delete BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    # INSERT OR REPLACE deletes without calling the trigger above, so it is stopped here.
    "only_append": "CREATE TRIGGER only_append BEFORE INSERT ON entries WHEN NEW.seq IS NOT "
    "(SELECT coalesce(max(seq), -1) + 1 FROM entries) OR EXISTS (SELECT 1 FROM entries WHERE "
    "dataset = NEW.dataset AND request_id = NEW.request_id AND kind = NEW.kind AND name = NEW.name) "
    "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
}


# Files up to this size, some hundred entries, have all their pages and indexes checked when they are opened.
_SMALL = 2**20
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH)


class SqliteStore(Store):
    """Entries in an SQLite database."""

    table = "entries"
    begin_writing = "BEGIN IMMEDIATE"
    mark = "?"
    study = _STUDY

    def __init__(self, path: Path, *, inspect: bool = False) -> None:
        self._path = path
        with self._storage():
            self._inode = path.stat().st_ino
        try:
            self._open("mode=rw")
        except LedgerError:
            # Where nothing can be written, SQLite cannot share its log with other processes, and reads the file alone.
            if not inspect or _writable(path) or _has_log(path):
                raise
            self._open("immutable=1")

    def _open(self, how: str) -> None:
        with self._storage():
            self._db = _connect(f"{self._path.absolute().as_uri()}?{how}")
        try:
            self._run(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
            self._check_format()
            for setting in _SETTINGS:
                self._run(f"PRAGMA {setting}")
        except BaseException:
            self._db.close()
            raise

    def damage(self) -> str | None:
        """Return what is wrong with the file or its guards, None if nothing is."""
        return self.guards() or self._pages_damage()

    def guards(self) -> str | None:
        """Return what is wrong with the schema, which must be the one that was made, word for word."""
        found = {sql for (sql,) in self._run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        return None if found == {*_TABLE, *_GUARDS.values()} else GUARDS_CHANGED

    def quick_damage(self) -> str | None:
        """Return what is wrong with the pages of a small file, None for a large one: the cost stays bounded."""
        ((pages,),), ((size,),) = self._run("PRAGMA page_count"), self._run("PRAGMA page_size")
        return self._pages_damage() if pages * size <= _SMALL else None

    def _pages_damage(self) -> str | None:
        found = self._run("PRAGMA integrity_check(1)")
        return None if found == [("ok",)] else "the database file is damaged"

    def backup(self, target: Path) -> None:
        """Write a whole copy, the log included, to a new file."""
        with self._storage():
            handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            os.close(handle)
            copy = _connect(f"{target.absolute().as_uri()}?mode=rw")
            try:
                self._db.backup(copy)
            finally:
                copy.close()
            sync(target)

    def close(self) -> None:
        """Close the database; what lies in the log is moved into the file, so that the file alone is whole."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._storage():
            return self._db.execute(statement, values).fetchall()

    def _undo(self) -> None:
        # SQLite undoes an open transaction by itself.
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _check_format(self) -> None:
        if self._run("PRAGMA application_id") != [(_APPLICATION,)]:
            raise refusal("CV-L002", place=str(self._path))
        check_version(self._run("PRAGMA user_version")[0][0])

    def _take_turn(self) -> None:
        """Refuse to write to a file that was moved or replaced: its entries would be lost."""
        try:
            inode = self._path.stat().st_ino
        except OSError:
            inode = -1
        if inode != self._inode:
            raise refusal("CV-L019", got=str(self._path))

    @contextmanager
    def _storage(self) -> Iterator[None]:
        """Turn the database's failures into the ledger's."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise _failure(error, str(self._path)) from error
        except (UnicodeError, OverflowError, MemoryError) as error:
            # The driver cannot read what a damaged page holds, be it a value, a name or a message about them.
            raise refusal(
                "CV-L016", problem="the ledger's database is damaged", got=type(error).__name__
            ) from error


class MemoryStore(SqliteStore):
    """Entries in memory, for one process and as long as the ledger is open."""

    lasting = False

    def __init__(self, opening: Row) -> None:
        self._path, self._db = Path(":memory:"), _connect(":memory:")
        for statement in _TABLE[:2]:
            self._db.execute(statement)
        self.append(opening)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one consistent view of the entries; there is no other writer."""
        yield

    def guards(self) -> str | None:
        """Return None: nobody else can change it."""
        return None

    def _take_turn(self) -> None:
        """Nobody can move or replace it."""


def create_file(path: Path, opening: Row) -> None:
    """Make a ledger of one entry at `path` in one step, unless something is there already."""
    if path.exists():
        return
    draft = None
    try:
        handle, draft = tempfile.mkstemp(prefix=".ledger-", dir=path.parent)  # readable by its owner alone
        os.close(handle)
        database = _connect(Path(draft).absolute().as_uri())
        database.execute("PRAGMA journal_mode = WAL")
        _create(database, opening)
        database.close()
        sync(Path(draft))
        # A link appears at once or not at all, and never over another process's ledger.
        with suppress(FileExistsError):
            os.link(draft, path)
        sync(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise _failure(error, str(path)) from error
    finally:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _has_log(path: Path) -> bool:
    """Return whether entries may lie in the log beside a file, so that the file alone is not all of the ledger."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _connect(address: str) -> sqlite3.Connection:
    # Transactions are opened and closed by us; the ledger lets one thread in at a time.
    return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE)


def _create(database: sqlite3.Connection, opening: Row) -> None:
    database.execute("BEGIN IMMEDIATE")
    for statement in (*_TABLE, *_GUARDS.values()):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    database.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(opening))
    database.execute("COMMIT")


def _failure(error: sqlite3.Error | OSError | UnicodeDecodeError, place: str) -> CounterveilError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return refusal("CV-L002", place=place)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return refusal("CV-L010b", patience=PATIENCE)
    # A page that was changed can hold text that is no text, a schema that makes no sense, or an endless value.
    if code in _DAMAGED or "decode" in str(error):
        return refusal("CV-L016", problem="the ledger's database is damaged", got=str(error))
    return refusal("CV-L009", problem=str(error), place=place)
