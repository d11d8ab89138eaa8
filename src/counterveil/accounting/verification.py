"""Checking a ledger from its first entry to its last: hashes, order, totals and budgets.

Everything is recomputed from the charges; nothing that an entry says about itself is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from counterveil.accounting.access_policy import AccessPolicy, Uses
from counterveil.accounting.accounts import check_request, read_total, study_spent, study_total
from counterveil.accounting.anchor import Mark
from counterveil.accounting.anchoring import Anchors, checked
from counterveil.accounting.chain import GENESIS, digest, fault, study_of, unseal
from counterveil.accounting.filters import GaussianRule, Levels, Totals, limit_holds
from counterveil.accounting.records import Row, Store, VerifyReport
from counterveil.errors import CounterveilError, LedgerError, refusal
from counterveil.privacy import Charge


@dataclass(slots=True)
class _Book:
    """What is known of one data set after the entries read so far."""

    levels: Levels
    totals: Totals
    access_policy: AccessPolicy | None
    access_policyed: (
        bool  # whether the access policy is that of the registration; else the first request fixes it
    )
    # The hash of the entry that registered it.
    registered: str
    # The number of its newest reserve entry among those that were read.
    newest: int | None = None
    # Request id -> (fingerprint, whether it is settled).
    seen: dict[str, tuple[str, bool]] = field(default_factory=dict)
    # Request id and name of what was released.
    released: set[tuple[str, str]] = field(default_factory=set)
    # Study -> what its requests cost together.
    studies: dict[str, tuple[Fraction, Fraction]] = field(default_factory=dict)


class Past:
    """What the entries up to `start` say, looked up where it is needed; each of them is checked against its hash."""

    def __init__(self, store: Store | None = None, start: int = 0) -> None:
        self._store = store
        self._start = start
        self.books: dict[str, _Book] = {}

    def book(self, dataset: str) -> _Book | None:
        """Return the book of a data set, read from the past where no entry since has touched it."""
        if dataset not in self.books and self._store is not None:
            row = self._store.registration(dataset)
            if row is not None and row.seq <= self._start:
                self.books[dataset] = _registered(row, unseal(row))
                self._continue(dataset, self.books[dataset], self._store)
        return self.books.get(dataset)

    def seen(self, dataset: str, request_id: str, book: _Book) -> tuple[str, bool] | None:
        """Return the fingerprint of a request that was reserved and whether it is settled, None for a new one."""
        if request_id not in book.seen and self._store is not None:
            found = [self._store.of_request(dataset, request_id, kind) for kind in ("reserve", "settle")]
            reserved, settled = (row if row is not None and row.seq <= self._start else None for row in found)
            if reserved is not None:
                book.seen[request_id] = (str(unseal(reserved)["fingerprint"]), settled is not None)
        return book.seen.get(request_id)

    def released(self, row: Row, book: _Book) -> bool:
        """Return whether an earlier entry released something under the same name of the same request."""
        if (row.request_id, row.name) in book.released or self._store is None:
            return (row.request_id, row.name) in book.released
        old = self._store.of_request(row.dataset, row.request_id, "release", row.name)
        return old is not None and old.seq <= self._start

    def study(self, dataset: str, study: str, book: _Book) -> tuple[Fraction, Fraction]:
        """Return what a study was charged so far."""
        if study not in book.studies and self._store is not None:
            book.studies[study] = study_spent(self._store, dataset, study, self._start + 1)
        return book.studies.get(study, (Fraction(0), Fraction(0)))

    def lookups_differ(self) -> str | None:
        """Return which newest entry is not the one that an index finds, None if all are."""
        for dataset, book in self.books.items():
            row = None if self._store is None else self._store.latest_reserve(dataset)
            if book.newest is not None and (row is None or row.seq != book.newest):
                return f"the newest reservation of {dataset!r} is not found"
        return None

    def _continue(self, dataset: str, book: _Book, store: Store) -> None:
        row = store.latest_reserve(dataset, self._start + 1)
        if row is not None:
            facts = unseal(row)
            book.totals = Totals.from_dict(facts)
            if not book.access_policyed:
                book.access_policy = AccessPolicy.from_dict(facts["access_policy"])


def verify_rows(
    rows: Iterable[Row],
    damage: str | None,
    head: str | None,
    *,
    start: tuple[int, str] = (0, GENESIS),
    past: Past | None = None,
) -> VerifyReport:
    """Return the report on `rows`; `damage` is the database's own finding, `head` a hash noted before.

    Rows that begin later than the first need `start`, the number and hash of the entry before them, and their `past`.
    """
    past = Past() if past is None else past
    seq, previous = start
    head_seen = head in (None, GENESIS, previous)
    for row in rows:
        problem = _problem(row, seq + 1, previous, past)
        if problem is not None:
            return VerifyReport(seq, previous, f"entry {row.seq}: {problem}", row.seq)
        seq, previous = row.seq, row.hash
        head_seen = head_seen or row.hash == head
    if not head_seen:
        return VerifyReport(seq, previous, "the noted head is missing: entries were deleted or replaced")
    return VerifyReport(seq, previous, damage)


def _problem(row: Row, seq: int, previous: str, past: Past) -> str | None:
    """Return what is wrong with one entry in its place, None if nothing is; update the books."""
    if row.seq != seq:
        return f"entry {seq} is missing before it"
    problem = fault(row)
    if problem is not None:
        return problem
    if row.previous != previous:
        return "it does not follow the entry before it"
    facts = unseal(row)
    try:
        if row.kind == "register":
            return _register(row, facts, past)
        book = past.book(row.dataset)
        if book is None:
            return f"data set {row.dataset!r} was not registered before"
        if row.kind == "reserve":
            return _reserve(row, facts, book, past)
        if row.kind in ("release", "settle"):
            return _follow(row, facts, book, past)
    except (CounterveilError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"its content is invalid ({type(error).__name__})"
    return f"its kind {row.kind!r} is unknown"


def _register(row: Row, facts: dict[str, Any], past: Past) -> str | None:
    if past.book(row.dataset) is not None:
        return f"data set {row.dataset!r} is registered a second time"
    book = _registered(row, facts)
    for rule in (book.levels.outcome, book.levels.record):
        if isinstance(rule, GaussianRule) and not limit_holds(rule):
            return "its mu is worth more than its budget"
    past.books[row.dataset] = book
    return None


def _registered(row: Row, facts: dict[str, Any]) -> _Book:
    levels = Levels.from_dict(facts)
    access_policy = None if facts["access_policy"] is None else AccessPolicy.from_dict(facts["access_policy"])
    return _Book(levels, levels.nothing(), access_policy, access_policy is not None, row.hash)


def _reserve(row: Row, facts: dict[str, Any], book: _Book, past: Past) -> str | None:
    if past.seen(row.dataset, row.request_id, book) is not None:
        return f"request {row.request_id!r} is reserved a second time"
    if facts["registered"] != book.registered:
        return "it names another registration of its data set"
    charge = Charge.from_dict(facts["charge"])
    uses = Uses.from_dict(facts["uses"])
    access_policy = book.access_policy or AccessPolicy.of_study(
        uses, unproved=bool(facts["access_policy"]["unproved"])
    )
    if facts["access_policy"] != (None if book.access_policyed else access_policy.to_dict()):
        return "its access policy is not that of its account"
    try:
        check_request(access_policy, uses, charge.face, row.request_id)
    except LedgerError as refusal:
        return f"the access policy of its account does not allow it ({refusal.code})"
    cost = book.levels.cost(charge)
    totals = book.totals.after(uses.unit, cost, uses.unproved)
    if facts["cost"] != cost.to_dict():
        return "its cost is not that of its charge"
    if any(facts[name] != value for name, value in totals.to_dict().items()):
        return "its running total is wrong"
    if book.levels.exceeded(totals) is not None:
        return "it overspends the budget"
    study = study_of(row.request_id)
    if facts["study"] != study_total(past.study(row.dataset, study, book), row.request_id, charge):
        return "the running total of its study is wrong"
    if study:
        book.studies[study] = read_total(facts["study"])
    book.totals, book.access_policy, book.newest = totals, access_policy, row.seq
    book.seen[row.request_id] = (str(facts["fingerprint"]), False)
    return None


def _follow(row: Row, facts: dict[str, Any], book: _Book, past: Past) -> str | None:
    """Check a release or an answer, which follow a reservation."""
    fingerprint, settled = past.seen(row.dataset, row.request_id, book) or (None, False)
    if fingerprint is None:
        return f"request {row.request_id!r} was not reserved before"
    if settled:
        again = "settled a second time" if row.kind == "settle" else "answered before it releases this"
        return f"request {row.request_id!r} is {again}"
    if facts["fingerprint"] != fingerprint:
        return "its fingerprint is not that of its reservation"
    if row.kind == "settle":
        book.seen[row.request_id] = (fingerprint, True)
    elif past.released(row, book):
        return f"request {row.request_id!r} releases {row.name!r} a second time"
    else:
        book.released.add((row.request_id, row.name))
    return None


# What is checked whenever a ledger is opened: first entry, guards, newest entries, anchors; and all of it.
#
# The cost of opening does not depend on the number of entries. Older entries are left to `verify`.


# How many of the newest entries are recomputed, how many more are compared with their hashes, and how many old ones:
# a stretch that moves on with each entry, so that all are looked at again and again.
LINKS = 64
HASHED = 512
STRETCH = 128
# What a check of the whole ledger reports rather than raises.
_FOUND = ("CV-L016", "CV-L060", "CV-L061", "CV-L062", "CV-L063")


def check_opened(store: Store, anchors: Anchors) -> None:
    """Raise if a persistent ledger is not the one that its anchors hold, or its newest entries are damaged."""
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
    """Raise unless the guards and the entry that opened the ledger are as they were made."""
    problem = store.guards()
    if problem is not None:
        raise refusal("CV-L067", problem=problem)
    problem = first_problem(store) or store.quick_damage()
    if problem is not None:
        raise refusal("CV-L016", problem="the ledger is damaged", got=problem)


def first_problem(store: Store) -> str | None:
    """Return what is wrong with the entry that opened the ledger and the one that follows it, None if nothing is."""
    first, second = store.at(0), store.at(1)
    if first is None or fault(first) is not None or (first.kind, first.previous) != ("open", GENESIS):
        return "the entry that opened the ledger is missing or changed"
    if second is not None and second.previous != first.hash:
        return "entry 1: it does not follow the entry before it"
    return None


def check_last(store: Store) -> None:
    """Raise CV-L016 unless the newest entries follow each other, and are what lookups find."""
    last = store.last()
    start = 0 if last is None else max(0, last.seq - LINKS)
    before = store.at(start)
    if last is None or before is None:
        raise refusal("CV-L016", problem="the ledger is damaged", got=f"entry {start} is missing")
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
        raise refusal("CV-L016", problem="the newest entries of the ledger are damaged", got=problem)


def _check_hashes(store: Store, first: int, last: int) -> None:
    """Raise CV-L016 unless the entries from one number to another are all there and each follows the one before."""
    rows = store.between(first, last)
    previous = rows[0].previous if rows else ""
    for seq, row in enumerate(rows, first):
        if row.seq != seq or row.previous != previous or digest(previous, row.body) != row.hash:
            raise refusal(
                "CV-L016",
                problem=f"entry {seq} of the ledger is damaged",
                got="it does not match its hash, or the entry before it",
            )
        previous = row.hash
    if len(rows) != last - first + 1:
        raise refusal("CV-L016", problem="the ledger is damaged", got=f"entry {first + len(rows)} is missing")
