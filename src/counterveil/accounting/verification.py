"""Checking a ledger from its first entry to its last: hashes, order, totals and budgets.

Everything is recomputed from the charges; nothing that an entry says about itself is believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from counterveil.accounting.allowance import check_request
from counterveil.accounting.chain import GENESIS, fault, unseal
from counterveil.accounting.charter import Charter, Uses
from counterveil.accounting.filters import GaussianRule, limit_holds
from counterveil.accounting.levels import Levels, Totals
from counterveil.accounting.records import VerifyReport
from counterveil.accounting.store import Row
from counterveil.errors import CounterveilError, LedgerError
from counterveil.privacy import Budget, Charge, event_from_dict


@dataclass(slots=True)
class _Book:
    """What is known of one data set after the entries read so far."""

    levels: Levels
    totals: Totals
    charter: Charter | None
    registered: bool  # whether the charter is that of the registration; else the first request fixes it
    # Request id -> (fingerprint, whether it is settled).
    seen: dict[str, tuple[str, bool]] = field(default_factory=dict)


def verify_rows(rows: Iterable[Row], damage: str | None, head: str | None) -> VerifyReport:
    """Return the report on `rows`; `damage` is the database's own finding, `head` a hash noted before."""
    books: dict[str, _Book] = {}
    seq, previous = 0, GENESIS
    head_seen = head is None or head == GENESIS
    for row in rows:
        problem = _problem(row, seq + 1, previous, books)
        if problem is not None:
            return VerifyReport(seq, previous, f"entry {row.seq}: {problem}", row.seq)
        seq, previous = row.seq, row.hash
        head_seen = head_seen or row.hash == head
    if not head_seen:
        return VerifyReport(seq, previous, "the noted head is missing: entries were cut off or replaced")
    return VerifyReport(seq, previous, damage)


def _problem(row: Row, seq: int, previous: str, books: dict[str, _Book]) -> str | None:
    """Return what is wrong with one entry in its place, None if nothing is; update `books`."""
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
            return _register(row, facts, books)
        book = books.get(row.dataset)
        if book is None:
            return f"data set {row.dataset!r} was not registered before"
        if row.kind == "reserve":
            return _reserve(row, facts, book)
        if row.kind == "settle":
            return _settle(row, facts, book)
    except (CounterveilError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        return f"its content makes no sense ({type(error).__name__})"
    return f"its kind {row.kind!r} is unknown"


def _register(row: Row, facts: dict[str, Any], books: dict[str, _Book]) -> str | None:
    if row.dataset in books:
        return f"data set {row.dataset!r} is registered a second time"
    levels = Levels.from_dict(facts)
    for rule in (levels.outcome, levels.record):
        if isinstance(rule, GaussianRule) and not limit_holds(rule):
            return "its mu is worth more than its budget"
    charter = None if facts["charter"] is None else Charter.from_dict(facts["charter"])
    books[row.dataset] = _Book(levels, levels.nothing(), charter, charter is not None)
    return None


def _reserve(row: Row, facts: dict[str, Any], book: _Book) -> str | None:
    if row.request_id in book.seen:
        return f"request {row.request_id!r} is reserved a second time"
    face = Budget.from_dict(facts["charge"]["face"])
    charge = Charge(face, tuple(event_from_dict(event) for event in facts["charge"]["events"]))
    uses = Uses.from_dict(facts["uses"])
    charter = book.charter or Charter.of_study(uses, unproved=bool(facts["charter"]["unproved"]))
    if facts["charter"] != (None if book.registered else charter.to_dict()):
        return "its charter is not that of its account"
    try:
        check_request(charter, uses, face)
    except LedgerError as refusal:
        return f"the charter of its account does not allow it ({refusal.code})"
    cost = book.levels.cost(charge)
    totals = book.totals.after(uses.unit, cost, uses.unproved)
    if facts["cost"] != cost.to_dict():
        return "its cost is not that of its charge"
    if any(facts[name] != value for name, value in totals.to_dict().items()):
        return "its running total is wrong"
    if book.levels.exceeded(totals) is not None:
        return "it overspends the budget"
    book.totals, book.charter = totals, charter
    book.seen[row.request_id] = (str(facts["fingerprint"]), False)
    return None


def _settle(row: Row, facts: dict[str, Any], book: _Book) -> str | None:
    fingerprint, settled = book.seen.get(row.request_id, (None, False))
    if fingerprint is None:
        return f"request {row.request_id!r} was not reserved before"
    if settled:
        return f"request {row.request_id!r} is settled a second time"
    if facts["fingerprint"] != fingerprint:
        return "its fingerprint is not that of its reservation"
    book.seen[row.request_id] = (fingerprint, True)
    return None
