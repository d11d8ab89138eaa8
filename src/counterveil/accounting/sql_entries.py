"""The statements that read and add entries: the same in every SQL database, but for two words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from counterveil.accounting.store import Row

_COLUMNS = "seq, kind, dataset, request_id, body, previous, hash"
_BATCH = 1000


class SqlEntries(ABC):
    """Entries in a table; a database names the table, says how it marks values, and runs statements."""

    table: ClassVar[str]
    mark: ClassVar[str]

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

    def latest_reserve(self, dataset: str) -> Row | None:
        """Return the newest reserve entry of `dataset`."""
        return self._one(
            f"WHERE kind = 'reserve' AND dataset = {self.mark} ORDER BY seq DESC LIMIT 1", dataset
        )

    def of_request(self, dataset: str, request_id: str, kind: str) -> Row | None:
        """Return the reserve or settle entry of a request."""
        where = f"WHERE dataset = {self.mark} AND request_id = {self.mark} AND kind = {self.mark}"
        return self._one(where, dataset, request_id, kind)

    def registrations(self) -> list[Row]:
        """Return the register entries in order."""
        return self._rows("WHERE kind = 'register' ORDER BY seq")

    def rows(self, dataset: str | None = None) -> Iterator[Row]:
        """Return the entries in order, read in batches."""
        seq = -1
        only, names = ("", ()) if dataset is None else (f"AND dataset = {self.mark}", (dataset,))
        while batch := self._rows(f"WHERE seq > {self.mark} {only} ORDER BY seq LIMIT {_BATCH}", seq, *names):
            yield from batch
            seq = batch[-1].seq

    def _one(self, where: str, *values: object) -> Row | None:
        rows = self._rows(where, *values)
        return rows[0] if rows else None

    def _rows(self, where: str, *values: object) -> list[Row]:
        found = self._run(f"SELECT {_COLUMNS} FROM {self.table} {where}", *values)
        return [Row(*fields) for fields in found]
