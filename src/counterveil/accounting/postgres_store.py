"""Entries in a PostgreSQL database, for ledgers that several machines share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from counterveil.accounting.accounts import (
    checkpoint_failed,
)
from counterveil.accounting.checkpoint import Mark
from counterveil.accounting.records import Row
from counterveil.accounting.sql_store import GUARDS_CHANGED, PATIENCE, SCHEMA_VERSION, Store, check_version
from counterveil.errors import LedgerError, refusal

# The key of the advisory lock that makes writers take turns; it needs no rights beyond INSERT and SELECT.
_TURN = 0x43564C31
_STUDY = "left(request_id, greatest(position('@' in request_id) - 1, 0))"
_REFUSE = " BEGIN RAISE EXCEPTION 'a ledger is append-only'; END "
_CHECK_APPEND = (
    " BEGIN IF NEW.seq IS DISTINCT FROM (SELECT coalesce(max(seq), -1) + 1 FROM counterveil.entries) THEN "
    "RAISE EXCEPTION 'a ledger is append-only'; END IF; RETURN NEW; END "
)
# The triggers as the server writes them out, and the functions that they call, word for word.
_GUARDS = {
    (
        "CREATE TRIGGER no_change BEFORE DELETE OR UPDATE ON counterveil.entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION counterveil.refuse()",
        _REFUSE,
    ),
    (
        "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterveil.entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION counterveil.refuse()",
        _REFUSE,
    ),
    (
        "CREATE TRIGGER only_append BEFORE INSERT ON counterveil.entries "
        "FOR EACH ROW EXECUTE FUNCTION counterveil.check_append()",
        _CHECK_APPEND,
    ),
}
_SCHEMA = (
    "CREATE SCHEMA counterveil",
    "CREATE TABLE counterveil.format (version integer NOT NULL)",
    f"INSERT INTO counterveil.format VALUES ({SCHEMA_VERSION})",
    "CREATE TABLE counterveil.entries (seq bigint PRIMARY KEY, kind text NOT NULL, dataset text NOT NULL, "
    "request_id text NOT NULL, name text NOT NULL, body text NOT NULL, previous text NOT NULL, hash text NOT NULL)",
    "CREATE UNIQUE INDEX entry_of_request ON counterveil.entries (dataset, request_id, kind, name)",
    "CREATE INDEX reserves ON counterveil.entries (dataset, seq) WHERE kind = 'reserve'",
    "CREATE INDEX registers ON counterveil.entries (seq) WHERE kind = 'register'",
    f"CREATE INDEX studies ON counterveil.entries (dataset, ({_STUDY}), seq) WHERE kind = 'reserve'",
    f"CREATE FUNCTION counterveil.refuse() RETURNS trigger LANGUAGE plpgsql AS $${_REFUSE}$$",
    f"CREATE FUNCTION counterveil.check_append() RETURNS trigger LANGUAGE plpgsql AS $${_CHECK_APPEND}$$",
    "CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON counterveil.entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION counterveil.refuse()",
    "CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterveil.entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION counterveil.refuse()",
    "CREATE TRIGGER only_append BEFORE INSERT ON counterveil.entries "
    "FOR EACH ROW EXECUTE FUNCTION counterveil.check_append()",
)


class PostgresStore(Store):
    """Entries in the schema `counterveil` of a PostgreSQL database."""

    table = "counterveil.entries"
    # Whatever the server's default is: a writer that waited for its turn must see what the one before it committed.
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED"
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    mark = "%s"
    study = _STUDY

    def __init__(self, url: str, opening: Row | None = None) -> None:
        try:
            self._db: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        except psycopg.Error as error:
            raise refusal("CV-L018", got=reason(error)) from None
        try:
            self._prepare(opening)
        except BaseException:
            self._db.close()
            raise

    def _take_turn(self) -> None:
        # Statements after the lock see everything that was committed before it was given.
        self._run("SELECT pg_advisory_xact_lock(%s)", _TURN)

    def guards(self) -> str | None:
        """Return what is wrong with the table and its triggers: their own text and that of their functions."""
        found = self._run(
            "SELECT pg_get_triggerdef(t.oid), p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "JOIN pg_language l ON l.oid = p.prolang WHERE t.tgrelid = 'counterveil.entries'::regclass "
            "AND t.tgenabled IN ('O', 'A') AND NOT t.tgisinternal AND l.lanname = 'plpgsql' "
            "AND p.proconfig IS NULL AND NOT p.prosecdef"
        )
        # A plain table that outlives a crash, without rules and policies that would hide or redirect entries.
        plain = self._run(
            "SELECT relkind = 'r' AND relpersistence = 'p' AND NOT relrowsecurity AND NOT relhasrules "
            "FROM pg_class WHERE oid = 'counterveil.entries'::regclass"
        )
        return None if set(found) == _GUARDS and plain == [(True,)] else GUARDS_CHANGED

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _prepare(self, opening: Row | None) -> None:
        """Check or make the tables, and the settings without which a commit would not last."""
        self._run(f"SET lock_timeout = '{PATIENCE}s'")
        self._run("SET synchronous_commit = on")
        if self._run("SHOW fsync") != [("on",)]:
            raise refusal("CV-L017")
        ((self.role,),) = self._run("SELECT session_user::text")
        if opening is not None:
            with self.writing():
                if not self._present("counterveil"):
                    for statement in _SCHEMA:
                        self._run(statement)
                    self.append(opening)
        if not self._present("counterveil.format"):
            raise refusal("CV-L002", place=f"database {self._db.info.dbname!r}")
        check_version(self._run("SELECT max(version) FROM counterveil.format")[0][0])

    def _present(self, name: str) -> bool:
        kind = "to_regclass" if "." in name else "to_regnamespace"
        return self._run(f"SELECT {kind}(%s)", name) != [(None,)]

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            cursor = self._db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.errors.LockNotAvailable:
            raise refusal("CV-L010", patience=PATIENCE) from None
        except psycopg.Error as error:
            problem = error.diag.message_primary or type(error).__name__
            raise refusal("CV-L009", problem=problem, place=f"database {self._db.info.dbname!r}") from error

    def _undo(self) -> None:
        # A lost connection undoes itself.
        with suppress(psycopg.Error):
            self._db.rollback()


# What a driver's text may say about a failed connection. The text itself is not shown: a mistyped address
# makes it quote parts of the password.
_REASONS = (
    "connection refused",
    "password authentication failed",
    "no password supplied",
    "could not translate host name",
    "does not exist",
    "no pg_hba.conf entry",
    "timeout expired",
    "certificate verify failed",
    "too many clients",
    "network is unreachable",
    "no route to host",
)


def reason(error: psycopg.Error) -> str:
    """Return why a server could not be reached, in words that hold nothing of its address."""
    if isinstance(error, psycopg.ProgrammingError):
        return "an address that is not a PostgreSQL URL"
    said = str(error).lower()
    return next((words for words in _REASONS if words in said), type(error).__name__)


# A checkpoint on a PostgreSQL server: one row a ledger, which the server lets move forward only.


# The key of the advisory lock under which the table is made.
_CHECKPOINT_TURN = 0x43564C32
_MARK = "ledger, seq, hash, checked_seq, checked_hash"
_BACKWARDS = (
    " BEGIN IF TG_OP = 'DELETE' OR NEW.ledger IS DISTINCT FROM OLD.ledger OR NEW.seq < OLD.seq OR "
    "NEW.checked_seq < OLD.checked_seq THEN RAISE EXCEPTION 'a checkpoint moves forward only'; END IF; RETURN NEW; END "
)
_CHECKPOINT_SCHEMA = (
    "CREATE SCHEMA counterveil_checkpoints",
    "CREATE TABLE counterveil_checkpoints.marks (ledger text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL, "
    "checked_seq bigint NOT NULL, checked_hash text NOT NULL)",
    f"CREATE FUNCTION counterveil_checkpoints.forward() RETURNS trigger LANGUAGE plpgsql AS $${_BACKWARDS}$$",
    "CREATE TRIGGER forward BEFORE UPDATE OR DELETE ON counterveil_checkpoints.marks "
    "FOR EACH ROW EXECUTE FUNCTION counterveil_checkpoints.forward()",
)


class ServerCheckpoint:
    """The mark of one ledger in the schema `counterveil_checkpoints` of a PostgreSQL database."""

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
        if self._run("SELECT to_regclass('counterveil_checkpoints.marks')") == [(None,)]:
            return None
        found = self._run(
            f"SELECT {_MARK} FROM counterveil_checkpoints.marks WHERE ledger = %s", self._ledger
        )
        return Mark(*found[0]) if found else None

    def create(self, mark: Mark) -> None:
        """Write the first mark, unless there is one; the table is made where it is missing."""
        with self._transaction():
            self._run("SELECT pg_advisory_xact_lock(%s)", _CHECKPOINT_TURN)
            if self._run("SELECT to_regclass('counterveil_checkpoints.marks')") == [(None,)]:
                for statement in _CHECKPOINT_SCHEMA:
                    self._run(statement)
            values = (mark.ledger, mark.seq, mark.hash, mark.checked_seq, mark.checked_hash)
            self._run(
                f"INSERT INTO counterveil_checkpoints.marks ({_MARK}) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING",
                *values,
            )

    def advance(self, mark: Mark) -> None:
        """Move forward to `mark`."""
        with self._transaction():
            found = self._run(
                f"SELECT {_MARK} FROM counterveil_checkpoints.marks WHERE ledger = %s FOR UPDATE",
                self._ledger,
            )
            if not found:
                raise checkpoint_failed(self.place, "the entry of this ledger is missing")
            old = Mark(*found[0])
            new = old.moved_to(mark)
            if new != old:
                self._run(
                    "UPDATE counterveil_checkpoints.marks SET seq = %s, hash = %s, checked_seq = %s, checked_hash = %s "
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
                raise checkpoint_failed(self.place, reason(error)) from None
        return self._connection

    def _connected(self) -> psycopg.Connection[Any]:
        """Return a new connection whose commits last, and which does not wait forever for another session."""
        connection = psycopg.connect(self._url, autocommit=True)
        # Whatever the server's default is: whoever waited for a row must see where the one before moved it.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute(f"SET lock_timeout = '{PATIENCE}s'".encode())
        connection.execute("SET synchronous_commit = on")
        if connection.execute("SHOW fsync").fetchone() != ("on",):
            connection.close()
            raise checkpoint_failed(self.place, "fsync = off: confirmed writes may be lost")
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._db.transaction():
                yield
        except psycopg.Error as error:
            raise checkpoint_failed(self.place, reason(error)) from None

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            cursor = self._db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise checkpoint_failed(self.place, error.diag.message_primary or type(error).__name__) from None
