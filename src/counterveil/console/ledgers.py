"""The pages of ledgers (entries, verification) and of federations (studies, and requests that wait for a steward)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from counterveil.accounting import Posting
from counterveil.console.visit import Page, Redirect, Visit, coded, wrong
from counterveil.console.workspace import LedgerPlace
from counterveil.errors import CounterveilError, LedgerError, masked, refusal
from counterveil.federation import site_files, study_files
from counterveil.federation.site_files import APPROVED, REJECTED, SiteFile, SiteRecords
from counterveil.privacy import amounts
from counterveil.report.text import held_against

_PAGE = 50
_LARGEST = 10**11


def all_ledgers(visit: Visit) -> Page:
    """Return the list of ledgers, each with its newest entry and whether it can be charged."""
    return Page("ledgers.html", {"ledgers": [_state(visit, place) for place in visit.workspace.ledgers()]})


def _state(visit: Visit, place: LedgerPlace) -> dict[str, Any]:
    try:
        with visit.workspace.opened(place) as book:
            seq, head_hash = book.last_entry()
            return {"place": place, "seq": seq, "head_hash": head_hash, "problem": book.problem()}
    except LedgerError as error:
        return {"place": place, "seq": None, "head_hash": None, "problem": f"{error.code}: {error.problem}"}


def one_ledger(visit: Visit) -> Page:
    """Return one page of entries, newest first."""
    return _entries(visit, None)


def verify(visit: Visit) -> Page:
    """Return the page with what a verification found; every entry is read on request."""
    place = visit.workspace.ledger(visit.path["key"])
    head_hash = visit.word("head_hash") or None
    full = bool(visit.word("full"))
    try:
        # The steward's verification is noted, so that the next one begins where it ended.
        with visit.workspace.opened(place, inspect=not visit.person.steward) as book:
            report = book.verify(head_hash, full=full)
    except LedgerError:
        with visit.workspace.opened(place) as book:
            report = book.verify(head_hash, full=full)
    return _entries(visit, report)


def _entries(visit: Visit, report: Any) -> Page:
    place = visit.workspace.ledger(visit.path["key"])
    with visit.workspace.opened(place) as book:
        last, head_hash = book.last_entry()
        top = min(visit.whole("before", last + 1, _LARGEST) - 1, last)
        found = book.between(max(top - _PAGE + 1, 0), top)
        checkpoints = book.checkpoints if visit.person.steward else []
    return Page(
        "ledger.html",
        {
            "place": place,
            "entries": [_line(entry) for entry in reversed(found)],
            "total": last,
            "head_hash": head_hash,
            "checkpoints": checkpoints,
            "newer": top + _PAGE + 1 if top < last else None,
            "older": top - _PAGE + 1 if top - _PAGE >= 0 else None,
            "report": report,
        },
    )


def _line(entry: Posting) -> dict[str, Any]:
    """Return what a list shows of an entry; its content is in the ledger."""
    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    cost = facts.get("cost") or facts.get("budget")
    price = amounts(Fraction(cost["epsilon"]), Fraction(cost["delta"])) if cost else ""
    words = [str(asked[key]) for key in ("question", "method", "protects") if asked.get(key)]
    words = words or [*facts.get("public", ())] or [facts["name"]]
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "request": entry.request_id,
        "at": facts.get("at", ""),
        "by": entry.by,
        "price": price,
        "what": ", ".join(words),
        "hash": entry.hash,
    }


def overview(visit: Visit) -> Page:
    """Return the studies of the folder with what their sites answered, and the sites with what waits."""
    sites = (
        [_site(path) for path in visit.workspace.federation(site_files.FILE)] if visit.person.steward else []
    )
    folders = visit.workspace.federation(study_files.FILE)
    studies = [_study(path) for path in folders if (path / study_files.DECLARATION).is_file()]
    return Page("federation.html", {"sites": sites, "studies": studies})


def decide(visit: Visit) -> Redirect:
    """Write down the steward's decision on a request."""
    visit.require_steward("to decide on the request")
    decision = {"approve": APPROVED, "decline": REJECTED}.get(visit.word("decision"))
    if decision is None:
        raise wrong("decision: approve or decline", "another word")
    for path in visit.workspace.federation(site_files.FILE):
        if _key(path) == visit.path["site"]:
            SiteRecords(SiteFile.read(path).answers).decide(visit.word("request"), decision)
            return Redirect("/federation")
    raise refusal("CV-W007", expected="a site of this folder", got="an address that names none")


def aggregate(visit: Visit) -> Redirect:
    """Write down whether the sites of a study answer one by one or add up masked parts; before they are asked."""
    from counterveil.federation.setup import change_aggregation

    visit.require_steward("to change the study")
    for path in visit.workspace.federation(study_files.FILE):
        if _key(path) == visit.path["study"]:
            text = visit.word("colluding", longest=4)
            change_aggregation(path, visit.word("aggregation"), int(text) if text.isdecimal() else 0)
            return Redirect("/federation")
    raise refusal("CV-W007", expected="a study of this folder", got="an address that names none")


def _site(path: Path) -> dict[str, Any]:
    """Return a site: its policy, and the requests that were put to its steward."""
    try:
        file = SiteFile.read(path)
        waiting = SiteRecords(file.answers).waiting()
    except Exception as fault:
        return {"name": path.name, "key": _key(path), "error": coded(fault)}
    policy = file.policy.to_document()
    return {
        "name": file.name,
        "key": _key(path),
        "error": None,
        "data": masked(file.data),
        "coordinator": file.coordinator,
        "policy": {name.replace("_", " "): _words(value) for name, value in policy.items()},
        "waiting": [
            {"key": each.key, "state": each.state, "asked": _asked(each.request)} for each in waiting
        ],
    }


def _study(path: Path) -> dict[str, Any]:
    """Return a coordinator's study, where each site stands, and the pooled answer or why there is none yet."""
    answer: dict[str, Any] = {"answer": None, "missing": None}
    try:
        # Needs the extra `federation`, without which every other page works.
        from counterveil.federation.coordinator import members_of, pooled, states
        from counterveil.federation.study_files import StudyFolder

        folder = StudyFolder(path)
        found = states(folder)
        if any(each.answered for each in found):
            answer |= _pooled(lambda: pooled(folder))
    except Exception as fault:
        return {"name": path.name, "error": coded(fault)}
    study = folder.study
    asked = {name.replace("_", " "): _words(value) for name, value in study.ask.to_document().items()}
    asked |= {"aggregation": study.aggregation}
    asked |= {"protection": held_against(len(members_of(folder)), study.colluding)}
    # A question that was sent is not changed, and not every question adds up.
    open_to = study.ask.adds_up and not (path / "requests").exists()
    known = {"key": _key(path), "colluding": study.colluding or 1, "open": open_to}
    return {"name": study.study_id, "error": None, "asked": asked, "states": found} | known | answer


def _pooled(pool: Callable[[], Any]) -> dict[str, Any]:
    """Return the pooled answer as text, or the refusal where too few sites answered."""
    try:
        return {"answer": str(pool())}
    except CounterveilError as refused:
        return {"missing": coded(refused)}


def _asked(request: dict[str, Any]) -> dict[str, str]:
    """Return a question in words; it was written by the coordinator, and is shown as text."""
    question = request.get("question", {})
    return {
        str(name).replace("_", " "): _words(value)
        for name, value in question.items()
        if value not in ({}, None)
    }


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _key(path: Path) -> str:
    return hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]
