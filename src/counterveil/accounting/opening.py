"""Finding the place where a ledger is kept: a file, a database server, or memory."""

from __future__ import annotations

import importlib.util
import os
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
from counterveil.accounting.chain import fault, opening_entry, unseal
from counterveil.accounting.checking import check_first
from counterveil.accounting.ledger import Ledger
from counterveil.accounting.memory_store import MemoryStore
from counterveil.accounting.refusals import missing_driver
from counterveil.accounting.sqlite_store import SqliteStore, create_file
from counterveil.accounting.store import Row, Store
from counterveil.bounded_reading import UnreadableError, checked_path
from counterveil.errors import LedgerError

MEMORY = ":memory:"


def open_ledger(
    place: str | os.PathLike[str],
    *,
    create: bool = False,
    anchor: str | os.PathLike[str] | None = None,
    inspect: bool = False,
) -> Ledger:
    """Return the ledger at a place; its newest entries, its guards and its anchors are checked first.

    Args:
        place: a path, "postgresql://...", or ":memory:" for one process.
        create: make the ledger if it does not exist.
        anchor: a second place for its head: with `create` one to be used from then on, otherwise one that must hold
            the head already. None takes COUNTERVEIL_ANCHOR, if it is set.
        inspect: open it for reading and verifying only, even if it is damaged.
    """
    text = str(place if isinstance(place, str) else _path(place))
    if text == MEMORY:
        return Ledger(MemoryStore())
    named = os.fspath(anchor) if anchor is not None else os.environ.get(VARIABLE) or None
    named = None if named is None else recorded(named)
    opening = opening_entry(named) if create and not inspect else None
    path = None if text.startswith(SERVER) else _path(text)
    store: Store = _server(text, opening) if path is None else _file(path, opening, named)
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
        raise _missing(str(error)) from None


def _file(path: Path, opening: Row | None, anchor: str | None) -> Store:
    if opening is not None and not path.exists():
        check_never_used(path, anchor)
        create_file(path, opening)
    if not path.exists():
        raise _missing(_masked(str(path)))
    return SqliteStore(path)


def _missing(got: str) -> LedgerError:
    return LedgerError(
        "CV-L001",
        "there is no ledger here",
        expected="an existing ledger, because a new one would forget what was spent",
        got=got,
        fix="check the path, or make a ledger with open_ledger(path, create=True) "
        "or `counterveil ledger create`",
    )


def _masked(text: str) -> str:
    """Return a path for a message; an address that was mistyped so that it looks like one may hold a password."""
    before, sign, after = text.rpartition("@")
    return f"***@{after}" if sign and ":" in before else text


def _server(url: str, opening: Row | None) -> Store:
    if importlib.util.find_spec("psycopg") is None:
        raise missing_driver()
    from counterveil.accounting.postgres_store import PostgresStore

    return PostgresStore(url, opening)
