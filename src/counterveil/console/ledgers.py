"""The pages of a ledger: its newest entries, older ones page by page, and its verification."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from counterveil.accounting import Entry
from counterveil.console.visit import Page, Visit
from counterveil.console.workspace import Place
from counterveil.errors import LedgerError
from counterveil.privacy import show

_PAGE = 50
_LARGEST = 10**11


def all_ledgers(visit: Visit) -> Page:
    """Return the list of ledgers, each with its newest entry and whether it can be charged."""
    return Page("ledgers.html", {"ledgers": [_state(visit, place) for place in visit.workspace.ledgers()]})


def _state(visit: Visit, place: Place) -> dict[str, Any]:
    try:
        with visit.workspace.opened(place) as book:
            seq, head = book.head_at()
            return {"place": place, "seq": seq, "head": head, "problem": book.problem()}
    except LedgerError as error:
        return {"place": place, "seq": None, "head": None, "problem": f"{error.code}: {error.problem}"}


def one_ledger(visit: Visit) -> Page:
    """Return one page of entries, newest first."""
    return _entries(visit, None)


def verify(visit: Visit) -> Page:
    """Return the page with what a verification found; every entry is read on request."""
    place = visit.workspace.ledger(visit.path["key"])
    head = visit.word("head") or None
    full = bool(visit.word("full"))
    try:
        # The steward's verification is noted, so that the next one begins where it ended.
        with visit.workspace.opened(place, inspect=not visit.person.steward) as book:
            report = book.verify(head, full=full)
    except LedgerError:
        with visit.workspace.opened(place) as book:
            report = book.verify(head, full=full)
    return _entries(visit, report)


def _entries(visit: Visit, report: Any) -> Page:
    place = visit.workspace.ledger(visit.path["key"])
    with visit.workspace.opened(place) as book:
        last, head = book.head_at()
        top = min(visit.whole("before", last + 1, _LARGEST) - 1, last)
        found = book.between(max(top - _PAGE + 1, 0), top)
        anchors = book.anchors if visit.person.steward else []
    return Page(
        "ledger.html",
        {
            "place": place,
            "entries": [_line(entry) for entry in reversed(found)],
            "total": last,
            "head": head,
            "anchors": anchors,
            "newer": top + _PAGE + 1 if top < last else None,
            "older": top - _PAGE + 1 if top - _PAGE >= 0 else None,
            "report": report,
        },
    )


def _line(entry: Entry) -> dict[str, Any]:
    """Return what a list shows of an entry; its content is in the ledger."""
    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    cost = facts.get("cost") or facts.get("budget")
    price = ""
    if cost:
        delta = Fraction(cost["delta"])
        price = f"epsilon {show(Fraction(cost['epsilon']))}" + (f", delta {show(delta)}" if delta else "")
    words = [str(asked[key]) for key in ("question", "method", "protects") if asked.get(key)]
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "request": entry.request_id,
        "at": facts.get("at", ""),
        "by": facts.get("asked_by", ""),
        "price": price,
        "what": ", ".join(words),
        "hash": entry.hash,
    }
