"""Where an account stands: its registration, its charter, and what its requests cost so far."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from counterveil.accounting import refusals
from counterveil.accounting.chain import unseal
from counterveil.accounting.charter import Charter
from counterveil.accounting.filters import Levels, Totals
from counterveil.accounting.records import Row, Store


def registration_of(store: Store, dataset: str) -> Row:
    """Return the entry that registered a data set, or raise CV-L004."""
    row = store.registration(dataset)
    if row is None:
        raise refusals.unknown_dataset(dataset, [each.dataset for each in store.registrations()])
    return row


class Standing:
    """Where an account stands, by its registration and its newest request; each is read once, when it is first needed.

    For as long as nobody can write to the store.
    """

    def __init__(self, store: Store, dataset: str) -> None:
        self.row = registration_of(store, dataset)
        self._store = store

    @cached_property
    def registration(self) -> dict[str, Any]:
        """What was registered."""
        return unseal(self.row)

    @cached_property
    def levels(self) -> Levels:
        """What was granted, and how losses add up."""
        return Levels.from_dict(self.registration)

    @cached_property
    def _latest(self) -> dict[str, Any] | None:
        row = self._store.latest_reserve(self.row.dataset)
        return None if row is None else unseal(row)

    @cached_property
    def charter(self) -> Charter | None:
        """The charter that was registered, or that the first request fixed; None before the first."""
        own = read_charter(self.registration)
        return own if own is not None or self._latest is None else read_charter(self._latest)

    @cached_property
    def totals(self) -> Totals:
        """What all requests so far cost and how many they were."""
        if self._latest is None:
            return self.levels.nothing()
        # The newest entries vouch for the registration, which may lie far behind them.
        if self._latest["registered"] != self.row.hash:
            raise refusals.damaged("the ledger is damaged", f"entry {self.row.seq} was replaced")
        return Totals.from_dict(self._latest)


def read_charter(facts: dict[str, Any]) -> Charter | None:
    """Return the charter in an entry, None where it has none."""
    return None if facts["charter"] is None else Charter.from_dict(facts["charter"])
