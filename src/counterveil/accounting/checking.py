"""What is checked whenever a ledger is opened: first entry, guards, newest entries, anchors; and all of it.

The cost of opening does not depend on the number of entries. Older entries are left to `verify`, which reads them all.
"""

from __future__ import annotations

from dataclasses import replace

from counterveil.accounting.anchor import Mark
from counterveil.accounting.anchoring import Anchors, checked
from counterveil.accounting.chain import GENESIS, digest, fault
from counterveil.accounting.opening_refusals import guards_changed
from counterveil.accounting.records import VerifyReport
from counterveil.accounting.refusals import damaged
from counterveil.accounting.store import Store
from counterveil.accounting.verification import Past, verify_rows
from counterveil.errors import LedgerError

# How many of the newest entries are recomputed, how many more are compared with their hashes, and how many old ones:
# a stretch that moves on with each entry, so that all are looked at again and again.
LINKS = 64
HASHED = 512
STRETCH = 128
# What a check of the whole ledger reports rather than raises.
_FOUND = ("CV-L016", "CV-L060", "CV-L061", "CV-L062", "CV-L063")


def check_opened(store: Store, anchors: Anchors) -> None:
    """Raise if a lasting ledger is not the one that its anchors hold, or its newest entries are damaged."""
    if store.lasting:
        marks = anchors.marks()
        with store.reading():
            anchors.check(store, marks)
            check_last(store)


def verified(store: Store, anchors: Anchors, head: str | None, *, full: bool) -> VerifyReport:
    """Return the outcome of recomputing all entries, or those after the entry up to which anchors say it was done."""
    marks, missing = None, None
    try:
        marks = anchors.marks()
    except LedgerError as error:
        missing = _found(error)
    try:
        with store.reading():
            report = _chain(store, head, None if full or marks is None else checked(marks), full=full)
            if report.ok and marks is not None:
                missing = _lost(store, anchors, marks)
    except LedgerError as error:
        return VerifyReport(0, "", _found(error))
    return replace(report, problem=missing) if report.ok else report


def _chain(store: Store, head: str | None, start: tuple[int, str] | None, *, full: bool) -> VerifyReport:
    first, problem = store.at(0), first_problem(store)
    if first is None or problem is not None:
        return VerifyReport(0, "", problem)
    seq, previous = (0, first.hash) if start is None else start
    past = Past(store, seq) if seq else None
    damage = store.damage() if full else store.guards()
    return verify_rows(store.rows(after=seq), damage, head, start=(seq, previous), past=past)


def _lost(store: Store, anchors: Anchors, marks: list[Mark]) -> str | None:
    """Return what the anchors have against the ledger, None if nothing."""
    try:
        anchors.check(store, marks)
        return None
    except LedgerError as error:
        return _found(error)


def _found(error: LedgerError) -> str:
    if error.code not in _FOUND:
        raise error
    return f"{error.problem} ({error.got})"


def check_first(store: Store) -> None:
    """Raise unless the guards and the entry that opened the ledger are as they were made; None is returned."""
    problem = store.guards()
    if problem is not None:
        raise guards_changed(problem)
    problem = first_problem(store) or store.quick_damage()
    if problem is not None:
        raise damaged("the ledger is damaged", problem)


def first_problem(store: Store) -> str | None:
    """Return what is wrong with the entry that opened the ledger and the one that follows it, None if nothing is."""
    first, second = store.at(0), store.at(1)
    if first is None or fault(first) is not None or (first.kind, first.previous) != ("open", GENESIS):
        return "the entry that opened the ledger is missing or changed"
    if second is not None and second.previous != first.hash:
        return "entry 1: it does not follow the entry before it"
    return None


def check_last(store: Store) -> None:
    """Raise CV-L016 unless the newest entries follow each other, and are what lookups find; None is returned."""
    last = store.last()
    start = 0 if last is None else max(0, last.seq - LINKS)
    before = store.at(start)
    if last is None or before is None:
        raise damaged("the ledger is damaged", f"entry {start} is missing")
    _check_hashes(store, max(0, start - HASHED), start)
    oldest = start - HASHED - STRETCH
    if oldest > 0:
        turn = last.seq * (STRETCH // 2) % oldest
        _check_hashes(store, turn, turn + STRETCH)
    past = Past(store, start)
    report = verify_rows(store.rows(after=start), None, None, start=(start, before.hash), past=past)
    problem = report.problem or past.lookups_differ()
    if problem is None and report.entries != last.seq:
        problem = f"entry {report.entries + 1} is missing"
    hidden = store.not_found(start)
    if problem is None and hidden is not None:
        problem = f"entry {hidden}: a search for its request does not find it"
    if problem is not None:
        raise damaged("the newest entries of the ledger are damaged", problem)


def _check_hashes(store: Store, first: int, last: int) -> None:
    """Raise CV-L016 unless the entries from one number to another are all there and each follows the one before."""
    rows = store.between(first, last)
    previous = rows[0].previous if rows else ""
    for seq, row in enumerate(rows, first):
        if row.seq != seq or row.previous != previous or digest(previous, row.body) != row.hash:
            raise damaged(
                f"entry {seq} of the ledger is damaged", "it does not match its hash, or the entry before it"
            )
        previous = row.hash
    if len(rows) != last - first + 1:
        raise damaged("the ledger is damaged", f"entry {first + len(rows)} is missing")
