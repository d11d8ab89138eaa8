"""Where an account stands: its registration, its charter, and what its requests cost so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

from counterveil.accounting import refusals
from counterveil.accounting.chain import canonical, read_entry
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
    def registration(self) -> Mapping[str, Any]:
        """What was registered."""
        return read_entry(self.row)

    @cached_property
    def levels(self) -> Levels:
        """What was granted, and how losses add up."""
        return Levels.from_dict(self.registration)

    @cached_property
    def _latest(self) -> Mapping[str, Any] | None:
        row = self._store.latest_reserve(self.row.dataset)
        return None if row is None else read_entry(row)

    @cached_property
    def charter(self) -> Charter | None:
        """The charter that was registered, or that the first request fixed; None before the first."""
        own = read_charter(self.registration)
        return own if own is not None or self._latest is None else read_charter(self._latest)

    @cached_property
    def totals(self) -> Totals:
        """What all requests so far cost and how many they were."""
        latest = self._vouching()
        return self.levels.nothing() if latest is None else Totals.from_dict(latest)

    @property
    def counted(self) -> tuple[int, int]:
        """How many requests there were, and how many of them in a form that is not proved."""
        latest = self._vouching()
        return (0, 0) if latest is None else (int(latest["requests"]), int(latest["unproved"]))

    def _vouching(self) -> Mapping[str, Any] | None:
        """Return the newest request; it vouches for the registration, which may lie far behind it."""
        if self._latest is not None and self._latest["registered"] != self.row.hash:
            raise refusals.damaged("the ledger is damaged", f"entry {self.row.seq} was replaced")
        return self._latest


def read_charter(facts: Mapping[str, Any]) -> Charter | None:
    """Return the charter in an entry, None where it has none."""
    return None if facts["charter"] is None else _written_charter(canonical(facts["charter"]))


@lru_cache(maxsize=64)
def _written_charter(text: str) -> Charter:
    """Return a charter by its text: every request of an account repeats it."""
    return Charter.from_dict(json.loads(text))
