"""The ledger: who was promised what, what is spent, and every answer that was given.

A request first reserves its price, then runs, then settles its answer. The price is spent from
the moment it is reserved; nothing that happens later gives it back.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from counterveil.accounting import refusals
from counterveil.accounting.allowance import check_missing, check_request, check_same, check_study
from counterveil.accounting.askers import system_user
from counterveil.accounting.chain import GENESIS, seal, unseal
from counterveil.accounting.charter import Charter, Uses
from counterveil.accounting.filters import check_charge
from counterveil.accounting.levels import Levels, Totals
from counterveil.accounting.records import Account, Answered, Entry, Reservation, VerifyReport
from counterveil.accounting.store import Row, Store
from counterveil.accounting.verification import verify_rows
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, Unit


class Ledger:
    """An append-only book of budgets and releases over a store; made by `open_ledger`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._analyst = system_user()
        self._process = os.getpid()
        self._open = True
        # One connection serves all threads of the process, so they take turns.
        self._turn = threading.RLock()

    @property
    def analyst(self) -> str:
        """Who asks through this object: the operating system's user unless another name was given."""
        return self._analyst

    @analyst.setter
    def analyst(self, name: str) -> None:
        _check_name("analyst", name)
        self._analyst = name

    def register(
        self,
        dataset: str,
        budget: Budget,
        *,
        record_budget: Budget | None = None,
        charter: Charter | None = None,
        rule: str | None = None,
        note: str = "",
    ) -> None:
        """Write down the total budget and the charter of a data set, once and for all; None is returned.

        `budget` is for all answers together. `record_budget` is the part of it that answers which protect whole
        records may spend; the whole where it is left out. Without a charter, the first request fixes one.
        """
        _check_name("dataset", dataset)
        levels = Levels.granted(budget, record_budget, rule)
        with self._writing():
            before = self._store.registration(dataset)
            if before is not None:
                first = Levels.from_dict(unseal(before)).outcome
                raise refusals.already_registered(dataset, first.budget, first.name)
            own = None if charter is None else charter.to_dict()
            facts = levels.to_dict() | {"charter": own, "note": note, "asked_by": self._analyst}
            self._append("register", dataset, "", facts)

    def reserve(
        self,
        dataset: str,
        request_id: str,
        charge: Charge,
        *,
        uses: Uses,
        fingerprint: str,
        description: dict[str, object],
        simulated: bool = False,
        asked_by: str | None = None,
    ) -> Reservation | Answered:
        """Return a reservation whose price is now spent, or the answer this very request got before.

        What the request `uses` must be allowed by the account's charter; the first request fixes one where none
        was registered.
        """
        asker = self._analyst if asked_by is None else asked_by
        named = {"dataset": dataset, "request_id": request_id, "fingerprint": fingerprint, "analyst": asker}
        for name, value in named.items():
            _check_name(name, value)
        if simulated and self._store.lasting:
            raise refusals.simulated_refused()
        check_charge(charge)
        with self._writing():
            registration = unseal(self._registration(dataset))
            levels = Levels.from_dict(registration)
            answered = self._answered(dataset, request_id, fingerprint)
            if answered is not None:
                return answered
            # A ledger that dies with the process adds nothing up for others, so it may hold unproved forms.
            charter = self._charter_of(dataset) or Charter.of_study(uses, unproved=not self._store.lasting)
            check_request(charter, uses, charge.face)
            before = self._totals(dataset, levels)
            cost = levels.cost(charge)
            after = before.after(uses.unit, cost, uses.unproved)
            full = levels.exceeded(after)
            if full is not None:
                left = levels.remaining(before, uses.unit)
                rule = levels.outcome if full is Unit.OUTCOME else levels.record
                raise refusals.OverBudgetError(dataset, charge.face, left, rule.budget, rule.name, full)
            facts = after.to_dict() | {
                "charge": charge.to_dict(),
                "cost": cost.to_dict(),
                # Repeated by every request where the first one fixed it, so that one lookup finds it.
                "charter": charter.to_dict() if registration["charter"] is None else None,
                "uses": uses.to_dict(),
                "fingerprint": fingerprint,
                "description": description,
                "simulated": simulated,
                "asked_by": asker,
            }
            row = self._append("reserve", dataset, request_id, facts)
        return Reservation(dataset, request_id, fingerprint, row.seq)

    def check_study(self, dataset: str, uses: Uses) -> None:
        """Raise the refusal of a study that the account's charter does not allow, before any row is looked at."""
        with self._reading():
            charter = self._charter_of(dataset)
        if charter is not None:
            check_study(charter, uses)

    def check_missing(self, dataset: str, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
        """Raise CV-L043 for missing rules that the account's charter does not allow, before rows are looked at."""
        with self._reading():
            charter = self._charter_of(dataset)
        if charter is not None:
            check_missing(charter, columns, missing)

    def check_charter(self, dataset: str, charter: Charter) -> None:
        """Raise CV-L046 where the account was registered with another charter, or without one."""
        with self._reading():
            row = self._registration(dataset)
            check_same(dataset, _charter(unseal(row)), charter)

    def settle(self, reservation: Reservation, answer: str) -> Any:
        """Keep the answer (JSON text) of a reservation before it leaves the house; return what the text reads as."""
        read = _read_json(answer)
        dataset, request_id = reservation.dataset, reservation.request_id
        with self._writing():
            reserved = self._store.of_request(dataset, request_id, "reserve")
            if reserved is None or reserved.seq != reservation.seq:
                raise refusals.wrong_settlement(request_id, "a reservation that this ledger does not know")
            settled = self._store.of_request(dataset, request_id, "settle")
            if settled is not None:
                if unseal(settled)["answer"] == answer:
                    return read
                raise refusals.wrong_settlement(request_id, "a second, different answer")
            # The time is that of the reservation: the difference would tell how long the rows took.
            kept = {name: unseal(reserved)[name] for name in ("fingerprint", "asked_by", "at")}
            self._append("settle", dataset, request_id, {"answer": answer} | kept)
        return read

    def account(self, dataset: str) -> Account:
        """Return what a data set was promised, what is spent and what is left."""
        _check_name("dataset", dataset)
        with self._reading():
            return self._account(dataset)

    def datasets(self) -> list[Account]:
        """Return the accounts of all data sets in the order of their registration."""
        with self._reading():
            return [self._account(row.dataset) for row in self._store.registrations()]

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return all entries, or those of one data set, in the order they were written."""
        with self._reading():
            return [
                Entry(row.seq, row.kind, row.dataset, row.request_id, unseal(row), row.hash)
                for row in self._store.rows(dataset)
            ]

    def head(self) -> str:
        """Return the hash of the newest entry; note it elsewhere to notice a cut-off or replaced ledger."""
        with self._reading():
            last = self._store.last()
            return GENESIS if last is None else last.hash

    def verify(self, head: str | None = None) -> VerifyReport:
        """Return the outcome of recomputing every hash and total; `head` is a hash noted earlier."""
        with self._reading():
            try:
                return verify_rows(self._store.rows(), self._store.damage(), head)
            except LedgerError as error:
                if error.code != "CV-L016":
                    raise
                return VerifyReport(0, "", error.problem)

    def close(self) -> None:
        """Release the database; None is returned."""
        with self._turn:
            if self._open and os.getpid() == self._process:
                self._store.close()
            self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._turn:
            self._check_usable()
            with self._store.writing():
                yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._turn:
            self._check_usable()
            with self._store.reading():
                yield

    def _check_usable(self) -> None:
        if not self._open:
            raise refusals.not_usable("a closed ledger")
        # A database connection carried over a fork can damage the file.
        if os.getpid() != self._process:
            raise refusals.not_usable("a ledger opened by another process")

    def _append(self, kind: str, dataset: str, request_id: str, facts: dict[str, object]) -> Row:
        last = self._store.last()
        seq, previous = (1, GENESIS) if last is None else (last.seq + 1, last.hash)
        today = datetime.now(UTC).date().isoformat()
        row = seal(seq, previous, kind, dataset, request_id, {"at": today} | facts)
        self._store.append(row)
        return row

    def _answered(self, dataset: str, request_id: str, fingerprint: str) -> Answered | None:
        """Return the stored answer of a request seen before, None for a new one; refuse anything between."""
        reserved = self._store.of_request(dataset, request_id, "reserve")
        if reserved is None:
            return None
        if unseal(reserved)["fingerprint"] != fingerprint:
            raise refusals.other_request(request_id)
        settled = self._store.of_request(dataset, request_id, "settle")
        if settled is None:
            raise refusals.unfinished(request_id)
        return Answered(str(unseal(settled)["answer"]))

    def _registration(self, dataset: str) -> Row:
        row = self._store.registration(dataset)
        if row is None:
            raise refusals.unknown_dataset(dataset, [each.dataset for each in self._store.registrations()])
        return row

    def _charter_of(self, dataset: str) -> Charter | None:
        """Return the charter that was registered, or that the first request fixed; None before the first."""
        registered = _charter(unseal(self._registration(dataset)))
        if registered is not None:
            return registered
        latest = self._store.latest_reserve(dataset)
        return None if latest is None else _charter(unseal(latest))

    def _totals(self, dataset: str, levels: Levels) -> Totals:
        """Return what all requests so far cost and how many they were; one lookup, however many there are."""
        row = self._store.latest_reserve(dataset)
        return levels.nothing() if row is None else Totals.from_dict(unseal(row))

    def _account(self, dataset: str) -> Account:
        registration = unseal(self._registration(dataset))
        levels = Levels.from_dict(registration)
        totals = self._totals(dataset, levels)
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
            charter=self._charter_of(dataset),
            chartered=registration["charter"] is not None,
            note=str(registration["note"]),
        )


def _charter(facts: dict[str, Any]) -> Charter | None:
    return None if facts["charter"] is None else Charter.from_dict(facts["charter"])


def _check_name(name: str, value: object) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise refusals.wrong_name(name, value)
    # Control characters and stray spaces would make two names look alike.
    if not value.isprintable() or value != value.strip():
        raise refusals.wrong_name(name, value)


def _read_json(answer: str) -> Any:
    try:
        return json.loads(answer)
    except (TypeError, ValueError) as error:
        raise refusals.not_json(str(error)) from None
