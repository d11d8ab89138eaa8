"""Entries in memory, for one process and as long as the ledger is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from counterveil.accounting.chain import opening_entry, study_of
from counterveil.accounting.store import Row


class MemoryStore:
    """Entries in a list, and in dictionaries those that are searched for; the ledger lets one thread in at a time."""

    lasting = False

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._by_request: dict[tuple[str, str, str], Row] = {}
        self._latest_reserve: dict[str, Row] = {}
        self.append(opening_entry(None))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold a transaction: entries added in it are taken out again when an exception leaves it."""
        before = len(self._rows)
        try:
            yield
        except BaseException:
            kept, self._rows = self._rows[:before], []
            self._by_request, self._latest_reserve = {}, {}
            for row in kept:
                self.append(row)
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one consistent view of the entries; there is no other writer."""
        yield

    def append(self, row: Row) -> None:
        """Add an entry; only inside `writing`."""
        self._rows.append(row)
        self._by_request[row.dataset, row.request_id, row.kind] = row
        if row.kind == "reserve":
            self._latest_reserve[row.dataset] = row

    def last(self) -> Row | None:
        """Return the newest entry."""
        return self._rows[-1] if self._rows else None

    def at(self, seq: int) -> Row | None:
        """Return the entry with this number."""
        return self._rows[seq] if 0 <= seq < len(self._rows) else None

    def registration(self, dataset: str) -> Row | None:
        """Return the entry that registered `dataset`."""
        return self.of_request(dataset, "", "register")

    def latest_reserve(self, dataset: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry of `dataset`, or the newest before a number."""
        if before is None:
            return self._latest_reserve.get(dataset)
        return next((row for row in self._reserves(before) if row.dataset == dataset), None)

    def latest_of_study(self, dataset: str, study: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry whose request id begins with the study's name and "@"."""
        if not study:
            return None
        wanted = (dataset, study)
        found = (row for row in self._reserves(before) if (row.dataset, study_of(row.request_id)) == wanted)
        return next(found, None)

    def of_request(self, dataset: str, request_id: str, kind: str) -> Row | None:
        """Return the reserve or settle entry of a request."""
        return self._by_request.get((dataset, request_id, kind))

    def registrations(self) -> list[Row]:
        """Return the register entries in order."""
        return [row for row in self._rows if row.kind == "register"]

    def rows(self, dataset: str | None = None, after: int = 0) -> Iterator[Row]:
        """Return the entries in order."""
        return (row for row in self._rows if row.seq > after and dataset in (None, row.dataset))

    def between(self, first: int, last: int) -> list[Row]:
        """Return the entries with these numbers and those between, in order."""
        return self._rows[first : last + 1]

    def not_found(self, after: int) -> int | None:
        """Return the first entry after `after` that a search for its request would miss, None if there is none."""
        rows = self._rows[after + 1 :]
        return next(
            (row.seq for row in rows if self.of_request(row.dataset, row.request_id, row.kind) != row), None
        )

    def guards(self) -> str | None:
        """Return None: there are no tables that could be changed."""
        return None

    def quick_damage(self) -> str | None:
        """Return None: there are no pages of ours to look at."""
        return None

    def damage(self) -> str | None:
        """Return None: there is no database that could be damaged."""
        return None

    def close(self) -> None:
        """Let go of the entries."""
        self._rows, self._by_request, self._latest_reserve = [], {}, {}

    def _reserves(self, before: int | None) -> Iterator[Row]:
        rows = reversed(self._rows if before is None else self._rows[:before])
        return (row for row in rows if row.kind == "reserve")
