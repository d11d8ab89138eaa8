"""Records that a ledger returns: accounts, entries, reservations and checks."""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.accounting.charter import Charter, quoted
from counterveil.accounting.composition import Figure
from counterveil.accounting.filters import Remaining
from counterveil.privacy import Budget, Unit, show


@dataclass(frozen=True, slots=True)
class Account:
    """One registered data set: what was granted, what is spent, what remains, and what its charter allows.

    `spent` and `remaining` count all answers: each of them costs outcomes. `record_spent` and `record_remaining`
    count the answers that protect whole records.
    """

    dataset: str
    budget: Budget
    rule: str
    spent: Figure
    remaining: Remaining
    requests: int
    note: str
    record_budget: Budget
    record_spent: Figure
    record_remaining: Remaining
    unproved: int
    charter: Charter | None
    chartered: bool  # whether the charter was registered; else the first request fixed it, or will

    def left(self, unit: Unit) -> Remaining:
        """Return the remaining budget of requests that protect `unit`."""
        return self.record_remaining if unit is Unit.RECORD else self.remaining

    def statement(self) -> str:
        """Return in one sentence how far the totals are proved."""
        if self.unproved:
            return (
                f"NO FINITE-SAMPLE GUARANTEE: {self.unproved} of {self.requests} requests ran a form that is not "
                "proved; what such a form reveals is not known, and the totals hold for the other answers only"
            )
        return f"finite-sample guarantee: all answers together cost one person's private values at most {self.budget}"

    def remarks(self, unit: Unit) -> tuple[str, ...]:
        """Return what the guarantee of an answer that protects `unit` must say about its account."""
        said = []
        if self.unproved:
            said.append(
                f"the account {self.dataset!r} has run {self.unproved} of {self.requests} requests in a form without "
                "a finite-sample guarantee: its total is not proved"
            )
        if unit is Unit.RECORD and self.charter is not None and self.charter.public:
            said.append(
                f"the account {self.dataset!r} takes {quoted(self.charter.public)} as public: other answers of it may "
                "show these exactly, whatever this one protects"
            )
        return tuple(said)

    def to_dict(self) -> dict[str, object]:
        """Return the account as JSON-ready facts."""
        return {
            "dataset": self.dataset,
            "guarantee": self.statement(),
            "budget": self.budget.to_dict(),
            "rule": self.rule,
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "record_budget": self.record_budget.to_dict(),
            "record_spent": self.record_spent.to_dict(),
            "record_remaining": self.record_remaining.to_dict(),
            "requests": self.requests,
            "unproved": self.unproved,
            "charter": None if self.charter is None else self.charter.to_dict(),
            "charter_from": self.charter_from,
            "note": self.note,
        }

    @property
    def charter_from(self) -> str:
        """Who fixed the charter."""
        if self.charter is None:
            return "none yet: the first request fixes it"
        return "registered" if self.chartered else "fixed by the first request"

    def lines(self) -> list[str]:
        """Return what the totals mean and what the charter allows, a sentence a line."""
        lines = [
            f"requests: {self.requests}; rule {self.rule!r}",
            'Every answer counts toward "outcomes", the limit for all private values of one person together. Only '
            'answers with protects="record" count toward "records": they alone use other private columns.',
            f"charter ({self.charter_from}):",
        ]
        lines += [] if self.charter is None else [f"- {line}" for line in self.charter.lines()]
        return [*lines, *([f"note: {self.note!r}"] if self.note else [])]

    def __str__(self) -> str:
        """Return the account as text; the first line says whether the total is proved."""
        outcomes = f"outcomes: spent {_amounts(self.spent)}, left {self.remaining} of {self.budget}"
        records = f"records: spent {_amounts(self.record_spent)}, left {self.record_remaining} of {self.record_budget}"
        return "\n".join([f"{self.dataset}: {self.statement()}", outcomes, records, *self.lines()])


def _amounts(spent: Figure) -> str:
    return f"epsilon {show(spent.epsilon)}" + (f", delta {show(spent.delta)}" if spent.delta else "")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the chain; `facts` is its whole content."""

    seq: int
    kind: str
    dataset: str
    request_id: str
    facts: dict[str, object]
    hash: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is now spent, whether or not an answer follows; pass it to `settle`."""

    dataset: str
    request_id: str
    fingerprint: str
    seq: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The stored answer of the same request; it is returned, not redrawn, and costs nothing."""

    answer: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of verifying the chain: number of valid entries, last hash, first problem."""

    entries: int
    head: str
    problem: str | None
    problem_seq: int | None = None

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return self.problem is None

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready facts."""
        return {
            "entries": self.entries,
            "head": self.head,
            "ok": self.ok,
            "problem": self.problem,
            "problem_seq": self.problem_seq,
        }
