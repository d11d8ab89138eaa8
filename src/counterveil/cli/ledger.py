"""`counterveil ledger`: create, show, verify, copy and anchor the book of what was spent."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import Analyst, AnchorPlace, AsJson, StudyFile

if TYPE_CHECKING:
    from counterveil.accounting import Account, Entry, Ledger


ledger_app = typer.Typer(help="Create, show and verify the ledger of spent privacy.", no_args_is_help=True)

_DRAFT = """\
# A draft of a charter: what this account will allow, for good. Read every line before you register it.
# public: columns whose exact values, counts and balance answers may show. Every other column is private.
# outcomes: private columns that requests with protects = "outcome" may be about; leave out for any private column.
# protects: levels of protection that may be asked for. methods: names; leave out for all.
# most_epsilon, most_delta: the largest for one request; leave out for no limit but the total.
# unproved: whether forms without a finite-sample guarantee may run.
# [missing]: "fill" keeps it private which rows of a private column have no value; "drop" makes it public.
"""

Where = Annotated[str, typer.Argument(help="Ledger file or PostgreSQL URL.")]


@ledger_app.command()
def create(
    ledger: Where,
    dataset: Annotated[str, typer.Option(help="Name of the data set.")],
    epsilon: Annotated[str, typer.Option(help="Total epsilon granted to it, for ever.")],
    delta: Annotated[str, typer.Option(help="Total delta granted to it.")] = "0",
    rule: Annotated[str | None, typer.Option(help="How spends add up; chosen when left out.")] = None,
    note: Annotated[str, typer.Option(help="A remark kept with the account.")] = "",
    anchor: AnchorPlace = None,
    charter: Annotated[
        Path | None, typer.Option(help="A TOML file: what the account allows; else the first study fixes it.")
    ] = None,
    record_epsilon: Annotated[
        str | None, typer.Option(help="The part of epsilon that answers which protect records may spend.")
    ] = None,
    record_delta: Annotated[
        str | None, typer.Option(help="The part of delta that they may spend; all of it when left out.")
    ] = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
) -> None:
    """Register a data set, its total budget and its charter; the ledger is made if it is not there."""
    from counterveil.accounting import Charter, open_ledger
    from counterveil.privacy import Budget

    budget = Budget(epsilon, delta)
    record = None
    if record_epsilon is not None or record_delta is not None:
        record = Budget(record_epsilon or epsilon, delta if record_delta is None else record_delta)
    allowed = None if charter is None else Charter.from_toml(charter)
    with open_ledger(ledger, create=True, anchor=anchor) as book:
        if analyst is not None:
            book.analyst = analyst
        book.register(dataset, budget, record_budget=record, charter=allowed, rule=rule, note=note)
        _print(book, as_json)


@ledger_app.command("charter")
def draft_charter(
    study: StudyFile,
    protects: Annotated[str, typer.Option(help='"outcome" or "record": the level that the study asks for.')],
    as_json: AsJson = False,
) -> None:
    """Print a draft of a charter, made from a study; the steward reads and corrects it."""
    from counterveil.accounting import Charter
    from counterveil.data import Study
    from counterveil.privacy import Unit

    declared = Study.from_toml(study)
    unit = Unit.parse(protects)
    public = (declared.treatment, *declared.covariates) if unit is Unit.OUTCOME else ()
    missing = {name: rule for name, rule in declared.missing_kinds.items() if name not in public}
    outcomes = (declared.outcome,) if unit is Unit.OUTCOME else None
    draft = Charter(public=public, outcomes=outcomes, missing=missing, protects=(unit,))
    print(json.dumps(draft.to_dict(), indent=2) if as_json else _DRAFT + draft.to_toml().rstrip())


@ledger_app.command()
def show(
    ledger: Where,
    entries: Annotated[bool, typer.Option(help="List every entry too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was granted, spent and is left, and the hash of the last entry."""
    from counterveil.accounting import open_ledger
    from counterveil.errors import LedgerError

    with open_ledger(ledger, inspect=True) as book:
        _print(book, as_json, entries=entries)
        if book.problem() is not None:
            raise typer.Exit(LedgerError.exit_code)


@ledger_app.command()
def verify(
    ledger: Where,
    head: Annotated[
        str | None, typer.Option(help="A head noted down earlier; it must still be there.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="From the first entry, not from the last one that was verified.")
    ] = False,
    anchor: AnchorPlace = None,
    as_json: AsJson = False,
) -> None:
    """Check the chain, its totals and its anchors; exit 5 if an entry was changed or taken off the end."""
    from counterveil.errors import LedgerError

    with _sound_or_not(ledger, anchor) as book:
        report = book.verify(head, full=full)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        print(f"{report.entries} entries are sound\nhead: {report.head}")
        if not report.ok:
            place = "" if report.problem_seq is None else f" at entry {report.problem_seq}"
            print(f"FIRST PROBLEM{place}: {report.problem}")
    if not report.ok:
        raise typer.Exit(LedgerError.exit_code)


@ledger_app.command()
def backup(
    ledger: Where,
    target: Annotated[Path, typer.Argument(help="The copy; a file that is not there yet.")],
) -> None:
    """Copy a ledger in a file as a whole; the copy is for reading, as its entries end where the copy was made."""
    from counterveil.accounting import open_ledger

    with open_ledger(ledger, inspect=True) as book:
        book.backup(target)
        seq, head = book.head_at()
    print(f"copied up to entry {seq}\nhead: {head}")


@ledger_app.command()
def anchor(
    ledger: Where,
    place: Annotated[str, typer.Argument(help="A file, a folder or a PostgreSQL URL.")],
) -> None:
    """Keep the head in one more place; name it with --anchor or COUNTERVEIL_ANCHOR from then on."""
    from counterveil.accounting import open_ledger

    with open_ledger(ledger) as book:
        book.add_anchor(place)
        for each in book.anchors:
            print(f"anchor: {_near(each)}")


def _sound_or_not(ledger: str, anchor: str | None) -> Ledger:
    """Return the ledger, ready to note that it was verified; a damaged one can only be looked at."""
    from counterveil.accounting import open_ledger
    from counterveil.errors import LedgerError

    try:
        return open_ledger(ledger, anchor=anchor)
    except LedgerError:
        return open_ledger(ledger, anchor=anchor, inspect=True)


def _print(book: Ledger, as_json: bool, *, entries: bool = False) -> None:
    if not as_json:
        print_accounts(book, entries=entries)
        return
    facts: dict[str, object] = {
        "accounts": [account.to_dict() for account in book.datasets()],
        "head": book.head(),
        "anchors": book.anchors,
        "problem": book.problem(),
    }
    if entries:
        facts["entries"] = [
            {
                "seq": entry.seq,
                "kind": entry.kind,
                "dataset": entry.dataset,
                "facts": entry.facts,
                "hash": entry.hash,
            }
            for entry in book.entries()
        ]
    print(json.dumps(facts, indent=2))


def print_accounts(book: Ledger, *, entries: bool = False) -> None:
    """Print the accounts as a table, the entries on request, and the head hash to note down elsewhere."""
    from rich.console import Console
    from rich.table import Table

    problem = book.problem()
    if problem is not None:
        print(f"NOTHING CAN BE SPENT FROM THIS LEDGER: {problem}")
    accounts = book.datasets()
    table = Table(title="Ledger")
    for heading in ("data set", "total", "granted", "spent", "left"):
        table.add_column(heading)
    for account in accounts:
        for name, cells in _totals(account).items():
            table.add_row(account.dataset, name, *cells)
    Console().print(table)
    for account in accounts:
        print("\n".join(_account_lines(account)))
    if entries:
        print("\n".join(line for entry in book.entries() for line in _lines(entry)))
    print(f"head: {book.head()}")
    for place in book.anchors:
        print(f"anchor: {_near(place)}")


def _near(place: str) -> str:
    """Return a path as seen from here, where that is shorter."""
    return min(place, os.path.relpath(place), key=len) if place.startswith(os.sep) else place


def _totals(account: Account) -> dict[str, tuple[str, str, str]]:
    """Return granted, spent and left for both totals."""
    spent, record = account.spent, account.record_spent
    return {
        "outcomes": (str(account.budget), _amounts(spent.epsilon, spent.delta), str(account.remaining)),
        "records": (
            str(account.record_budget),
            _amounts(record.epsilon, record.delta),
            str(account.record_remaining),
        ),
    }


def _account_lines(account: Account) -> list[str]:
    """Return an account in words, folded to the terminal; its first line says how far it is proved."""
    from counterveil.report.text import wrapped

    lines = wrapped(f"{account.dataset}: {account.statement()}")
    for line in account.lines():
        lines += wrapped(line, "  ")
    return lines


def _lines(entry: Entry) -> list[str]:
    """Return when something was written about which data set and request, then its price, what it was, its hash."""
    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    cost = facts.get("cost") or facts.get("budget")
    price = _amounts(Fraction(cost["epsilon"]), Fraction(cost["delta"])) if cost else ""
    what = [str(asked[key]) for key in ("question", "method") if asked.get(key)]
    what += [f"protects {asked['protects']}"] if asked.get("protects") else []
    words = ["granted " * (entry.kind == "register") + price, ", ".join(what), f"hash {entry.hash[:16]}"]
    named = f"{entry.dataset}: {entry.request_id}" if entry.request_id else entry.dataset
    who = f"{facts['at']} UTC, asked by {facts['asked_by']}"
    return [
        f"{entry.seq:>4}  {entry.kind:8}  {named}",
        f"      {who}",
        " " * 6 + "; ".join(filter(None, words)),
    ]


def _amounts(epsilon: Fraction, delta: Fraction) -> str:
    from counterveil.privacy import show as shown

    return f"epsilon {shown(epsilon)}" + (f", delta {shown(delta)}" if delta else "")
