"""Where entries are kept: the few operations that the ledger asks of a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

SCHEMA_VERSION = 2
GUARDS_CHANGED = "the ledger's tables or triggers were removed or replaced"
# How long a writer waits for the lock, in seconds.
PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One stored entry; `body` is its content, the other columns repeat what is searched for."""

    seq: int
    kind: str
    dataset: str
    request_id: str
    body: str
    previous: str
    hash: str


class Store(Protocol):
    """An append-only table of entries with one writer at a time; failures are raised as LedgerError."""

    @property
    def lasting(self) -> bool:
        """Whether entries outlive the process."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the only write transaction: durable when left, undone when an exception leaves it."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Hold one consistent view of the entries."""
        ...

    def append(self, row: Row) -> None:
        """Add an entry; only inside `writing`."""
        ...

    def last(self) -> Row | None:
        """Return the newest entry; a ledger always has the one that opened it."""
        ...

    def registration(self, dataset: str) -> Row | None:
        """Return the entry that registered `dataset`."""
        ...

    def at(self, seq: int) -> Row | None:
        """Return the entry with this number; number 0 opens the ledger and holds its id."""
        ...

    def latest_reserve(self, dataset: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry of `dataset`, which carries the running totals; or the newest before one."""
        ...

    def latest_of_study(self, dataset: str, study: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry whose request id is `study@...`; or the newest before one."""
        ...

    def of_request(self, dataset: str, request_id: str, kind: str) -> Row | None:
        """Return the reserve or settle entry of a request."""
        ...

    def registrations(self) -> list[Row]:
        """Return the register entries in order."""
        ...

    def rows(self, dataset: str | None = None, after: int = 0) -> Iterator[Row]:
        """Return the entries in order, those after `after` where it is given."""
        ...

    def between(self, first: int, last: int) -> list[Row]:
        """Return the entries with these numbers and those between, in order."""
        ...

    def not_found(self, after: int) -> int | None:
        """Return the first entry after `after` that a search for its request would miss, None if there is none."""
        ...

    def guards(self) -> str | None:
        """Return what is wrong with the tables, indexes and triggers, at a cost that entries do not change."""
        ...

    def quick_damage(self) -> str | None:
        """Return what is wrong with the database as far as that can be found at a bounded cost."""
        ...

    def damage(self) -> str | None:
        """Return what is wrong with the database itself or its guards, None if nothing is."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
