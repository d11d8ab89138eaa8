"""Anchors: the head of a ledger, stored in a second place, so that lost entries are detected.

A ledger alone cannot tell that its newest entries were cut off, that an older copy was put in its place, or that
another ledger was. An anchor holds the ledger's id and the number and hash of its newest entry. It moves forward
only, after each commit and before anybody acts on it: an entry that is not anchored yet has led to nothing.

An anchor on a PostgreSQL server: one row a ledger, which the server lets move forward only.

The anchors of one ledger: where they are, whether the ledger still holds what they hold, and moving them.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg

from counterveil.accounting.chain import unseal
from counterveil.accounting.records import PATIENCE, Store
from counterveil.accounting.refusals import anchor_failed, cut_off, other_ledger
from counterveil.accounting.stores import reason
from counterveil.errors import LedgerError, refusal

# Each record of the file is written in one piece; while one is written, the other is whole.
_RECORD = 512


@dataclass(frozen=True, slots=True)
class Mark:
    """What an anchor holds: a ledger's id, its newest entry, and the entry up to which it was verified."""

    ledger: str
    seq: int
    hash: str
    checked_seq: int = 0
    checked_hash: str = ""

    def moved_to(self, new: Mark) -> Mark:
        """Return the later of both; marks of other ledgers, and another entry of the same number, are refused."""
        if new.ledger != self.ledger:
            raise other_ledger(new.ledger, self.ledger)
        if new.seq == self.seq and new.hash != self.hash:
            raise cut_off(self.seq, self.hash)
        later = max(self, new, key=lambda mark: mark.seq)
        checked = max(self, new, key=lambda mark: mark.checked_seq)
        return replace(later, checked_seq=checked.checked_seq, checked_hash=checked.checked_hash)


class Anchor(Protocol):
    """A place that holds the mark of one ledger."""

    @property
    def place(self) -> str:
        """The location, for messages; no secrets."""
        ...

    def read(self) -> Mark | None:
        """Return the mark, None where there is none; an anchor that cannot be read raises CV-L063."""
        ...

    def create(self, mark: Mark) -> None:
        """Write the first mark, unless there is one."""
        ...

    def advance(self, mark: Mark) -> None:
        """Move forward to `mark`; a mark that is behind changes nothing."""
        ...

    def close(self) -> None:
        """Release what it holds open."""
        ...


class FileAnchor:
    """A mark in a file of two records, which its owner alone may read; the newest whole record counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The file's path."""
        return str(self._path)

    def read(self) -> Mark | None:
        """Return the mark, None where there is no file."""
        try:
            with self._path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return self._newest(file.read(4 * _RECORD))[0]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise anchor_failed(self.place, error.strerror or type(error).__name__) from None

    def create(self, mark: Mark) -> None:
        """Put down the first mark in one step, unless there is one."""
        draft = None
        try:
            handle, draft = tempfile.mkstemp(prefix=".head-", dir=self._path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_written(mark) * 2)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, self._path)
            _sync(self._path.parent)
        except OSError as error:
            raise anchor_failed(self.place, error.strerror or type(error).__name__) from None
        finally:
            if draft is not None:
                Path(draft).unlink(missing_ok=True)

    def advance(self, mark: Mark) -> None:
        """Move forward to `mark`, durably."""
        with self._locked() as handle:
            old, slot = self._newest(os.pread(handle, 4 * _RECORD, 0))
            new = old.moved_to(mark)
            if new != old:
                os.pwrite(handle, _written(new), _RECORD * (1 - slot))
                os.fsync(handle)

    def close(self) -> None:
        """Do nothing: the file is open only while it is read or written."""

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            handle = os.open(self._path, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise anchor_failed(self.place, error.strerror or type(error).__name__) from None

    def _newest(self, content: bytes) -> tuple[Mark, int]:
        """Return the newest whole record and its place."""
        found = []
        for slot in (0, 1):
            mark = _mark(content[slot * _RECORD : (slot + 1) * _RECORD])
            if mark is not None:
                found.append((mark, slot))
        if not found or len(content) != 2 * _RECORD:
            raise anchor_failed(self.place, "its content is damaged")
        return max(found, key=lambda each: (each[0].seq, each[0].checked_seq))


def _written(mark: Mark) -> bytes:
    """Return one record: the mark as JSON with its own hash, filled up with spaces."""
    facts = json.dumps(asdict(mark), sort_keys=True)
    line = json.dumps(
        {"mark": asdict(mark), "sha256": hashlib.sha256(facts.encode()).hexdigest()}, sort_keys=True
    )
    return line.encode().ljust(_RECORD - 1) + b"\n"


def _mark(record: bytes) -> Mark | None:
    """Return the mark of a record, None for one that is not whole."""
    try:
        facts: dict[str, Any] = json.loads(record)["mark"]
        mark = Mark(**facts)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return mark if _written_alike(mark, record) else None


def _written_alike(mark: Mark, record: bytes) -> bool:
    kinds = (mark.ledger, mark.seq, mark.hash, mark.checked_seq, mark.checked_hash)
    return [type(each) for each in kinds] == [str, int, str, int, str] and _written(mark) == record


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The key of the advisory lock under which the table is made.
_TURN = 0x43564C32
_COLUMNS = "ledger, seq, hash, checked_seq, checked_hash"
_BACKWARDS = (
    " BEGIN IF TG_OP = 'DELETE' OR NEW.ledger IS DISTINCT FROM OLD.ledger OR NEW.seq < OLD.seq OR "
    "NEW.checked_seq < OLD.checked_seq THEN RAISE EXCEPTION 'an anchor moves forward only'; END IF; RETURN NEW; END "
)
_SCHEMA = (
    "CREATE SCHEMA counterveil_anchors",
    "CREATE TABLE counterveil_anchors.heads (ledger text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL, "
    "checked_seq bigint NOT NULL, checked_hash text NOT NULL)",
    f"CREATE FUNCTION counterveil_anchors.forward() RETURNS trigger LANGUAGE plpgsql AS $${_BACKWARDS}$$",
    "CREATE TRIGGER forward BEFORE UPDATE OR DELETE ON counterveil_anchors.heads "
    "FOR EACH ROW EXECUTE FUNCTION counterveil_anchors.forward()",
)


class ServerAnchor:
    """The mark of one ledger in the schema `counterveil_anchors` of a PostgreSQL database."""

    def __init__(self, url: str, ledger: str) -> None:
        self._url = url
        self._ledger = ledger
        self._connection: psycopg.Connection[Any] | None = None
        self.place = "a PostgreSQL server"

    def read(self) -> Mark | None:
        """Return the mark, None where there is none for this ledger; a lost connection is made anew."""
        try:
            return self._read()
        except LedgerError:
            if self._connection is None or not self._connection.closed:
                raise
        # A server that was restarted while an answer was computed must not cost that answer.
        return self._read()

    def _read(self) -> Mark | None:
        if self._run("SELECT to_regclass('counterveil_anchors.heads')") == [(None,)]:
            return None
        found = self._run(f"SELECT {_COLUMNS} FROM counterveil_anchors.heads WHERE ledger = %s", self._ledger)
        return Mark(*found[0]) if found else None

    def create(self, mark: Mark) -> None:
        """Write the first mark, unless there is one; the table is made where it is missing."""
        with self._transaction():
            self._run("SELECT pg_advisory_xact_lock(%s)", _TURN)
            if self._run("SELECT to_regclass('counterveil_anchors.heads')") == [(None,)]:
                for statement in _SCHEMA:
                    self._run(statement)
            values = (mark.ledger, mark.seq, mark.hash, mark.checked_seq, mark.checked_hash)
            self._run(
                f"INSERT INTO counterveil_anchors.heads ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING",
                *values,
            )

    def advance(self, mark: Mark) -> None:
        """Move forward to `mark`."""
        with self._transaction():
            found = self._run(
                f"SELECT {_COLUMNS} FROM counterveil_anchors.heads WHERE ledger = %s FOR UPDATE", self._ledger
            )
            if not found:
                raise anchor_failed(self.place, "the entry of this ledger is missing")
            old = Mark(*found[0])
            new = old.moved_to(mark)
            if new != old:
                self._run(
                    "UPDATE counterveil_anchors.heads SET seq = %s, hash = %s, checked_seq = %s, checked_hash = %s "
                    "WHERE ledger = %s",
                    *(new.seq, new.hash, new.checked_seq, new.checked_hash, new.ledger),
                )

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _db(self) -> psycopg.Connection[Any]:
        """The connection, made when it is first needed and again after it was lost."""
        if self._connection is None or self._connection.closed:
            self._connection = None
            try:
                self._connection = self._connected()
            except psycopg.Error as error:
                raise anchor_failed(self.place, reason(error)) from None
        return self._connection

    def _connected(self) -> psycopg.Connection[Any]:
        """Return a new connection whose commits last, and which does not wait forever for another session."""
        connection = psycopg.connect(self._url, autocommit=True)
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'".encode())
        connection.execute("SET synchronous_commit = on")
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            connection.close()
            raise anchor_failed(self.place, "fsync = off: confirmed writes may be lost")
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._db.transaction():
                yield
        except psycopg.Error as error:
            raise anchor_failed(self.place, reason(error)) from None

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            cursor = self._db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise anchor_failed(self.place, error.diag.message_primary or type(error).__name__) from None


SERVER = ("postgresql://", "postgres://")
# Names a second place for every ledger that a process opens, where no other is named.
VARIABLE = "COUNTERVEIL_ANCHOR"
_SUFFIX = ".head"


class Anchors:
    """All anchors of a ledger; each of them must agree before anything is spent."""

    def __init__(self, ledger: str, anchors: Iterable[Anchor] = ()) -> None:
        self.ledger = ledger
        self._anchors = list(anchors)
        self._behind = False

    def add(self, anchor: Anchor) -> None:
        """Take one more anchor."""
        self._anchors.append(anchor)

    def create(self, mark: Mark) -> None:
        """Put down the mark wherever there is none yet, beside the file last."""
        for anchor in reversed(self._anchors):
            anchor.create(mark)

    def marks(self) -> list[Mark]:
        """Return what all anchors hold; read it before a view of the ledger is opened, which may be older."""
        return [self._mark(anchor) for anchor in self._anchors]

    def check(self, store: Store, marks: list[Mark]) -> None:
        """Raise unless the ledger holds the entries that the anchors hold."""
        last = store.last()
        self._behind = any(last is None or mark.seq < last.seq for mark in marks)
        for mark in marks:
            check_contains(store, mark.seq, mark.hash)
            if mark.checked_seq:
                check_contains(store, mark.checked_seq, mark.checked_hash)

    def advance(self, seq: int, head: str, *, appended: bool) -> None:
        """Move all anchors to the ledger's newest entry, those too that a crash left behind."""
        if appended or self._behind:
            for anchor in self._anchors:
                anchor.advance(Mark(self.ledger, seq, head))
            self._behind = False

    def note_checked(self, seq: int, head: str) -> None:
        """Write down that the ledger was verified up to an entry."""
        for anchor in self._anchors:
            anchor.advance(Mark(self.ledger, seq, head, checked_seq=seq, checked_hash=head))

    def places(self) -> list[str]:
        """Return where the anchors are, for people."""
        return [anchor.place for anchor in self._anchors]

    def close(self) -> None:
        """Close connections."""
        for anchor in self._anchors:
            anchor.close()

    def _mark(self, anchor: Anchor) -> Mark:
        mark = anchor.read()
        if mark is None:
            raise refusal("CV-L062", place=anchor.place)
        if mark.ledger != self.ledger:
            raise other_ledger(self.ledger, mark.ledger)
        return mark


def checked(marks: list[Mark]) -> tuple[int, str] | None:
    """Return the entry up to which the ledger was verified, None unless every anchor knows one."""
    known = [(mark.checked_seq, mark.checked_hash) for mark in marks if mark.checked_seq]
    return min(known) if known and len(known) == len(marks) else None


def check_contains(store: Store, seq: int, head: str) -> None:
    """Raise CV-L060 unless entry `seq` of the ledger is whole and has this hash."""
    row = store.at(seq)
    if row is None or row.hash != head:
        raise cut_off(seq, head)
    unseal(row)


def beside(path: Path) -> FileAnchor:
    """Return the anchor that every ledger in a file has beside it."""
    whole = path.resolve()
    return FileAnchor(whole.with_name(whole.name + _SUFFIX))


def anchor_at(place: str, ledger: str) -> Anchor:
    """Return the anchor at a place: a PostgreSQL URL, a file, or a folder that holds one file a ledger."""
    if place.startswith(SERVER):
        if importlib.util.find_spec("psycopg") is None:
            raise refusal("CV-E010")

        return ServerAnchor(place, ledger)
    path = Path(place)
    return FileAnchor(path / f"{ledger}{_SUFFIX}" if path.is_dir() else path)


def recorded(place: str) -> str:
    """Return a place as it is written into the ledger, so that it is found from everywhere; secrets are refused."""
    if not place or "\0" in place:
        raise refusal("CV-L068", got="an empty path, or one with a NUL character")
    # A mistyped address would become a file name, with its password in it.
    if not place.startswith(SERVER) and re.match(r"[A-Za-z][A-Za-z0-9+.]+:/", place):
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL")
    if not place.startswith(SERVER):
        return str(Path(place).resolve())
    try:
        secret = urlsplit(place).password is not None or "password=" in place.lower()
    except ValueError:
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL") from None
    if secret:
        raise refusal("CV-L068", got="an address with a password in it")
    return place


def check_never_used(path: Path, anchor: str | None) -> None:
    """Raise CV-L064 where an anchor shows that a ledger was here which is gone."""
    files = [beside(path)]
    if anchor is not None and not anchor.startswith(SERVER) and not Path(anchor).is_dir():
        files.append(FileAnchor(Path(anchor)))
    for each in files:
        # A file is made before its anchor, so one that another process makes just now is there by this time.
        if os.path.lexists(each.place) and not path.exists():
            raise refusal("CV-L064", place=each.place)
