"""The statements that read and add entries: the same in every SQL database, but for two words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from counterveil.accounting.refusals import damaged
from counterveil.accounting.store import Row

_COLUMNS = "seq, kind, dataset, request_id, body, previous, hash"
_BATCH = 1000


class SqlEntries(ABC):
    """Entries in a table; a database names the table, says how it marks values, and runs statements."""

    table: ClassVar[str]
    mark: ClassVar[str]
    # What stands before the "@" of a request id, as the index on it says it.
    study: ClassVar[str]

    @abstractmethod
    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a statement gives; failures are raised as LedgerError."""

    def append(self, row: Row) -> None:
        """Add an entry; only inside `writing`."""
        fields = (row.seq, row.kind, row.dataset, row.request_id, row.body, row.previous, row.hash)
        marks = ", ".join([self.mark] * len(fields))
        self._run(f"INSERT INTO {self.table} ({_COLUMNS}) VALUES ({marks})", *fields)

    def last(self) -> Row | None:
        """Return the newest entry."""
        return self._one("ORDER BY seq DESC LIMIT 1")

    def registration(self, dataset: str) -> Row | None:
        """Return the entry that registered `dataset`."""
        return self.of_request(dataset, "", "register")

    def at(self, seq: int) -> Row | None:
        """Return the entry with this number."""
        return self._one(f"WHERE seq = {self.mark}", seq)

    def latest_reserve(self, dataset: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry of `dataset`, or the newest before a number."""
        return self._latest(f"dataset = {self.mark}", before, dataset)

    def latest_of_study(self, dataset: str, study: str, before: int | None = None) -> Row | None:
        """Return the newest reserve entry whose request id begins with the study's name and "@"."""
        return self._latest(f"dataset = {self.mark} AND {self.study} = {self.mark}", before, dataset, study)

    def of_request(self, dataset: str, request_id: str, kind: str) -> Row | None:
        """Return the reserve or settle entry of a request."""
        where = f"WHERE dataset = {self.mark} AND request_id = {self.mark} AND kind = {self.mark}"
        return self._one(where, dataset, request_id, kind)

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
            "AND +b.seq = a.seq)",
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
        return [_row(fields) for fields in found]


def _row(fields: tuple[Any, ...]) -> Row:
    """Return the row; a damaged page can hold values of other kinds than were written."""
    if type(fields[0]) is not int or not all(type(field) is str for field in fields[1:]):
        raise damaged("an entry of the ledger is damaged", "a column of another type")
    return Row(*fields)
