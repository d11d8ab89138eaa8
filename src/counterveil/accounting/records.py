"""Records that a ledger returns (accounts, entries, reservations, checks), and the entry as it is stored."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from counterveil.accounting.access_policy import AccessPolicy
from counterveil.accounting.composition import Figure, Remaining
from counterveil.privacy import Budget, Unit, amounts


@dataclass(frozen=True, slots=True)
class Account:
    """One registered data set: what was granted, is spent and remains, and what its policy allows.

    `Ledger.account` and `Ledger.register` return it. Print it for the account in words.

    Attributes
    ----------
    dataset : str
        Name of the account.
    budget : Budget
        Total for all answers together.
    rule : {"sum", "gaussian"}
        How costs add up: epsilons and deltas, or mu squared of Gaussian noise.
    spent : Figure
        What all answers cost together: each of them costs outcomes.
    remaining : Remaining
        What can still be spent on answers that protect outcomes.
    requests : int
        Number of requests that were charged.
    note : str
        What was written beside the registration.
    record_budget : Budget
        The part of `budget` that answers which protect whole records may spend.
    record_spent : Figure
        What the answers that protect whole records cost together.
    record_remaining : Remaining
        What can still be spent on answers that protect whole records.
    unproved : int
        Number of requests in a form without a finite-sample guarantee.
    access_policy : AccessPolicy or None
        What is public and which requests are allowed; None before the first request of an account without
        one.
    policy_registered : bool
        Whether the access policy was registered; otherwise the first request fixed it, or will.
    published : tuple of str
        The columns that were published before the first request.

    Examples
    --------
    >>> import counterveil as cv
    >>> with cv.open_ledger(":memory:") as ledger:
    ...     account = ledger.register("trial", cv.Budget(epsilon=3))
    >>> account.requests, account.rule
    (0, 'sum')
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
    access_policy: AccessPolicy | None
    # Whether the access policy was registered; else the first request fixed it, or will.
    policy_registered: bool
    # The columns that were published before the first request.
    published: tuple[str, ...]

    def left(self, unit: Unit) -> Remaining:
        """Return what can still be spent on requests that protect `unit`.

        Parameters
        ----------
        unit : Unit
            What a request protects.

        Returns
        -------
        Remaining
            `record_remaining` for whole records, otherwise `remaining`.
        """
        return self.record_remaining if unit is Unit.RECORD else self.remaining

    def statement(self) -> str:
        """Return in one sentence how far the totals are proved.

        Returns
        -------
        str
            The finite-sample guarantee, or how many requests have none.
        """
        if self.unproved:
            return (
                f"NO FINITE-SAMPLE GUARANTEE: {self.unproved} of {self.requests} requests ran a form that is not "
                "proved; what such a form reveals is not known, and the totals hold for the other answers only"
            )
        return f"finite-sample guarantee: all answers together cost one person's private values at most {self.budget}"

    def to_dict(self) -> dict[str, object]:
        """Return the account as JSON-ready facts.

        Returns
        -------
        dict
            The attributes, with the guarantee in words and where the access policy comes from.
        """
        totals = ("budget", "spent", "remaining", "record_budget", "record_spent", "record_remaining")
        plain = ("rule", "requests", "unproved", "access_policy_from", "note")
        return {"dataset": self.dataset, "guarantee": self.statement()} | {
            **{name: getattr(self, name).to_dict() for name in totals},
            **{name: getattr(self, name) for name in plain},
            "access_policy": None if self.access_policy is None else self.access_policy.to_dict(),
        }

    @property
    def access_policy_from(self) -> str:
        """Who fixed the access policy, in words."""
        if self.access_policy is None:
            published = f", public are {', '.join(map(repr, self.published))}" if self.published else ""
            return f"none yet: the first request fixes it{published}"
        return "registered" if self.policy_registered else "fixed by the first request"

    def lines(self) -> list[str]:
        """Return what the totals mean and what the access policy allows.

        Returns
        -------
        list of str
            One sentence a line.
        """
        lines = [
            f"requests: {self.requests}; rule {self.rule!r}",
            'Every answer counts toward "outcomes", the limit for all private values of one person together. Only '
            'answers with protects="record" count toward "records" as well: what can be asked for there is the '
            "smaller rest of the two.",
            f"access policy ({self.access_policy_from}):",
        ]
        lines += [] if self.access_policy is None else [f"- {line}" for line in self.access_policy.lines()]
        return [*lines, *([f"note: {self.note!r}"] if self.note else [])]

    def __str__(self) -> str:
        """Return the account as text; the first line says whether the total is proved."""
        totals = (
            ("outcomes", self.spent, self.budget, self.remaining),
            ("records", self.record_spent, self.record_budget, self.record_remaining),
        )
        said = [
            f"{name}: spent {amounts(spent.epsilon, spent.delta)} of {whole}; {left} can be asked for"
            for name, spent, whole, left in totals
        ]
        return "\n".join([f"{self.dataset}: {self.statement()}", *said, *self.lines()])


@dataclass(frozen=True, slots=True)
class Posting:
    """One entry of a ledger; `Ledger.entries` returns them.

    Attributes
    ----------
    seq : int
        Number of the entry, from 1 on.
    kind : {"register", "publish", "reserve", "release", "settle"}
        What the entry records.
    dataset : str
        Name of the account.
    request_id : str
        Name of the request; empty for registrations and publications.
    facts : dict
        The whole content, by the names that docs/reference/ledger.md lists.
    hash : str
        SHA-256 of the hash of the entry before and the content.
    """

    seq: int
    kind: str
    dataset: str
    request_id: str
    facts: dict[str, object]
    hash: str

    @property
    def by(self) -> str:
        """Who asked: the name that the process gave, and the database role that wrote it where that is another."""
        name, role = str(self.facts.get("asked_by", "")), str(self.facts.get("role", ""))
        return f"{name} (database role {role})" if role and role != name else name


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request whose cost is spent, whether or not an answer follows; `Ledger.release` and `Ledger.settle`
    take it.

    Attributes
    ----------
    dataset : str
        Name of the account.
    request_id : str
        Name of the request.
    fingerprint : str
        Text that only equal requests share.
    seq : int
        Number of its entry in the ledger.
    """

    dataset: str
    request_id: str
    fingerprint: str
    seq: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The stored answer of a request that was asked before; it is returned, not drawn again, and costs
    nothing.

    Attributes
    ----------
    answer : str
        The answer as JSON text.
    """

    answer: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `Ledger.verify` found.

    Attributes
    ----------
    entries : int
        Number of valid entries.
    head_hash : str
        Hash of the last valid entry.
    problem : str or None
        The first problem; None where all is well.
    problem_seq : int or None
        Number of the entry that has it, where it is one entry's.
    """

    entries: int
    head_hash: str
    problem: str | None
    problem_seq: int | None = None

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return self.problem is None

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON-ready facts.

        Returns
        -------
        dict
            The attributes and `ok`.
        """
        return asdict(self) | {"ok": self.ok}


@dataclass(frozen=True, slots=True)
class Row:
    """One stored entry; `body` is its content, the other columns repeat what is searched for."""

    seq: int
    kind: str
    dataset: str
    request_id: str
    name: str  # of a release; other entries have none
    body: str
    previous: str
    hash: str


def sync(path: Path) -> None:
    """Return when what was written to a file or a folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
