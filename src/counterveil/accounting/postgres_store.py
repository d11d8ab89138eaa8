"""Entries in a PostgreSQL database, for ledgers that several machines share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from counterveil.accounting.accounts import check_version
from counterveil.accounting.records import GUARDS_CHANGED, PATIENCE, SCHEMA_VERSION, Row, Store
from counterveil.errors import refusal

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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write transaction: durable when left, undone when an exception leaves it."""
        self._run("BEGIN")
        try:
            # Statements after the lock see everything that was committed before it was given.
            self._run("SELECT pg_advisory_xact_lock(%s)", _TURN)
            yield
            self._run("COMMIT")
        except BaseException:
            self._undo()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one consistent view of the entries."""
        self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self._undo()

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
        # The failure that led here is the one to report; a lost connection undoes itself.
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
