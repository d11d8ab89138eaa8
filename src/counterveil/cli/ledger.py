"""`counterveil ledger`: create, show, verify, copy and checkpoint the record of what was spent."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from counterveil.cli.program import Group, argument, option
from counterveil.cli.requests import Analyst, AsJson, Checkpoint, Given, shared

if TYPE_CHECKING:
    from counterveil.accounting import Account, Ledger, Posting


ledger_app = Group("Privacy budgets: create a ledger, show what was spent, verify it.")

_DRAFT = """\
# Draft of an access policy: what this account permits. It cannot be changed once registered, so check every line.
# public: columns whose exact values, counts and balance may be shown. Every other column is private.
# outcomes: private columns that requests which take covariates as public may use; leave out to permit any.
# protects: levels of protection that are permitted. methods: names; leave out to permit all.
# max_epsilon, max_delta: largest values for one request; leave out for no limit but the total.
# min_rows: fewest rows that a request may be about, which is public. min_arm: fewest in each arm.
# digits: significant digits of exported numbers; intervals are rounded outwards.
# unproved: whether forms without a finite-sample guarantee may run.
# [missing]: "fill" keeps it private which rows of a private column lack a value; "drop" makes it public.
"""

Where = Annotated[str, argument("LEDGER", "A file or a PostgreSQL URL.")]


@ledger_app.command(short_help="Register a data set and its total budget.")
def create(
    ledger: Where,
    dataset: Annotated[str, option("NAME", "Name of the data set.")],
    epsilon: Annotated[str, option("NUMBER", "Total epsilon; it cannot be changed later.")],
    delta: Annotated[str, option("NUMBER", "Total delta.")] = "0",
    rule: Annotated[
        str | None,
        option("NAME", 'Composition rule: "sum" (if omitted), or "gaussian" if delta is positive.'),
    ] = None,
    access_policy: Annotated[
        Path | None,
        option(
            "FILE",
            "What the account permits (TOML); if omitted, columns are made public one by one before the first request.",
        ),
    ] = None,
    record_epsilon: Annotated[
        str | None, option("NUMBER", "Part of epsilon for record-level requests; all of it if omitted.")
    ] = None,
    record_delta: Annotated[
        str | None, option("NUMBER", "Part of delta for record-level requests; all of it if omitted.")
    ] = None,
    note: Annotated[str, option("TEXT", "A note kept with the account.")] = "",
    checkpoint: Checkpoint = None,
    analyst: Analyst = None,
    as_json: AsJson = False,
) -> None:
    """Register a data set with its total budget and its access policy.

    The ledger is created if it does not exist. A registered budget and an access policy cannot be changed.
    """
    from counterveil.accounting import AccessPolicy, open_ledger
    from counterveil.privacy import Budget

    budget = Budget(epsilon, delta)
    record = None
    if record_epsilon is not None or record_delta is not None:
        record = Budget(record_epsilon or epsilon, delta if record_delta is None else record_delta)
    allowed = None if access_policy is None else AccessPolicy.from_toml(access_policy)
    with open_ledger(ledger, create=True, checkpoint=checkpoint) as book:
        if analyst is not None:
            book.analyst = analyst
        book.register(dataset, budget, record_budget=record, access_policy=allowed, rule=rule, note=note)
        _print(book, as_json)


@ledger_app.command("access-policy", short_help="Draft an access policy from a study file.")
@shared("study", "protects", "as_json")
def draft_access_policy(
    given: Given,
    looks: Annotated[
        str | None, option("ROWS", "Plan looks at the outcome while data come in: 300,600,1000 rows.")
    ] = None,
    epsilon: Annotated[
        str | None, option("NUMBER", "Epsilon of all analyses together, divided equally; with --looks.")
    ] = None,
    delta: Annotated[str, option("NUMBER", "Delta of all analyses together.")] = "0",
    level: Annotated[float, option("NUMBER", "Chance that all intervals cover.", reads=float)] = 0.95,
    spending: Annotated[
        str, option("NAME", "How the looks share the error: obrien_fleming, pocock or always_valid.")
    ] = "obrien_fleming",
) -> None:
    """Draft an access policy from a study file, for the data steward to check.

    Pass the corrected file to `counterveil ledger create --access-policy`.
    """
    from counterveil.accounting import AccessPolicy
    from counterveil.data import Study
    from counterveil.privacy import Unit
    from counterveil.session import drafted_access_policy

    study = Study.from_toml(given["study"])
    draft = drafted_access_policy(study, Unit.parse(given["protects"]))
    if looks is not None or epsilon is not None:
        from counterveil.questions import interim

        plan = interim.planned(
            study.outcome,
            [int(text) if text.isascii() and text.isdecimal() else text for text in (looks or "").split(",")],  # type: ignore[misc]
            epsilon="0" if epsilon is None else epsilon,
            delta=delta,
            level=level,
            spending=spending,
        )
        draft = AccessPolicy.from_dict(draft.to_dict() | {"looks": plan.to_dict()})
    print(json.dumps(draft.to_dict(), indent=2) if given["as_json"] else _DRAFT + draft.to_toml().rstrip())


@ledger_app.command(short_help="Show what was granted, spent and remains.")
def show(
    ledger: Where,
    entries: Annotated[bool, option("", "List every entry too.", "--entries")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was granted, what was spent and what remains.

    The head hash is the hash of the newest entry. Note it elsewhere, to detect a ledger that was cut off or replaced.
    """
    from counterveil.accounting import open_ledger
    from counterveil.errors import LedgerError

    with open_ledger(ledger, inspect=True) as book:
        _print(book, as_json, entries=entries)
        if book.problem() is not None:
            raise SystemExit(LedgerError.exit_code)


@ledger_app.command(short_help="Verify every entry, the totals and the checkpoints.")
def verify(
    ledger: Where,
    head_hash: Annotated[
        str | None, option("HASH", "A head hash noted earlier, which must still be in the chain.")
    ] = None,
    full: Annotated[
        bool, option("", "Start at the first entry instead of the last one verified.", "--full")
    ] = False,
    checkpoint: Checkpoint = None,
    as_json: AsJson = False,
) -> None:
    """Verify the chain of entries, the totals and the checkpoints.

    The exit code is 5 if an entry was changed or removed.
    """
    from counterveil.data.progress import Waiting
    from counterveil.errors import LedgerError

    with _sound_or_not(ledger, checkpoint) as book, Waiting("verify"):
        report = book.verify(head_hash, full=full)
    if as_json:
        print(json.dumps(report.to_dict(), indent=2))
    else:
        print(f"{report.entries} entries verified\nhead hash: {report.head_hash}")
        if not report.ok:
            place = "" if report.problem_seq is None else f" at entry {report.problem_seq}"
            print(f"FIRST PROBLEM{place}: {report.problem}")
    if not report.ok:
        raise SystemExit(LedgerError.exit_code)


@ledger_app.command(short_help="Copy a ledger file.")
def backup(
    ledger: Where, target: Annotated[Path, argument("TARGET", "The copy, a file that does not exist yet.")]
) -> None:
    """Copy a ledger file, also while others are using it.

    The copy has no checkpoint: it can be shown and verified, and nothing can be spent from it.
    """
    from counterveil.accounting import open_ledger

    with open_ledger(ledger, inspect=True) as book:
        book.backup(target)
        seq, head_hash = book.last_entry()
    print(f"copied up to entry {seq}\nhead hash: {head_hash}")


@ledger_app.command(short_help="Keep the head hash in one more place.")
def checkpoint(
    ledger: Where, place: Annotated[str, argument("PLACE", "A file, a folder or a PostgreSQL URL.")]
) -> None:
    """Keep a copy of the head hash in one more place.

    From then on, name it with --checkpoint or COUNTERVEIL_CHECKPOINT.
    """
    from counterveil.accounting import open_ledger

    with open_ledger(ledger) as book:
        book.add_checkpoint(place)
        for each in book.checkpoints:
            print(f"checkpoint: {_near(each)}")


def _sound_or_not(ledger: str, checkpoint: str | None) -> Ledger:
    """Return the ledger, opened to record that it was verified; a damaged one is opened read-only."""
    from counterveil.accounting import open_ledger
    from counterveil.errors import LedgerError

    try:
        return open_ledger(ledger, checkpoint=checkpoint)
    except LedgerError:
        return open_ledger(ledger, checkpoint=checkpoint, inspect=True)


def _print(book: Ledger, as_json: bool, *, entries: bool = False) -> None:
    if not as_json:
        print_accounts(book, entries=entries)
        return
    facts: dict[str, object] = {
        "accounts": [account.to_dict() for account in book.datasets()],
        "head_hash": book.head_hash(),
        "checkpoints": book.checkpoints,
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
    """Print the accounts as a table, the entries on request, and the head hash to note elsewhere."""
    from rich.console import Console
    from rich.table import Table

    problem = book.problem()
    if problem is not None:
        print(f"THIS LEDGER CANNOT BE CHARGED: {problem}")
    accounts = book.datasets()
    table = Table(title="Ledger")
    for heading in ("data set", "level", "granted", "spent", "can be asked for"):
        table.add_column(heading)
    for account in accounts:
        for name, cells in _totals(account).items():
            table.add_row(account.dataset, name, *cells)
    Console().print(table)
    for account in accounts:
        print("\n".join(_account_lines(account)))
    if entries:
        print("\n".join(line for entry in book.entries() for line in _lines(entry)))
    print(f"head hash: {book.head_hash()}")
    for place in book.checkpoints:
        print(f"checkpoint: {_near(place)}")


def _near(place: str) -> str:
    """Return a path as seen from here, where that is shorter."""
    return min(place, os.path.relpath(place), key=len) if place.startswith(os.sep) else place


def _totals(account: Account) -> dict[str, tuple[str, str, str]]:
    """Return what was granted, spent and remains for all answers, and for those that protect records."""
    from counterveil.privacy import amounts

    spent, record = account.spent, account.record_spent
    return {
        "outcomes": (str(account.budget), amounts(spent.epsilon, spent.delta), str(account.remaining)),
        "records": (
            str(account.record_budget),
            amounts(record.epsilon, record.delta),
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


def _lines(entry: Posting) -> list[str]:
    """Return when something was written about which data set and request, then its price, what it was, its hash."""
    from counterveil.privacy import amounts

    facts: dict[str, Any] = dict(entry.facts)
    asked = facts.get("description", {})
    cost = facts.get("cost") or facts.get("budget")
    price = amounts(Fraction(cost["epsilon"]), Fraction(cost["delta"])) if cost else ""
    what = [str(asked[key]) for key in ("question", "method") if asked.get(key)]
    what += [f"protects {asked['protects']}"] if asked.get("protects") else []
    what += facts.get("public", ())
    words = ["granted " * (entry.kind == "register") + price, ", ".join(what), f"hash {entry.hash[:16]}"]
    named = ": ".join(filter(None, (entry.dataset, entry.request_id, facts["name"])))
    who = f"{facts['at']} UTC, asked by {entry.by}"
    return [
        f"{entry.seq:>4}  {entry.kind:8}  {named}",
        f"      {who}",
        " " * 6 + "; ".join(filter(None, words)),
    ]
