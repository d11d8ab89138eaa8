"""The ledger's refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from counterveil.accounting.filters import Remaining
from counterveil.accounting.records import SCHEMA_VERSION
from counterveil.errors import BudgetError, LedgerError, Refusal, installing, shown
from counterveil.privacy import Budget, Unit, show


class OverBudgetError(BudgetError):
    """The request costs more than the remaining budget; has `requested`, `remaining`, `difference`. Code CV-B001."""

    def __init__(
        self,
        dataset: str,
        requested: Budget,
        remaining: Remaining,
        total: Budget,
        rule: str,
        level: Unit = Unit.OUTCOME,
    ) -> None:
        self.dataset = dataset
        self.requested = requested
        self.remaining = remaining
        self.total = total
        self.rule = rule
        self.level = level
        missing = max(requested.epsilon - remaining.epsilon, Fraction(0))
        missing_delta = max(requested.delta - remaining.delta, Fraction(0))
        self.difference = (missing, missing_delta)
        super().__init__(
            "CV-B001",
            f"data set {dataset!r} has too little budget left"
            + (" for answers that protect records" if level is Unit.RECORD else ""),
            expected=f"at most {remaining} (of {total}, rule {rule!r})",
            got=f"requested {requested}, which is {_gap(missing, missing_delta)} too much",
            fix=_fix(remaining),
        )

    def to_dict(self) -> dict[str, str]:
        """Return the facts for programs, with the three amounts as exact rationals."""
        return super().to_dict() | {
            "dataset": self.dataset,
            "requested_epsilon": str(self.requested.epsilon),
            "requested_delta": str(self.requested.delta),
            "remaining_epsilon": str(self.remaining.epsilon),
            "remaining_delta": str(self.remaining.delta),
            "difference_epsilon": str(self.difference[0]),
            "difference_delta": str(self.difference[1]),
        }

    def __reduce__(self) -> tuple[object, ...]:
        facts = (self.dataset, self.requested, self.remaining, self.total, self.rule, self.level)
        return (type(self), facts)


def _gap(epsilon: Fraction, delta: Fraction) -> str:
    parts = [f"epsilon {show(epsilon)}"] if epsilon else []
    parts += [f"delta {show(delta)}"] if delta else []
    # Under the Gaussian rule a request can fail although its face value looks small enough.
    return " and ".join(parts) or "in squared mu"


def _fix(remaining: Remaining) -> str:
    if remaining.epsilon > 0:
        return f"ask for epsilon {show(remaining.epsilon)} or less; this request spent nothing"
    return "the budget is exhausted: use the answers already released, or ask the data steward"


no_budget = Refusal(
    "CV-P662",
    "the total must be a Budget",
    expected="cv.Budget(epsilon=3), or cv.Budget(epsilon=3, delta=1e-6)",
    got="{got!s}",
    fix="pass both numbers as one Budget",
)


def unknown_dataset(dataset: str, known: list[str]) -> LedgerError:
    """Return the refusal for a data set that was never registered."""
    listed = ", ".join(repr(name) for name in known[:10]) or "none yet"
    return LedgerError(
        "CV-L004",
        f"data set {dataset!r} is not registered in this ledger",
        expected=f"one of the registered data sets: {listed}",
        got=shown(dataset),
        fix="register it with a total budget first: ledger.register(name, Budget(epsilon=3))",
    )


already_registered = Refusal(
    "CV-L005",
    "data set {dataset!r} is already registered",
    expected="each data set registered once; its budget and rule never change",
    got="a second registration; the first gave {budget}, rule {rule!s}",
    fix="spend from the existing account; new people need a new data set with a new name",
)
cannot_go_on = Refusal(
    "CV-L006",
    "request {request_id!r} was charged, has no answer and cannot go on",
    expected="the version of counterveil, the number of rows and the public columns that it was begun with",
    got="{got}",
    fix="ask again with what it was begun with: it goes on where it stopped, free of charge. Otherwise use a new "
    "request id, which is charged",
)
other_request = Refusal(
    "CV-L007",
    "request id {request_id!r} was used for a different request",
    expected="one request id for one request: study, question, method, settings, learners, epsilon and delta",
    got="the same id with a different fingerprint",
    fix="use a new request id; reuse an id only to get the same answer again",
)
simulated_refused = Refusal(
    "CV-L008",
    "a persistent ledger refuses simulated results",
    expected="noise from the operating system",
    got="noise from a seed (SeededNoise)",
    fix='drop noise=SeededNoise(...), or use the ledger ":memory:" for tests and experiments',
)
unknown_reservation = Refusal(
    "CV-L013",
    "request {request_id!r} can release nothing and cannot be settled",
    expected="a reservation made in this ledger",
    got="a reservation that this ledger does not know",
    fix="pass the Reservation that reserve() returned",
)
wrong_name = Refusal(
    "CV-L011",
    "{name} is not a valid name",
    expected="a text of 1 to 200 printable characters without surrounding spaces",
    got="{name}={value!s}",
    fix="pass a short printable {name}",
)
not_json = Refusal(
    "CV-L014",
    "an answer is not JSON text",
    expected="the released result as JSON text",
    got="{problem}",
    fix="pass json.dumps(result.to_dict())",
)
not_usable = Refusal(
    "CV-L015",
    "this ledger object cannot be used here",
    expected="an open ledger, in the process that opened it",
    got="{problem}",
    fix="open the ledger again with open_ledger(...), once in each process",
)


def check_version(version: object) -> None:
    """Raise CV-L003 for a ledger that another version of the package wrote."""
    if version != SCHEMA_VERSION:
        raise LedgerError(
            "CV-L003",
            "the ledger has a different format version",
            expected=f"format version {SCHEMA_VERSION}",
            got=f"format version {version}",
            fix="use the version of counterveil that wrote it; a ledger is never converted silently",
        )


not_a_ledger = Refusal(
    "CV-L002",
    "this is not a ledger",
    expected="a ledger made by `counterveil ledger create` or open_ledger(..., create=True)",
    got="{place}",
    fix="check the path; a ledger is never made over an existing file",
)
storage_failed = Refusal(
    "CV-L009",
    "the ledger could not be read or written",
    expected="a writable ledger with space left; without it nothing can be spent",
    got="{problem} ({place})",
    fix="free space or fix the permissions, then ask again with the same request id: it is charged once",
)
damaged = Refusal(
    "CV-L016",
    "{problem}",
    expected="an unchanged ledger",
    got="{got}",
    fix="stop spending and run `counterveil ledger verify`; a copy restores budget that was spent, so a "
    "new ledger is granted at most what is left for certain (`counterveil explain CV-L016`)",
)


def too_large(kind: str, length: int, longest: int) -> LedgerError:
    """Return the refusal for an entry that readers could not hold."""
    return LedgerError(
        "CV-L066",
        f"a {kind} entry is too large for the ledger",
        expected=f"at most {longest:,} characters of JSON",
        got=f"{length:,} characters",
        fix="shorten the description or the note; for an answer, ask for fewer numbers in one request",
    )


def not_kept(request_id: str, why: LedgerError) -> LedgerError:
    """Return the refusal for a release or an answer that could not be stored after its budget was spent."""
    return LedgerError(
        "CV-L065",
        f"what request {request_id!r} drew could not be stored, so it was not released",
        expected="a writable ledger between reserving and settling",
        got=f"{why.code}: {why.got}",
        fix="fix the storage, then ask again with the same request id: it goes on where it stopped, free of charge",
    )


missing_driver = Refusal(
    "CV-E010",
    "a ledger on a PostgreSQL server needs an extra",
    expected="the package psycopg",
    got="it is not installed",
    fix=installing("postgres"),
)
no_backup = Refusal(
    "CV-L069",
    "this ledger is not a file",
    expected="a ledger in a file",
    got="a ledger on a server, or in memory",
    fix="back up the database with the server's own program, pg_dump --schema=counterveil",
)


# What a ledger refuses when it is opened: lost entries, another ledger, a missing anchor, changed guards.


def cut_off(seq: int, expected: str) -> LedgerError:
    """Return the refusal for a ledger that lacks an entry which it had earlier."""
    return LedgerError(
        "CV-L060",
        "the ledger lost entries or was rolled back to an older state",
        expected=f"entry {seq} with hash {expected[:16]}..., which it had earlier",
        got="a ledger without this entry",
        fix="find the newest file, with the file that ends in -wal if there is one; if it is lost, grant a new ledger "
        "at most what is left for certain (`counterveil explain CV-L060`)",
    )


def other_ledger(found: str, expected: str) -> LedgerError:
    """Return the refusal for a ledger that stands in the place of another."""
    return LedgerError(
        "CV-L061",
        "this is not the ledger that the anchor belongs to",
        expected=f"the ledger with id {expected}",
        got=f"the ledger with id {found}",
        fix="restore the right file, or name the right anchor; each ledger has its own anchor",
    )


no_anchor = Refusal(
    "CV-L062",
    "the anchor of the ledger is missing",
    expected="the head of this ledger, stored in a second place since it was created",
    got="nothing for this ledger at {place}",
    fix="restore the anchor, or mount its disk; `counterveil ledger anchor` adds a new anchor",
)


def anchor_failed(place: str, problem: str) -> LedgerError:
    """Return the refusal for an anchor that cannot be read or moved forward."""
    return LedgerError(
        "CV-L063",
        "the anchor of the ledger cannot be read or written",
        expected="an intact, writable anchor",
        got=f"{problem} ({place})",
        fix="fix the storage, then ask again with the same request id: it is charged once",
    )


was_deleted = Refusal(
    "CV-L064",
    "the ledger that was here is missing",
    expected="a location that never held a ledger",
    got="its anchor is still there: {place}",
    fix="restore the ledger; a new one would not know what was spent. Use a new location for new people",
)
guards_changed = Refusal(
    "CV-L067",
    "{problem}",
    expected="the original tables, indexes and triggers of the ledger",
    got="others",
    fix="find out who changed them; run `counterveil ledger verify --full` with a head that you noted",
)
wrong_anchor = Refusal(
    "CV-L068",
    "invalid anchor location",
    expected="a file, a folder, or a PostgreSQL URL without a password",
    got="{got}",
    fix="the location is stored in the ledger, so keep the password in PostgreSQL's password file",
)


# What is refused in the same words wherever a ledger is given it.


def check_name(name: str, value: object) -> None:
    """Raise CV-L011 for the name of a data set, a request or an analyst that could be mistaken for another."""
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise wrong_name(name, value)
    # Control characters and stray spaces would make two names look alike.
    if not value.isprintable() or value != value.strip():
        raise wrong_name(name, value)


def read_json(answer: str) -> Any:
    """Return an answer as it was written, or raise CV-L014."""
    try:
        return json.loads(answer)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_json(str(error)) from None
