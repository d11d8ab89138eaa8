"""The pages of data sets: all of them with what is left of their budgets, one with its charter, and a new one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from counterveil.accounting import Account, Charter, Posting, open_ledger
from counterveil.bounded_reading import UnreadableError, parse_toml
from counterveil.console.visit import Page, Redirect, Visit
from counterveil.console.workspace import DataSet
from counterveil.errors import refusal
from counterveil.privacy import Budget, Unit, show
from counterveil.session import drafted_charter

_REQUESTS = 15
_LONGEST_CHARTER = 100_000


def all_datasets(visit: Visit) -> Page:
    """Return the first page: every account with its budget, and rows that have none yet."""
    found, problems = visit.workspace.datasets()
    named = {each.source.place for each in found if each.source is not None}
    loose = [name for name, source in visit.workspace.sources().items() if source.place not in named]
    return Page(
        "datasets.html",
        {
            "datasets": [_summary(each) for each in found],
            "problems": [(place.name, error) for place, error in problems],
            # What lies in the folder is the steward's to know.
            "loose": loose if visit.person.steward else [],
            "studies": visit.workspace.studies(),
        },
    )


def one_dataset(visit: Visit) -> Page:
    """Return the page of one account: budget, charter, studies to ask with, and the newest requests."""
    found = visit.workspace.dataset(visit.path["key"])
    with visit.workspace.opened(found.ledger) as book:
        newest = book.newest(found.account.dataset, _REQUESTS)
        answered = {
            entry.request_id: book.state_of(found.account.dataset, entry.request_id) == "answered"
            for entry in newest
        }
    return Page(
        "dataset.html",
        {
            "dataset": _summary(found),
            "statement": found.account.statement(),
            "charter": [] if found.account.charter is None else found.account.charter.lines(),
            "charter_from": found.account.charter_from,
            "requests": [request_line(entry, answered[entry.request_id]) for entry in newest],
            "studies": visit.workspace.studies(),
            "rows": found.source.name if found.source is not None and visit.person.steward else None,
        },
    )


def new_dataset(visit: Visit) -> Page:
    """Return the form that registers a data set; its charter is drafted from a study where one is named."""
    visit.require_steward("to register the data set")
    drafted = ""
    study = visit.word("study")
    unit = Unit.parse(visit.word("protects") or "outcome")
    if study:
        drafted = drafted_charter(visit.workspace.study(study).study(), unit).to_toml()
    return Page(
        "register.html",
        {
            "name": visit.word("name"),
            "study": study,
            "protects": unit.value,
            "studies": visit.workspace.studies(),
            "charter": drafted,
            "ledger": visit.workspace.new_ledger().name,
        },
    )


def register(visit: Visit) -> Redirect:
    """Register a data set with its budget and its charter, neither of which can be changed."""
    visit.require_steward("to register the data set")
    budget = Budget(visit.word("epsilon"), visit.word("delta") or "0")
    record = visit.word("record_epsilon")
    charter = _charter(visit.form.get("charter", ""))
    place = visit.workspace.new_ledger()
    with open_ledger(place.place, create=True) as book:
        book.analyst = visit.person.name
        book.register(
            visit.word("name"),
            budget,
            record_budget=Budget(record, budget.delta) if record else None,
            charter=charter,
            note=visit.word("note"),
        )
    return Redirect("/")


def _charter(text: str) -> Charter | None:
    """Return the charter in a form; an empty one leaves it to the first request."""
    if not text.strip():
        return None
    try:
        return Charter.from_dict(parse_toml(text[: _LONGEST_CHARTER + 1], exact=True))
    except UnreadableError as error:
        raise refusal("CV-L040", expected="TOML", got=str(error)) from None


def _summary(found: DataSet) -> dict[str, Any]:
    """Return what a list shows of a data set."""
    account = found.account
    return {
        "key": found.key,
        "name": account.dataset,
        "note": account.note,
        "ledger": found.ledger,
        "rule": account.rule,
        "requests": account.requests,
        "unproved": account.unproved,
        "has_rows": found.source is not None,
        "levels": levels(account),
    }


def levels(account: Account) -> list[dict[str, Any]]:
    """Return what was granted, is spent and remains for all answers, and for those that protect records."""
    rows = (
        ("all answers", account.budget, account.spent.epsilon, account.remaining),
        ("record level", account.record_budget, account.record_spent.epsilon, account.record_remaining),
    )
    return [
        {
            "name": name,
            "granted": str(budget),
            "remaining": str(left),
            "share": _percent(left.epsilon, budget.epsilon),
            "spent": f"epsilon {show(spent)}",
        }
        for name, budget, spent, left in rows
    ]


def _percent(part: Fraction, whole: Fraction) -> int:
    """Return a share for a bar, rounded down: a bar does not promise what is not there."""
    return max(0, min(100, int(100 * part / whole))) if whole else 0


def request_line(entry: Posting, answered: bool) -> dict[str, Any]:
    """Return what a list shows of a request: what was asked, by whom, when, and at what price."""
    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    face = Budget.from_dict(facts["charge"]["face"])
    words = [str(asked[key]) for key in ("question", "method", "estimand") if asked.get(key)]
    return {
        "seq": entry.seq,
        "name": entry.request_id,
        "what": ", ".join(words),
        "protects": asked.get("protects", ""),
        "price": str(face),
        "at": facts["at"],
        "by": facts["asked_by"],
        "answered": answered,
    }
