"""Planned looks at one outcome: what each may spend, and the part of the error that its interval may use up."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from counterveil.accounting.uses import usable
from counterveil.errors import CounterveilError, Refusal
from counterveil.privacy import Budget, exact

MOST_LOOKS = 100
_LONGEST_NUMBER = 120
_NUMBERS = ("epsilon", "delta", "alpha")


@dataclass(frozen=True, slots=True)
class Look:
    """One planned look.

    Attributes:
        rows: how many rows, or people, are planned to be there.
        budget: what the look spends.
        alpha: the chance that its interval misses; those of all looks add up to one minus the level of all together.
    """

    rows: int
    budget: Budget
    alpha: Fraction


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks at an outcome that a charter plans; no other request that reads the outcome is taken."""

    outcome: str
    planned: tuple[Look, ...]

    def __post_init__(self) -> None:
        rows = [look.rows for look in self.planned]
        good = usable(self.outcome) and 0 < len(rows) <= MOST_LOOKS
        # The longest of their names, under which looks are asked for.
        good = good and usable(name := self.request_id(len(rows))) and name.isprintable()
        good = good and all(earlier < later for earlier, later in itertools.pairwise([0, *rows]))
        if not good or sum(look.alpha for look in self.planned) >= 1:
            raise _malformed(f"{len(rows)} looks with rows {rows[:10]}")
        # What is registered is read back from its text: a plan that could not be would lock the ledger.
        written = [text for name in _NUMBERS for text in self.to_dict()[name]]
        if any(look.alpha <= 0 for look in self.planned) or max(map(len, written)) > _LONGEST_NUMBER:
            raise _malformed("a number that cannot be used")

    @property
    def request_ids(self) -> tuple[str, ...]:
        """The names of the requests of all looks, which no other request may have."""
        return tuple(self.request_id(number) for number in range(1, len(self.planned) + 1))

    def request_id(self, number: int) -> str:
        """Return the name of a look's request: asked again, it is answered from the ledger."""
        return request_of(self.outcome, number)

    @property
    def level(self) -> float:
        """The chance that the intervals of all looks cover."""
        return float(1 - sum(look.alpha for look in self.planned))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as it stands in a charter."""
        return {
            "outcome": self.outcome,
            "rows": [look.rows for look in self.planned],
            "epsilon": [_decimal(look.budget.epsilon) for look in self.planned],
            "delta": [_decimal(look.budget.delta) for look in self.planned],
            "alpha": [_decimal(look.alpha) for look in self.planned],
        }

    @classmethod
    def from_dict(cls, facts: object) -> Looks:
        """Return the plan in a charter, or raise CV-L040."""
        lists = ("rows", *_NUMBERS)
        if not isinstance(facts, Mapping) or set(facts) != {"outcome", *lists}:
            raise _malformed("other keys" if isinstance(facts, Mapping) else type(facts).__name__)
        found = [facts[name] for name in lists]
        if not all(isinstance(each, Sequence) and not isinstance(each, str) for each in found):
            raise _malformed("a key that is no list")
        if len({len(each) for each in found}) != 1:
            raise _malformed("lists of different lengths")
        return cls(facts["outcome"], tuple(_look(*numbers) for numbers in zip(*found, strict=True)))


def request_of(outcome: str, number: int) -> str:
    """Return the name of the request of a look at an outcome."""
    return f"look at {outcome}@{number}"


def _decimal(number: Fraction) -> str:
    """Return an exact number, with a decimal point where one is enough."""
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
    return text if Fraction(text) == number else str(number)


def _look(rows: object, epsilon: Any, delta: Any, alpha: Any) -> Look:
    try:
        return Look(int(str(rows)), Budget(epsilon, delta), exact(alpha, "alpha"))
    except (ValueError, CounterveilError):
        raise _malformed("a number that cannot be used") from None


_malformed = Refusal(
    "CV-L040",
    "the charter is invalid",
    expected="[looks]: an outcome, and of 1 to 100 looks rising rows, epsilon, delta and alpha",
    got="{got}",
    fix="write the plan with cv.interim.planned(...), or `counterveil ledger charter --looks`",
)
unplanned = Refusal(
    "CV-L083",
    "this look was not planned",
    expected="{expected}",
    got="{got}",
    fix="ask for the looks in their order with cv.interim.look(...), or `counterveil look`; nothing was spent, and the "
    "plan was fixed at registration",
)
