"""`counterveil ledger`: create, show, verify, copy and anchor the book of what was spent."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import AnchorPlace, AsJson

if TYPE_CHECKING:
    from counterveil.accounting import Entry, Ledger

ledger_app = typer.Typer(help="Create, show and verify the ledger of spent privacy.", no_args_is_help=True)

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
    as_json: AsJson = False,
) -> None:
    """Register a data set and its total budget; the ledger is made if it is not there."""
    from counterveil.accounting import open_ledger
    from counterveil.privacy import Budget

    budget = Budget(epsilon, delta)
    with open_ledger(ledger, create=True, anchor=anchor) as book:
        book.register(dataset, budget, rule=rule, note=note)
        _print(book, as_json)


@ledger_app.command()
def show(
    ledger: Where,
    entries: Annotated[bool, typer.Option(help="List every entry too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was granted, spent and is left, and the hash of the last entry."""
    from counterveil.accounting import open_ledger

    with open_ledger(ledger, inspect=True) as book:
        _print(book, as_json, entries=entries)


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

    table = Table(title="Ledger")
    for heading in ("data set", "granted", "spent", "left", "requests", "rule"):
        table.add_column(heading)
    accounts = book.datasets()
    for account in accounts:
        spent = _amounts(account.spent.epsilon, account.spent.delta)
        left = str(account.remaining)
        table.add_row(account.dataset, str(account.budget), spent, left, str(account.requests), account.rule)
    console = Console()
    console.print(table)
    for account in accounts:
        if account.note:
            print(f"{account.dataset}: {account.note}")
    if entries:
        print("\n".join(line for entry in book.entries() for line in _lines(entry)))
    print(f"head: {book.head()}")
    for place in book.anchors:
        print(f"anchor: {_near(place)}")


def _near(place: str) -> str:
    """Return a path as seen from here, where that is shorter."""
    return min(place, os.path.relpath(place), key=len) if place.startswith(os.sep) else place


def _lines(entry: Entry) -> list[str]:
    """Return when something was written about which data set and request, then its price, what it was, its hash."""
    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    cost = facts.get("cost") or facts.get("budget")
    price = _amounts(Fraction(cost["epsilon"]), Fraction(cost["delta"])) if cost else ""
    what = [str(asked[key]) for key in ("question", "method") if asked.get(key)]
    what += [f"protects {asked['protects']}"] if asked.get("protects") else []
    words = ["granted " * (entry.kind == "register") + price, ", ".join(what), f"hash {entry.hash[:16]}"]
    when = str(facts["at"])[:16].replace("T", " ")
    named = f"{entry.dataset}: {entry.request_id}" if entry.request_id else entry.dataset
    return [f"{entry.seq:>4}  {when} UTC  {entry.kind:8}  {named}", " " * 6 + "; ".join(filter(None, words))]


def _amounts(epsilon: Fraction, delta: Fraction) -> str:
    from counterveil.privacy import show as shown

    return f"epsilon {shown(epsilon)}" + (f", delta {shown(delta)}" if delta else "")
