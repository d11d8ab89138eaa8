"""Opens a ledger: in a file, on a database server, or in memory."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from counterveil.accounting.anchor import Mark
from counterveil.accounting.anchoring import (
    SERVER,
    VARIABLE,
    Anchors,
    anchor_at,
    beside,
    check_never_used,
    recorded,
)
from counterveil.accounting.chain import fault, opening_entry, study_of, unseal
from counterveil.accounting.ledger import Ledger
from counterveil.accounting.records import Row, Store
from counterveil.accounting.sql_store import SqliteStore, create_file
from counterveil.accounting.verification import check_first
from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.errors import refusal

# Entries in memory, for one process and as long as the ledger is open.


class MemoryStore:
    """Entries in a list, and in dictionaries those that are searched for; the ledger lets one thread in at a time."""

    lasting = False

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._by_request: dict[tuple[str, str, str, str], Row] = {}
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
        self._by_request[row.dataset, row.request_id, row.kind, row.name] = row
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

    def of_request(self, dataset: str, request_id: str, kind: str, name: str = "") -> Row | None:
        """Return the reserve or settle entry of a request, or that of its release of this name."""
        return self._by_request.get((dataset, request_id, kind, name))

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
            (
                row.seq
                for row in rows
                if self.of_request(row.dataset, row.request_id, row.kind, row.name) != row
            ),
            None,
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


MEMORY = ":memory:"


def open_ledger(
    place: str | os.PathLike[str],
    *,
    create: bool = False,
    anchor: str | os.PathLike[str] | None = None,
    inspect: bool = False,
) -> Ledger:
    """Open the ledger at a location, after checking its newest entries, its triggers and its anchors.

    Args:
        place: a path, "postgresql://...", or ":memory:" for one process.
        create: make the ledger if it does not exist.
        anchor: a second place for its head: with `create` one to be used from then on, otherwise one that must hold
            the head already. None takes COUNTERVEIL_ANCHOR, if it is set.
        inspect: open it for reading and verifying only, even if it is damaged or lies where nothing can be written.
    """
    text = str(place if isinstance(place, str) else _path(place))
    if text == MEMORY:
        return Ledger(MemoryStore())
    named = os.fspath(anchor) if anchor is not None else os.environ.get(VARIABLE) or None
    named = None if named is None else recorded(named)
    opening = opening_entry(named) if create and not inspect else None
    path = None if text.startswith(SERVER) else _path(text)
    store: Store = _server(text, opening) if path is None else _file(path, opening, named, inspect)
    anchors = None
    try:
        if not inspect:
            with store.reading():
                check_first(store)
        anchors = _anchors(store, path, named, create=create)
        return Ledger(store, anchors, inspect=inspect)
    except BaseException:
        if anchors is not None:
            anchors.close()
        store.close()
        raise


def _anchors(store: Store, path: Path | None, named: str | None, *, create: bool) -> Anchors:
    """Return the anchors of a ledger: beside its file, where it says, and where the caller says."""
    with store.reading():
        first, last = store.at(0), store.last()
    # A damaged first entry is refused before, unless the ledger is opened for inspection.
    facts = {} if first is None or fault(first) is not None else unseal(first)
    ledger = str(facts.get("ledger", ""))
    anchors = Anchors(ledger, [] if path is None else [beside(path)])
    try:
        places = {str(each) for each in (facts.get("anchor"), named) if each is not None}
        for place in sorted(places):
            anchors.add(anchor_at(place, ledger))
        # A ledger in which nothing was written yet gets its anchors; a crash may have come between.
        if create and first is not None and last is not None and last.seq == 0:
            anchors.create(Mark(ledger, 0, first.hash))
    except BaseException:
        anchors.close()
        raise
    return anchors


def _path(place: object) -> Path:
    """Return a path that a file can have, or raise CV-L001."""
    try:
        return checked_path(place)
    except UnreadableError as error:
        raise refusal("CV-L001", got=str(error)) from None


def _file(path: Path, opening: Row | None, anchor: str | None, inspect: bool) -> Store:
    if opening is not None and not path.exists():
        check_never_used(path, anchor)
        create_file(path, opening)
    if not path.exists():
        raise refusal("CV-L001", got=_masked(str(path)))
    return SqliteStore(path, inspect=inspect)


def _masked(text: str) -> str:
    """Return a path for a message; an address that was mistyped so that it looks like one may hold a password."""
    before, sign, after = text.rpartition("@")
    return f"***@{after}" if sign and ":" in before else text


def _server(url: str, opening: Row | None) -> Store:
    if importlib.util.find_spec("psycopg") is None:
        raise refusal("CV-E010")
    from counterveil.accounting.postgres_store import PostgresStore

    return PostgresStore(url, opening)
