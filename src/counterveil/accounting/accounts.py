"""What the entries of a store say about one account; a fixed number of lookups, however many entries there are."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from counterveil.accounting import refusals
from counterveil.accounting.chain import study_of, unseal
from counterveil.accounting.charter import Charter
from counterveil.accounting.conversion import shorten_up
from counterveil.accounting.filters import Levels, Totals
from counterveil.accounting.records import Account
from counterveil.accounting.store import Row, Store
from counterveil.privacy import Charge, Unit, read_written, written


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


# Who asks: the name that every entry of a ledger carries.


def system_user() -> str:
    """Return the operating system's name for the user who runs this process, or its number."""
    if not hasattr(os, "getuid"):
        return os.environ.get("USERNAME", "unknown")[:200] or "unknown"
    import pwd

    # Environment variables are the user's to set; the real user id is not.
    user = os.getuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return name if name.isprintable() and 0 < len(name) <= 200 and name == name.strip() else f"uid {user}"


# Running totals of studies: what the requests called `study@...` cost together, by face value.
#
# A site of a federation limits what one study may spend. The newest reserve entry of a study carries the sum, so that
# looking it up costs the same however many requests there were.


def study_spent(
    store: Store, dataset: str, study: str, before: int | None = None
) -> tuple[Fraction, Fraction]:
    """Return the epsilon and delta that a study was charged, or was charged before an entry."""
    row = store.latest_of_study(dataset, study, before) if study else None
    return (Fraction(0), Fraction(0)) if row is None else read_total(unseal(row)["study"])


def read_total(facts: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """Return the two sums of a written total."""
    return read_written(facts["epsilon"]), read_written(facts["delta"])


def study_total(spent: tuple[Fraction, Fraction], request_id: str, charge: Charge) -> dict[str, str] | None:
    """Return the total after one more charge as facts, None for a request that belongs to no study."""
    if not study_of(request_id):
        return None
    epsilon, delta = spent[0] + charge.face.epsilon, spent[1] + charge.face.delta
    return {"epsilon": written(shorten_up(epsilon)), "delta": written(shorten_up(delta))}
