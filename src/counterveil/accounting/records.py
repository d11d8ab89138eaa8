"""What a ledger hands out: frozen facts about accounts, entries, reservations and checks."""

from __future__ import annotations

from dataclasses import dataclass

from counterveil.accounting.composition import Figure
from counterveil.accounting.filters import Remaining
from counterveil.privacy import Budget


@dataclass(frozen=True, slots=True)
class Account:
    """One registered data set: what was promised, what is spent, what is left."""

    dataset: str
    budget: Budget
    rule: str
    spent: Figure
    remaining: Remaining
    requests: int
    note: str

    def to_dict(self) -> dict[str, object]:
        """Return the account as JSON-ready facts."""
        return {
            "dataset": self.dataset,
            "budget": self.budget.to_dict(),
            "rule": self.rule,
            "spent": self.spent.to_dict(),
            "remaining": self.remaining.to_dict(),
            "requests": self.requests,
            "note": self.note,
        }


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
    """Budget that is spent from now on, whether or not an answer follows; pass it to `settle`."""

    dataset: str
    request_id: str
    fingerprint: str
    seq: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer that this very request received before; it is resent, not redrawn, and costs nothing."""

    answer: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Outcome of a check of the whole chain: entries that are sound, last hash, first problem."""

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
