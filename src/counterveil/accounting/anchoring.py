"""The anchors of one ledger: where they are, whether the ledger still holds what they hold, and moving them."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from counterveil.accounting.anchor import Anchor, FileAnchor, Mark
from counterveil.accounting.chain import unseal
from counterveil.accounting.records import Store
from counterveil.accounting.refusals import (
    cut_off,
    other_ledger,
)
from counterveil.errors import refusal

SERVER = ("postgresql://", "postgres://")
# Names a second place for every ledger that a process opens, where no other is named.
VARIABLE = "COUNTERVEIL_ANCHOR"
_SUFFIX = ".head"


class Anchors:
    """All anchors of a ledger; each of them must agree before anything is spent."""

    def __init__(self, ledger: str, anchors: Iterable[Anchor] = ()) -> None:
        self.ledger = ledger
        self._anchors = list(anchors)
        self._behind = False

    def add(self, anchor: Anchor) -> None:
        """Take one more anchor."""
        self._anchors.append(anchor)

    def create(self, mark: Mark) -> None:
        """Put down the mark wherever there is none yet, beside the file last."""
        for anchor in reversed(self._anchors):
            anchor.create(mark)

    def marks(self) -> list[Mark]:
        """Return what all anchors hold; read it before a view of the ledger is opened, which may be older."""
        return [self._mark(anchor) for anchor in self._anchors]

    def check(self, store: Store, marks: list[Mark]) -> None:
        """Raise unless the ledger holds the entries that the anchors hold."""
        last = store.last()
        self._behind = any(last is None or mark.seq < last.seq for mark in marks)
        for mark in marks:
            check_contains(store, mark.seq, mark.hash)
            if mark.checked_seq:
                check_contains(store, mark.checked_seq, mark.checked_hash)

    def advance(self, seq: int, head: str, *, appended: bool) -> None:
        """Move all anchors to the ledger's newest entry, those too that a crash left behind."""
        if appended or self._behind:
            for anchor in self._anchors:
                anchor.advance(Mark(self.ledger, seq, head))
            self._behind = False

    def note_checked(self, seq: int, head: str) -> None:
        """Write down that the ledger was verified up to an entry."""
        for anchor in self._anchors:
            anchor.advance(Mark(self.ledger, seq, head, checked_seq=seq, checked_hash=head))

    def places(self) -> list[str]:
        """Return where the anchors are, for people."""
        return [anchor.place for anchor in self._anchors]

    def close(self) -> None:
        """Close connections."""
        for anchor in self._anchors:
            anchor.close()

    def _mark(self, anchor: Anchor) -> Mark:
        mark = anchor.read()
        if mark is None:
            raise refusal("CV-L062", place=anchor.place)
        if mark.ledger != self.ledger:
            raise other_ledger(self.ledger, mark.ledger)
        return mark


def checked(marks: list[Mark]) -> tuple[int, str] | None:
    """Return the entry up to which the ledger was verified, None unless every anchor knows one."""
    known = [(mark.checked_seq, mark.checked_hash) for mark in marks if mark.checked_seq]
    return min(known) if known and len(known) == len(marks) else None


def check_contains(store: Store, seq: int, head: str) -> None:
    """Raise CV-L060 unless entry `seq` of the ledger is whole and has this hash."""
    row = store.at(seq)
    if row is None or row.hash != head:
        raise cut_off(seq, head)
    unseal(row)


def beside(path: Path) -> FileAnchor:
    """Return the anchor that every ledger in a file has beside it."""
    whole = path.resolve()
    return FileAnchor(whole.with_name(whole.name + _SUFFIX))


def anchor_at(place: str, ledger: str) -> Anchor:
    """Return the anchor at a place: a PostgreSQL URL, a file, or a folder that holds one file a ledger."""
    if place.startswith(SERVER):
        if importlib.util.find_spec("psycopg") is None:
            raise refusal("CV-E010")
        from counterveil.accounting.anchor_server import ServerAnchor

        return ServerAnchor(place, ledger)
    path = Path(place)
    return FileAnchor(path / f"{ledger}{_SUFFIX}" if path.is_dir() else path)


def recorded(place: str) -> str:
    """Return a place as it is written into the ledger, so that it is found from everywhere; secrets are refused."""
    if not place or "\0" in place:
        raise refusal("CV-L068", got="an empty path, or one with a NUL character")
    # A mistyped address would become a file name, with its password in it.
    if not place.startswith(SERVER) and re.match(r"[A-Za-z][A-Za-z0-9+.]+:/", place):
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL")
    if not place.startswith(SERVER):
        return str(Path(place).resolve())
    try:
        secret = urlsplit(place).password is not None or "password=" in place.lower()
    except ValueError:
        raise refusal("CV-L068", got="an address that is not a PostgreSQL URL") from None
    if secret:
        raise refusal("CV-L068", got="an address with a password in it")
    return place


def check_never_used(path: Path, anchor: str | None) -> None:
    """Raise CV-L064 where an anchor shows that a ledger was here which is gone."""
    files = [beside(path)]
    if anchor is not None and not anchor.startswith(SERVER) and not Path(anchor).is_dir():
        files.append(FileAnchor(Path(anchor)))
    for each in files:
        # A file is made before its anchor, so one that another process makes just now is there by this time.
        if os.path.lexists(each.place) and not path.exists():
            raise refusal("CV-L064", place=each.place)
