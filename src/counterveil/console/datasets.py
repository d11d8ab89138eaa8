"""The pages of data sets: all of them with what is left of their budgets, one with its access policy, and a new one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from counterveil.accounting import AccessPolicy, Account, Posting, open_ledger
from counterveil.accounting.accounts import check_name
from counterveil.console.studies import StudyLine, fitting, readable, study_lines
from counterveil.console.visit import FormFault, Page, Redirect, Visit, fault_of_form, status_of, wrong
from counterveil.console.workspace import DataSet, RowsPlace
from counterveil.data import Study
from counterveil.errors import CounterveilError, refusal
from counterveil.privacy import Budget, Unit, show
from counterveil.questions.ate import method_names
from counterveil.session.session import shown_columns

_REQUESTS = 15
_MOST_COLUMNS = 1_000
# Fields of the form that are folded away.
_FOLDED = ("record_epsilon", "max_", "note", "any_outcome", "public-", "method-")


def all_datasets(visit: Visit) -> Page:
    """Return the first page: every data set with its budget, if it has one, and what can be done next with it."""
    found, problems = visit.workspace.datasets()
    lines, proposed = study_lines(visit), study_lines(visit, True)
    cards = [
        _summary(each)
        | _next(fitting(lines, visit, each.source), fitting(proposed, visit, each.source))
        | _fault(visit, each.source)
        for each in found
    ]
    # What lies in the folder is the steward's to know.
    loose = visit.workspace.loose() if visit.person.steward else {}
    cards += [
        {"key": None, "name": name, "has_rows": True}
        | _next(fitting(lines, visit, source), fitting(proposed, visit, source))
        | _fault(visit, source)
        for name, source in loose.items()
    ]
    facts = {"datasets": cards, "problems": [(place.name, error) for place, error in problems]}
    return Page("datasets.html", facts)


def _next(lines: list[StudyLine], proposed: list[StudyLine]) -> dict[str, Any]:
    """Return which studies can be used, which of them has to be gone on with, and those that wait for the steward."""
    whole = [line for line in lines if not line.open]
    return {
        "study": whole[0].name if whole else None,
        "unfinished": None if whole or not lines else min(lines, key=lambda line: line.open),
        "proposed": proposed,
    }


def _fault(visit: Visit, source: RowsPlace | None) -> dict[str, Any]:
    """Return why rows cannot be read, None where they can, and the name of their file."""
    fault = None if source is None else visit.workspace.fault(source)
    return {"fault": fault, "source": None if source is None else source.name}


def one_dataset(visit: Visit) -> Page:
    """Return the page of one account: budget, access policy, studies to ask with, and the newest requests."""
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
            "access_policy": []
            if found.account.access_policy is None
            else found.account.access_policy.lines(),
            "access_policy_from": found.account.access_policy_from,
            "requests": [request_line(entry, answered[entry.request_id]) for entry in newest],
            "studies": [
                line.name for line in fitting(study_lines(visit), visit, found.source) if not line.open
            ],
            "rows": found.source.name if found.source is not None and visit.person.steward else None,
            "fault": _fault(visit, found.source)["fault"] if visit.person.steward else None,
        },
    )


def new_dataset(visit: Visit) -> Page:
    """Return the form that registers a data set; what a study needs at the chosen levels is permitted."""
    visit.require_steward("to register the data set")
    return _form(visit, None)


def change_register(visit: Visit) -> Page:
    """Return the same form with everything that was typed."""
    visit.require_steward("to register the data set")
    return _form(visit, None)


def _form(visit: Visit, fault: FormFault | None) -> Page:
    """Return the form as it was filled in, or empty; nothing is ticked that nobody ticked."""
    loose, faults = readable(visit, visit.workspace.loose())
    given = defaultdict(str, visit.form or visit.query)
    name = visit.word("name")
    lines = [line for line in fitting(study_lines(visit), visit, loose.get(name)) if not line.open]
    chosen = visit.word("study") or next((line.name for line in lines), "")
    header = visit.workspace.columns(loose[name]) if name in loose else None
    facts: dict[str, Any] = {"name": name, "names": list(loose), "faults": faults, "fault": fault}
    facts |= {"study": chosen, "studies": [line.name for line in lines], "given": given}
    facts |= {"columns": sorted(header or ())[:_MOST_COLUMNS], "methods": list(method_names())}
    # The part that is folded away is open where something in it was filled in.
    folded = [key for key, value in given.items() if value and key.startswith(_FOLDED)]
    facts |= {"ledger": visit.workspace.new_ledger().name, "more": bool(folded)}
    return Page("register.html", facts, 200 if fault is None else status_of(fault.error))


def confirm_register(visit: Visit) -> Page:
    """Return the page that says what would be registered, and that it cannot be undone."""
    try:
        wanted = _wanted(visit)
    except CounterveilError as error:
        return _form(visit, fault_of_form(error, _checks(visit)))
    policy = wanted["access_policy"]
    facts = {
        "wanted": wanted,
        "policy": None if policy is None else policy.lines(),
        "digest": _digest(policy),
    }
    facts |= {"ledger": visit.workspace.new_ledger().name, "given": dict(visit.form)}
    return Page("register_confirm.html", facts)


def _checks(visit: Visit) -> dict[str, Callable[[], object]]:
    """Return what reads each field of the form alone."""

    def epsilon(name: str) -> Budget | None:
        text = visit.word(name)
        return Budget(text) if text or name == "epsilon" else None

    def delta(name: str) -> Budget:
        return Budget(1, visit.word(name) or "0")

    found: dict[str, Callable[[], object]] = {name: partial(visit.word, name) for name in ("name", "note")}
    found |= {name: partial(epsilon, name) for name in ("epsilon", "record_epsilon", "max_epsilon")}
    found |= {name: partial(delta, name) for name in ("delta", "max_delta")}
    return found | {"protects": partial(_units, visit)}


def register(visit: Visit) -> Redirect:
    """Register a data set with its budget and its access policy, neither of which can be changed."""
    wanted = _wanted(visit)
    # What was confirmed is what is registered: a policy of a study that changed since is not.
    if _digest(wanted["access_policy"]) != visit.word("policy"):
        raise refusal("CV-W008", what="the access policy")
    with open_ledger(visit.workspace.new_ledger().place, create=True) as book:
        book.analyst = visit.person.name
        book.register(**wanted)
    return Redirect("/")


def _digest(policy: AccessPolicy | None) -> str:
    return "" if policy is None else policy.digest()


def _wanted(visit: Visit) -> dict[str, Any]:
    """Return what is to be registered, as a ledger takes it, or raise its refusal."""
    visit.require_steward("to register the data set")
    budget, record = Budget(visit.word("epsilon"), visit.word("delta") or "0"), visit.word("record_epsilon")
    policy = None
    if visit.word("study"):
        policy = _policy_of(visit.workspace.study(visit.word("study")).study(), _units(visit), visit)
    check_name("dataset", visit.word("name"))
    return {
        "dataset": visit.word("name"),
        "budget": budget,
        "record_budget": Budget(record, budget.delta) if record else None,
        "access_policy": policy,
        "note": visit.word("note"),
    }


def _units(visit: Visit) -> tuple[Unit, ...]:
    units = tuple(unit for unit in Unit if visit.word(f"protects-{unit.value}"))
    if visit.word("study") and not units:
        raise wrong("at least one level of protection that answers may have", "none")
    return units


def _policy_of(study: Study, units: tuple[Unit, ...], visit: Visit) -> AccessPolicy:
    """Return the policy that permits a study at these levels, with the further columns and limits of a form."""
    terms: dict[str, Any] = shown_columns(study, units) | dict(study.unit_columns) | {"protects": units}
    more = {name.removeprefix("public-") for name in visit.form if name.startswith("public-")}
    terms["public"] = sorted(terms["public"] | more)
    # A rule for missing values is kept of private columns.
    terms["missing"] = {name: rule for name, rule in terms["missing"].items() if name not in more}
    named = any(unit.covariates_public for unit in units) and not visit.word("any_outcome")
    terms["outcomes"] = study.outcomes if named else None
    terms["methods"] = [name for name in method_names() if visit.word(f"method-{name}")] or None
    terms |= {key: visit.word(key) or None for key in ("max_epsilon", "max_delta")}
    return AccessPolicy(**terms)


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
        "by": entry.by,
        "answered": answered,
    }
