"""Where entries are kept: the few operations that the ledger asks of a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

SCHEMA_VERSION = 2
# How long a writer waits for its turn, in seconds.
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
        """Return the newest entry."""
        ...

    def registration(self, dataset: str) -> Row | None:
        """Return the entry that registered `dataset`."""
        ...

    def latest_reserve(self, dataset: str) -> Row | None:
        """Return the newest reserve entry of `dataset`, which carries the running totals."""
        ...

    def of_request(self, dataset: str, request_id: str, kind: str) -> Row | None:
        """Return the reserve or settle entry of a request."""
        ...

    def registrations(self) -> list[Row]:
        """Return the register entries in order."""
        ...

    def rows(self, dataset: str | None = None) -> Iterator[Row]:
        """Return the entries in order."""
        ...

    def damage(self) -> str | None:
        """Return what is wrong with the database itself or its guards, None if nothing is."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...
