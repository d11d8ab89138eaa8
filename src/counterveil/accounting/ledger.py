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
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from counterveil.accounting import refusals
from counterveil.accounting.anchor import Mark
from counterveil.accounting.anchoring import Anchors, anchor_at, check_contains, recorded
from counterveil.accounting.chain import seal, study_of, unseal
from counterveil.accounting.checking import check_opened, verified
from counterveil.accounting.filters import Cost, GaussianRule, Rule, check_charge, rule_for
from counterveil.accounting.records import Account, Answered, Entry, Reservation, VerifyReport
from counterveil.accounting.sqlite_store import SqliteStore
from counterveil.accounting.store import Row, Store
from counterveil.accounting.study_totals import study_spent, study_total
from counterveil.errors import LedgerError
from counterveil.privacy import Budget, Charge, read_written, written

# Failures of storage, its turn or its anchor, that may pass and leave an answer to be kept later.
_PASSING = ("CV-L009", "CV-L010", "CV-L063")


class Ledger:
    """An append-only book of budgets and releases over a store; made by `open_ledger`."""

    def __init__(self, store: Store, anchors: Anchors | None = None, *, inspect: bool = False) -> None:
        self._store = store
        self._anchors = Anchors("") if anchors is None else anchors
        self._inspect = inspect
        self._process = os.getpid()
        self._open = True
        # Answers whose settling failed, for as long as the ledger is open: (data set, request id) -> answer.
        self._unkept: dict[tuple[str, str], str] = {}
        # One connection serves all threads of the process, so they take turns.
        self._turn = threading.RLock()
        if not inspect:
            check_opened(store, self._anchors)

    def register(self, dataset: str, budget: Budget, *, rule: str | None = None, note: str = "") -> None:
        """Write down the total budget of a data set, once and for all; None is returned."""
        _check_name("dataset", dataset)
        chosen = rule_for(budget, rule)
        with self._writing():
            before = self._store.registration(dataset)
            if before is not None:
                first = _rule(unseal(before))
                raise refusals.already_registered(dataset, first.budget, first.name)
            limit = written(chosen.limit) if isinstance(chosen, GaussianRule) else None
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
            registered, rule = self._registered(dataset)
            answered = self._answered(dataset, request_id, fingerprint)
            if answered is not None:
                return answered
            total, requests = self._totals(registered, rule)
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
                "registered": registered.hash,
                "study": self._study_after(dataset, request_id, charge),
            }
            row = self._append("reserve", dataset, request_id, facts)
        return Reservation(dataset, request_id, fingerprint, row.seq)

    def settle(self, reservation: Reservation, answer: str) -> Any:
        """Keep the answer (JSON text) of a reservation before it leaves the house; return what the text reads as."""
        read = _read_json(answer)
        try:
            with self._writing():
                self._settle(reservation, answer)
        except LedgerError as error:
            if error.code not in _PASSING:
                raise
            self._unkept[reservation.dataset, reservation.request_id] = answer
            raise refusals.not_kept(reservation.request_id, error) from error
        self._unkept.pop((reservation.dataset, reservation.request_id), None)
        return read

    def _settle(self, reservation: Reservation, answer: str) -> None:
        dataset, request_id = reservation.dataset, reservation.request_id
        reserved = self._store.of_request(dataset, request_id, "reserve")
        if reserved is None or reserved.seq != reservation.seq:
            raise refusals.wrong_settlement(request_id, "a reservation that this ledger does not know")
        settled = self._store.of_request(dataset, request_id, "settle")
        if settled is None:
            facts = {"answer": answer, "fingerprint": unseal(reserved)["fingerprint"]}
            self._append("settle", dataset, request_id, facts)
        elif unseal(settled)["answer"] != answer:
            raise refusals.wrong_settlement(request_id, "a second, different answer")

    def state_of(self, dataset: str, request_id: str) -> str | None:
        """Return "reserved" or "answered" for a request that was charged before, None for a new one."""
        with self._reading():
            if self._store.of_request(dataset, request_id, "reserve") is None:
                return None
            settled = self._store.of_request(dataset, request_id, "settle")
            return "reserved" if settled is None else "answered"

    def study_spent(self, dataset: str, study: str) -> tuple[Fraction, Fraction]:
        """Return the epsilon and delta that requests called `study@...` were charged; one lookup."""
        with self._reading():
            return study_spent(self._store, dataset, study)

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
        return self.head_at()[1]

    def head_at(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and the hash of its opening for an empty ledger."""
        with self._reading():
            return self._head()

    def check_contains(self, seq: int, head: str) -> None:
        """Raise CV-L060 unless entry `seq` has this hash: what `head_at` once returned stays true for ever."""
        with self._reading():
            check_contains(self._store, seq, head)

    @property
    def anchors(self) -> list[str]:
        """Where the head is kept besides, for people."""
        return self._anchors.places()

    def add_anchor(self, place: str) -> None:
        """Keep the head in one more place from now on, which later openings name; None is returned."""
        with self._writing():
            seq, head = self._head()
            anchor = anchor_at(recorded(place), self._anchors.ledger)
            anchor.create(Mark(self._anchors.ledger, seq, head))
            self._anchors.add(anchor)
            self._anchors.check(self._store, self._anchors.marks())

    def verify(self, head: str | None = None, *, full: bool = True) -> VerifyReport:
        """Return the outcome of recomputing every hash and total; `head` is a hash noted earlier.

        Without `full` it begins after the entry up to which the anchors say that the ledger was verified before.
        """
        with self._turn:
            self._check_usable()
            report = verified(self._store, self._anchors, head, full=full or head is not None)
        if report.ok and not self._inspect:
            self._anchors.note_checked(report.entries, report.head)
        return report

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Write a whole copy of a ledger in a file to a new file; None is returned."""
        with self._turn:
            self._check_usable()
            if not isinstance(self._store, SqliteStore):
                raise refusals.no_backup()
            self._store.backup(Path(target))

    def close(self) -> None:
        """Release the database; None is returned."""
        with self._turn:
            if self._open and os.getpid() == self._process:
                self._anchors.close()
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
            if self._inspect:
                raise refusals.not_usable("a ledger that was opened for inspection")
            with self._store.writing():
                self._anchors.check(self._store, self._anchors.marks())
                before = self._head()
                yield
                after = self._head()
            # Before anybody acts on the entry: what is not anchored has led to nothing.
            self._anchors.advance(*after, appended=after != before)

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

    def _head(self) -> tuple[int, str]:
        last = self._store.last()
        if last is None:
            raise refusals.damaged("the ledger is damaged", "no entry is left")
        return last.seq, last.hash

    def _append(self, kind: str, dataset: str, request_id: str, facts: dict[str, object]) -> Row:
        seq, previous = self._head()
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = seal(seq + 1, previous, kind, dataset, request_id, {**facts, "at": now})
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
        if settled is not None:
            return Answered(str(unseal(settled)["answer"]))
        unkept = self._unkept.get((dataset, request_id))
        if unkept is None:
            raise refusals.unfinished(request_id)
        self._settle(Reservation(dataset, request_id, fingerprint, reserved.seq), unkept)
        return Answered(unkept)

    def _registered(self, dataset: str) -> tuple[Row, Rule]:
        """Return the entry that registered a data set, and its rule."""
        row = self._store.registration(dataset)
        if row is None:
            raise refusals.unknown_dataset(dataset, [each.dataset for each in self._store.registrations()])
        return row, _rule(unseal(row))

    def _study_after(self, dataset: str, request_id: str, charge: Charge) -> dict[str, str] | None:
        return study_total(study_spent(self._store, dataset, study_of(request_id)), request_id, charge)

    def _totals(self, registered: Row, rule: Rule) -> tuple[Cost, int]:
        """Return what all requests so far cost and how many they were; one lookup, however many there are."""
        row = self._store.latest_reserve(registered.dataset)
        if row is None:
            return rule.nothing(), 0
        facts = unseal(row)
        # The newest entries vouch for the registration, which may lie far behind them.
        if facts["registered"] != registered.hash:
            raise refusals.damaged("the ledger is damaged", f"entry {registered.seq} was replaced")
        return Cost.from_dict(facts["total"]), int(facts["requests"])

    def _account(self, dataset: str) -> Account:
        registered, rule = self._registered(dataset)
        total, requests = self._totals(registered, rule)
        note = str(unseal(registered)["note"])
        spent, left = rule.spent(total), rule.remaining(total)
        return Account(dataset, rule.budget, rule.name, spent, left, requests, note)


def _rule(facts: dict[str, Any]) -> Rule:
    limit = None if facts["limit"] is None else read_written(facts["limit"])
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
    except (TypeError, ValueError, RecursionError) as error:
        raise refusals.not_json(str(error)) from None
