"""`counterveil ledger`: create, show and verify the book of what was spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterveil.accounting import Ledger

ledger_app = typer.Typer(help="Create, show and verify the ledger of spent privacy.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="Ledger file or PostgreSQL URL.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
        print(f"{report.entries} entries are sound; head {report.head}")
        if not report.ok:
            print(f"FIRST PROBLEM at entry {report.problem_seq}: {report.problem}")
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
    for account in book.datasets():
        table.add_row(
            account.dataset,
            str(account.budget),
            str(account.spent),
            str(account.remaining),
            str(account.requests),
            account.rule,
        )
    console = Console()
    console.print(table)
    if entries:
        listing = Table(title="Entries")
        for heading in ("#", "kind", "data set", "request", "hash"):
            listing.add_column(heading)
        for entry in book.entries():
            listing.add_row(str(entry.seq), entry.kind, entry.dataset, entry.request_id, entry.hash[:16])
        console.print(listing)
    print(f"head: {book.head()}")
