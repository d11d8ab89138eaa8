"""An anchor on a PostgreSQL server: one row a ledger, which the server lets move forward only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from counterveil.accounting.accounts import (
    anchor_failed,
)
from counterveil.accounting.anchor import Mark
from counterveil.accounting.postgres_store import reason
from counterveil.accounting.records import PATIENCE
from counterveil.errors import LedgerError

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
