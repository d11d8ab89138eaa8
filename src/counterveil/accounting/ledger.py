"""The ledger: what was granted, what is spent, and every answer that was released.

A request reserves its cost, stores each release as it is drawn, and settles its answer. The cost is spent once
reserved: no refunds. Proof: session/resuming.proof.md
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from counterveil.accounting import refusals
from counterveil.accounting.access_policy import AccessPolicy, Uses
from counterveil.accounting.accounts import (
    Standing,
    account_of,
    account_remarks,
    check_missing,
    check_offer,
    check_order,
    check_request,
    check_rows,
    check_same,
    check_study,
    entry_of,
    newest_requests,
    read_access_policy,
    registration_of,
    study_after,
    study_spent,
    system_user,
    totals_after,
)
from counterveil.accounting.anchor import Mark
from counterveil.accounting.anchoring import Anchors, anchor_at, check_contains, recorded
from counterveil.accounting.chain import canonical, read_entry, seal, unseal
from counterveil.accounting.filters import Levels, check_charge
from counterveil.accounting.records import Account, Answered, Posting, Reservation, Row, Store, VerifyReport
from counterveil.accounting.sql_store import SqliteStore
from counterveil.accounting.verification import check_opened, verified
from counterveil.errors import LedgerError, refusal
from counterveil.privacy import Budget, Charge, Unit

# What stands in place of a release where a request may draw nothing more.
_FAILED = "(failed)"
# Failures of storage, its turn or its anchor, that may pass: the request can be asked again.
_PASSING = ("CV-L009", "CV-L010", "CV-L063")


class Ledger:
    """An append-only record of budgets and releases; made by `open_ledger`."""

    def __init__(self, store: Store, anchors: Anchors | None = None, *, inspect: bool = False) -> None:
        self._store = store
        self._anchors = Anchors("") if anchors is None else anchors
        self._inspect = inspect
        self._analyst = system_user()
        self._process = os.getpid()
        self._open = True
        self._turn = threading.RLock()  # one connection serves all threads of the process
        if not inspect:
            check_opened(store, self._anchors)

    @property
    def analyst(self) -> str:
        """Who asks through this object: the operating system's user unless another name was given."""
        return self._analyst

    @analyst.setter
    def analyst(self, name: str) -> None:
        refusals.check_name("analyst", name)
        self._analyst = name

    def register(
        self,
        dataset: str,
        budget: Budget,
        *,
        record_budget: Budget | None = None,
        access_policy: AccessPolicy | None = None,
        rule: str | None = None,
        note: str = "",
    ) -> None:
        """Register the total budget and the access policy of a data set; neither can be changed.

        `budget` is for all answers together. `record_budget` is the part of it that answers which protect whole
        records may spend; all of it if omitted. Without an access policy, the first request fixes one.
        """
        refusals.check_name("dataset", dataset)
        for granted in (budget, record_budget):
            if granted is not None and not isinstance(granted, Budget):
                raise refusal("CV-P662", got=granted)
        levels = Levels.granted(budget, record_budget, rule)
        with self._writing():
            before = self._store.registration(dataset)
            if before is not None:
                first = Levels.from_dict(unseal(before)).outcome
                raise refusal("CV-L005", dataset=dataset, budget=first.budget, rule=first.name)
            own = None if access_policy is None else access_policy.to_dict()
            facts = levels.to_dict() | {"access_policy": own, "note": note, "asked_by": self._analyst}
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
        """Return a reservation whose cost is now spent, or the stored answer of the same request.

        A request that was reserved before and has no answer gets the same reservation again, at no cost.
        What the request `uses` must be allowed by the account's access policy; the first request fixes one where none
        was registered.
        """
        asker = self._analyst if asked_by is None else asked_by
        named = {"dataset": dataset, "request_id": request_id, "fingerprint": fingerprint, "analyst": asker}
        for name, value in named.items():
            refusals.check_name(name, value)
        if simulated and self._store.lasting:
            raise refusal("CV-L008")
        check_charge(charge)
        with self._writing():
            known = Standing(self._store, dataset)
            seen = self._seen(dataset, request_id, fingerprint, (charge.to_dict(), description))
            if seen is not None:
                return seen
            looks = None if known.access_policy is None else known.access_policy.looks
            check_order(self._store, dataset, looks, uses, description)
            facts = self._charged(known, request_id, uses, charge) | {
                "fingerprint": fingerprint,
                "description": description,
                "simulated": simulated,
                "asked_by": asker,
                "registered": known.row.hash,
                "study": study_after(self._store, dataset, request_id, charge),
            }
            row = self._append("reserve", dataset, request_id, facts)
        return Reservation(dataset, request_id, fingerprint, row.seq)

    def _charged(self, known: Standing, request_id: str, uses: Uses, charge: Charge) -> dict[str, object]:
        """Return what a request costs and the totals after it, or raise what its account does not allow."""
        access_policy = known.access_policy
        if access_policy is None:
            # A ledger that dies with the process adds nothing up for others, so it may hold unproved forms.
            access_policy = AccessPolicy.of_study(uses, unproved=not self._store.lasting)
        check_request(access_policy, uses, charge.face, request_id)
        cost = known.levels.cost(charge)
        return totals_after(known, uses, cost, charge.face).to_dict() | {
            "charge": charge.to_dict(),
            "cost": cost.to_dict(),
            # Repeated by every request where the first one fixed it, so that one lookup finds it.
            "access_policy": access_policy.to_dict() if known.registration["access_policy"] is None else None,
            "uses": uses.to_dict(),
        }

    def check_study(self, dataset: str, uses: Uses) -> None:
        """Raise the refusal of a study that the account's access policy does not allow, before any row is read."""
        with self._reading():
            access_policy = Standing(self._store, dataset).access_policy
        check_study(access_policy, uses, self._store.lasting)

    def check_offer(self, dataset: str, uses: Uses, face: Budget, request_id: str) -> None:
        """Raise what a request would be refused for, as far as its draws are not needed to tell; nothing is spent."""
        with self._reading():
            check_offer(Standing(self._store, dataset), uses, face, request_id, self._store.lasting)

    def check_rows(self, dataset: str, rows: Callable[[], int]) -> None:
        """Raise the refusal of a request about fewer rows than the access policy allows; counted where it says so."""
        with self._reading():
            access_policy = Standing(self._store, dataset).access_policy
        if access_policy is not None and access_policy.least_rows:
            check_rows(access_policy, rows())

    def check_missing(self, dataset: str, columns: tuple[str, ...], missing: Mapping[str, str]) -> None:
        """Raise CV-L043 for missing-value rules that the access policy does not allow, before rows are read."""
        with self._reading():
            access_policy = Standing(self._store, dataset).access_policy
        if access_policy is not None:
            check_missing(access_policy, columns, missing)

    def check_access_policy(self, dataset: str, access_policy: AccessPolicy) -> None:
        """Raise CV-L046 where the account was registered with another access policy, or without one."""
        with self._reading():
            row = registration_of(self._store, dataset)
            check_same(dataset, read_access_policy(read_entry(row)), access_policy)

    def release(
        self, reservation: Reservation, name: str, bounds: list[str], draw: Callable[[], list[str]]
    ) -> list[str]:
        """Return what a reservation released under a name; if nothing yet, what `draw` gives, once it is stored.

        Of two processes that draw at once both get what is stored first. `bounds` are the public numbers that the
        noise is made for: where they differ from those of the first time, CV-L006 is raised.
        """
        if len(name) > 200 or not name.isprintable():
            name = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        with self._reading():
            found = self._released(reservation, name)
        if found is None:
            # Drawn outside of a transaction, as passes over rows take long; nothing but this function sees it.
            drawn = {"bounds": bounds, "values": draw()}
            with self._keeping(reservation), self._writing():
                kept, settled = self._followed(reservation)
                found = self._released(reservation, name)
                if found is None and settled is None:
                    found = drawn
                    self._append("release", reservation.dataset, reservation.request_id, drawn | kept, name)
        if found is None or found["bounds"] != bounds:
            raise refusal("CV-L006", request_id=reservation.request_id, got="a release of other bounds")
        values: list[str] = found["values"]
        return values

    def abandon(self, reservation: Reservation) -> None:
        """Let a request that failed after it drew something never draw again: its failure may tell of what it drew."""
        self.release(reservation, _FAILED, [], list)

    def _released(self, reservation: Reservation, name: str) -> Mapping[str, Any] | None:
        row = self._store.of_request(reservation.dataset, reservation.request_id, "release", name)
        return None if row is None else unseal(row)

    def settle(self, reservation: Reservation, answer: str) -> Any:
        """Store the answer (JSON text) before it leaves, unless one is stored; return the stored one, parsed."""
        read = refusals.read_json(answer)
        with self._keeping(reservation), self._writing():
            kept, settled = self._followed(reservation)
            if settled is None:
                facts = {"answer": answer} | kept
                self._append("settle", reservation.dataset, reservation.request_id, facts)
        return read if settled is None else refusals.read_json(unseal(settled)["answer"])

    def _followed(self, reservation: Reservation) -> tuple[dict[str, object], Row | None]:
        """Return what the entries that follow a reservation repeat of it, and its settle entry if there is one."""
        dataset, request_id = reservation.dataset, reservation.request_id
        reserved = self._store.of_request(dataset, request_id, "reserve")
        if reserved is None or reserved.seq != reservation.seq:
            raise refusal("CV-L013", request_id=request_id)
        # The time is that of the reservation: the difference would tell how long the rows took.
        facts = read_entry(reserved)
        kept = {name: facts[name] for name in ("fingerprint", "asked_by", "at")}
        return kept, self._store.of_request(dataset, request_id, "settle")

    @contextmanager
    def _keeping(self, reservation: Reservation) -> Iterator[None]:
        """Say with every failure to store what was drawn that it can be asked for again."""
        try:
            yield
        except LedgerError as error:
            if error.code not in _PASSING:
                raise
            raise refusals.not_kept(reservation.request_id, error) from error

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
        """Return what a data set was granted, what is spent and what remains."""
        refusals.check_name("dataset", dataset)
        with self._reading():
            return account_of(self._store, dataset)

    def remarks(self, dataset: str, unit: Unit, treatment: str) -> tuple[str, ...]:
        """Return what the guarantee of an answer that protects `unit` must say about its account."""
        with self._reading():
            return account_remarks(self._store, dataset, unit, treatment)

    def datasets(self) -> list[Account]:
        """Return the accounts of all data sets in the order of their registration."""
        with self._reading():
            return [account_of(self._store, row.dataset) for row in self._store.registrations()]

    def entries(self, dataset: str | None = None) -> list[Posting]:
        """Return all entries, or those of one data set, in the order they were written."""
        with self._reading():
            return [entry_of(row) for row in self._store.rows(dataset)]

    def between(self, first: int, last: int) -> list[Posting]:
        """Return the entries with these numbers and those between, in order."""
        with self._reading():
            return [entry_of(row) for row in self._store.between(first, last)]

    def newest(self, dataset: str, most: int, before: int | None = None) -> list[Posting]:
        """Return the newest reserve entries of a data set, or the newest before a number; one lookup each."""
        with self._reading():
            return newest_requests(self._store, dataset, most, before)

    def of_request(self, dataset: str, request_id: str) -> list[Posting]:
        """Return the entries of a request: its reservation, then its answer; none for a new one."""
        with self._reading():
            rows = (self._store.of_request(dataset, request_id, kind) for kind in ("reserve", "settle"))
            return [entry_of(row) for row in rows if row is not None]

    def head(self) -> str:
        """Return the hash of the newest entry; note it elsewhere to detect a truncated or replaced ledger."""
        return self.head_at()[1]

    def head_at(self) -> tuple[int, str]:
        """Return the number and the hash of the newest entry; 0 and the hash of its opening for an empty ledger."""
        with self._reading():
            return self._head()

    def check_contains(self, seq: int, head: str) -> None:
        """Raise CV-L060 unless entry `seq` has this hash: what `head_at` once returned stays valid."""
        with self._reading():
            check_contains(self._store, seq, head)

    @property
    def anchors(self) -> list[str]:
        """Where else the head is stored, for messages."""
        return self._anchors.places()

    def add_anchor(self, place: str) -> None:
        """Store the head in one more place from now on."""
        with self._writing():
            seq, head = self._head()
            anchor = anchor_at(recorded(place), self._anchors.ledger)
            anchor.create(Mark(self._anchors.ledger, seq, head))
            self._anchors.add(anchor)
            self._anchors.check(self._store, self._anchors.marks())

    def verify(self, head: str | None = None, *, full: bool = True) -> VerifyReport:
        """Return the result of recomputing every hash and total; `head` is a hash noted earlier.

        Without `full` it begins after the entry up to which the anchors say that the ledger was verified before.
        """
        if head is not None:
            refusals.check_name("head", head)
        with self._turn:
            self._check_usable()
            report = verified(self._store, self._anchors, head, full=full or head is not None)
        if report.ok and not self._inspect:
            self._anchors.note_checked(report.entries, report.head)
        return report

    def problem(self) -> str | None:
        """Return what opening this ledger for spending would be refused for, None if nothing."""
        try:
            with self._turn:
                self._check_usable()
                check_opened(self._store, self._anchors)
        except LedgerError as error:
            return f"{error.code}: {error.problem}"
        return None

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy a ledger file to a new file."""
        with self._turn:
            self._check_usable()
            if not isinstance(self._store, SqliteStore):
                raise refusal("CV-L069")
            self._store.backup(Path(target))

    def close(self) -> None:
        """Close the database."""
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
                raise refusal("CV-L015", problem="a ledger that was opened for inspection")
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
            raise refusal("CV-L015", problem="a closed ledger")
        if os.getpid() != self._process:  # a connection carried over a fork can damage the file
            raise refusal("CV-L015", problem="a ledger opened by another process")

    def _head(self) -> tuple[int, str]:
        last = self._store.last()
        if last is None:
            raise refusal("CV-L016", problem="the ledger is damaged", got="no entry is left")
        return last.seq, last.hash

    def _append(
        self, kind: str, dataset: str, request_id: str, facts: dict[str, object], name: str = ""
    ) -> Row:
        seq, previous = self._head()
        today = datetime.now(UTC).date().isoformat()
        row = seal(seq + 1, previous, kind, dataset, request_id, {"at": today} | facts, name)
        self._store.append(row)
        return row

    def _seen(
        self, dataset: str, request_id: str, fingerprint: str, asked: tuple[dict[str, Any], dict[str, object]]
    ) -> Reservation | Answered | None:
        """Return the answer of a request seen before, or its reservation to go on with; None for a new one.

        It goes on under the same charge and the same plan alone, which a version of the package may have changed.
        """
        reserved = self._store.of_request(dataset, request_id, "reserve")
        if reserved is None:
            return None
        facts = read_entry(reserved)
        if facts["fingerprint"] != fingerprint:
            raise refusal("CV-L007", request_id=request_id)
        settled = self._store.of_request(dataset, request_id, "settle")
        if settled is not None:
            return Answered(str(unseal(settled)["answer"]))
        kept = Reservation(dataset, request_id, fingerprint, reserved.seq)
        if self._released(kept, _FAILED) is not None:
            raise refusal(
                "CV-L006", request_id=request_id, got="a computation that failed after it had drawn noise"
            )
        if canonical({"asked": asked}) != canonical({"asked": (facts["charge"], facts["description"])}):
            raise refusal("CV-L006", request_id=request_id, got="another split of the budget")
        return kept
