"""The ledger: who was promised what, what is spent, and every answer that was given.

A request first reserves its price, then runs, then settles its answer. The price is spent from
the moment it is reserved; nothing that happens later gives it back.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from counterveil.accounting import refusals
from counterveil.accounting.chain import GENESIS, seal, unseal
from counterveil.accounting.filters import Cost, GaussianRule, Rule, check_charge, rule_for
from counterveil.accounting.records import Account, Answered, Entry, Reservation, VerifyReport
from counterveil.accounting.store import Row, Store
from counterveil.accounting.verification import verify_rows
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge


class Ledger:
    """An append-only book of budgets and releases over a store; made by `open_ledger`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._process = os.getpid()
        self._open = True
        # One connection serves all threads of the process, so they take turns.
        self._turn = threading.RLock()

    def register(self, dataset: str, budget: Budget, *, rule: str | None = None, note: str = "") -> None:
        """Write down the total budget of a data set, once and for all; None is returned."""
        _check_name("dataset", dataset)
        chosen = rule_for(budget, rule)
        with self._writing():
            before = self._store.registration(dataset)
            if before is not None:
                first = _rule(unseal(before))
                raise refusals.already_registered(dataset, first.budget, first.name)
            limit = str(chosen.limit) if isinstance(chosen, GaussianRule) else None
            facts: dict[str, object] = {
                "budget": budget.to_dict(),
                "rule": chosen.name,
                "limit": limit,
                "note": note,
            }
            self._append("register", dataset, "", facts)

    def reserve(
        self,
        dataset: str,
        request_id: str,
        charge: Charge,
        *,
        fingerprint: str,
        description: dict[str, object],
        simulated: bool = False,
    ) -> Reservation | Answered:
        """Return a reservation whose price is now spent, or the answer this very request got before."""
        for name, value in (("dataset", dataset), ("request_id", request_id), ("fingerprint", fingerprint)):
            _check_name(name, value)
        if simulated and self._store.lasting:
            raise refusals.simulated_refused()
        check_charge(charge)
        with self._writing():
            rule = self._rule_of(dataset)
            answered = self._answered(dataset, request_id, fingerprint)
            if answered is not None:
                return answered
            total, requests = self._totals(dataset, rule)
            cost = rule.cost(charge)
            after = total.plus(cost)
            if not rule.fits(after):
                left = rule.remaining(total)
                raise refusals.OverBudgetError(dataset, charge.face, left, rule.budget, rule.name)
            facts = {
                "charge": charge.to_dict(),
                "cost": cost.to_dict(),
                "total": after.to_dict(),
                "requests": requests + 1,
                "fingerprint": fingerprint,
                "description": description,
                "simulated": simulated,
            }
            row = self._append("reserve", dataset, request_id, facts)
        return Reservation(dataset, request_id, fingerprint, row.seq)

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
            facts = {"answer": answer, "fingerprint": unseal(reserved)["fingerprint"]}
            self._append("settle", dataset, request_id, facts)
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
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = seal(seq, previous, kind, dataset, request_id, {**facts, "at": now})
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

    def _rule_of(self, dataset: str) -> Rule:
        row = self._store.registration(dataset)
        if row is None:
            raise refusals.unknown_dataset(dataset, [each.dataset for each in self._store.registrations()])
        return _rule(unseal(row))

    def _totals(self, dataset: str, rule: Rule) -> tuple[Cost, int]:
        """Return what all requests so far cost and how many they were; one lookup, however many there are."""
        row = self._store.latest_reserve(dataset)
        if row is None:
            return rule.nothing(), 0
        facts = unseal(row)
        return Cost.from_dict(facts["total"]), int(facts["requests"])

    def _account(self, dataset: str) -> Account:
        rule = self._rule_of(dataset)
        total, requests = self._totals(dataset, rule)
        row = self._store.registration(dataset)
        note = "" if row is None else str(unseal(row)["note"])
        spent, left = rule.spent(total), rule.remaining(total)
        return Account(dataset, rule.budget, rule.name, spent, left, requests, note)


def _rule(facts: dict[str, Any]) -> Rule:
    limit = None if facts["limit"] is None else Fraction(facts["limit"])
    return rule_for(Budget.from_dict(facts["budget"]), facts["rule"], limit)


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
