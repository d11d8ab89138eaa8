"""`counterveil ledger`: create, show and verify the book of what was spent."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterveil.cli.options import AsJson

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
    as_json: AsJson = False,
) -> None:
    """Register a data set and its total budget; the ledger is made if it is not there."""
    from counterveil.accounting import open_ledger
    from counterveil.privacy import Budget

    budget = Budget(epsilon, delta)
    with open_ledger(ledger, create=True) as book:
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

    with open_ledger(ledger) as book:
        _print(book, as_json, entries=entries)


@ledger_app.command()
def verify(
    ledger: Where,
    head: Annotated[
        str | None, typer.Option(help="A head noted down earlier; it must still be there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the whole chain; exit 5 if an entry was changed or, with --head, taken off the end."""
    from counterveil.accounting import open_ledger
    from counterveil.errors import LedgerError

    with open_ledger(ledger) as book:
        report = book.verify(head)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        print(f"{report.entries} entries are sound\nhead: {report.head}")
        if not report.ok:
            place = "" if report.problem_seq is None else f" at entry {report.problem_seq}"
            print(f"FIRST PROBLEM{place}: {report.problem}")
    if not report.ok:
        raise typer.Exit(LedgerError.exit_code)


def _print(book: Ledger, as_json: bool, *, entries: bool = False) -> None:
    if not as_json:
        print_accounts(book, entries=entries)
        return
    facts: dict[str, object] = {
        "accounts": [account.to_dict() for account in book.datasets()],
        "head": book.head(),
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
