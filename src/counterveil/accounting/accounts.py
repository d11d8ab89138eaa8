"""What the entries of a store say about one account; a fixed number of lookups, however many entries there are."""

from __future__ import annotations

from typing import Any

from counterveil.accounting import refusals
from counterveil.accounting.chain import unseal
from counterveil.accounting.charter import Charter
from counterveil.accounting.levels import Levels, Totals
from counterveil.accounting.records import Account
from counterveil.accounting.store import Row, Store
from counterveil.privacy import Unit


def registration_of(store: Store, dataset: str) -> Row:
    """Return the entry that registered a data set, or raise CV-L004."""
    row = store.registration(dataset)
    if row is None:
        raise refusals.unknown_dataset(dataset, [each.dataset for each in store.registrations()])
    return row


def charter_of(store: Store, registered: Row) -> Charter | None:
    """Return the charter that was registered, or that the first request fixed; None before the first."""
    own = read_charter(unseal(registered))
    if own is not None:
        return own
    latest = store.latest_reserve(registered.dataset)
    return None if latest is None else read_charter(unseal(latest))


def totals_of(store: Store, registered: Row, levels: Levels) -> Totals:
    """Return what all requests so far cost and how many they were."""
    row = store.latest_reserve(registered.dataset)
    if row is None:
        return levels.nothing()
    facts = unseal(row)
    # The newest entries vouch for the registration, which may lie far behind them.
    if facts["registered"] != registered.hash:
        raise refusals.damaged("the ledger is damaged", f"entry {registered.seq} was replaced")
    return Totals.from_dict(facts)


def account_of(store: Store, dataset: str) -> Account:
    """Return what a data set was granted, what is spent and what is left."""
    registered = registration_of(store, dataset)
    registration = unseal(registered)
    levels = Levels.from_dict(registration)
    totals = totals_of(store, registered, levels)
    return Account(
        dataset=dataset,
        budget=levels.outcome.budget,
        record_budget=levels.record.budget,
        rule=levels.outcome.name,
        spent=levels.outcome.spent(totals.outcome),
        record_spent=levels.record.spent(totals.record),
        remaining=levels.remaining(totals, Unit.OUTCOME),
        record_remaining=levels.remaining(totals, Unit.RECORD),
        requests=totals.requests,
        unproved=totals.unproved,
        charter=charter_of(store, registered),
        chartered=registration["charter"] is not None,
        note=str(registration["note"]),
    )


def read_charter(facts: dict[str, Any]) -> Charter | None:
    """Return the charter in an entry, None where it has none."""
    return None if facts["charter"] is None else Charter.from_dict(facts["charter"])
