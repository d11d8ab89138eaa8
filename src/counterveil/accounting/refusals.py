"""The ledger's refusals."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from counterveil.accounting.filters import Remaining
from counterveil.accounting.records import SCHEMA_VERSION
from counterveil.errors import (
    BudgetError,
    CounterveilError,
    LedgerError,
    filled,
    refusal,
)
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
        texts = filled(
            "CV-B001",
            dataset=dataset,
            level=" for answers that protect records" if level is Unit.RECORD else "",
            remaining=remaining,
            total=total,
            rule=rule,
            requested=requested,
            gap=_gap(missing, missing_delta),
            fix=_fix(remaining),
        )
        super().__init__("CV-B001", **texts)

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


def unknown_dataset(dataset: str, known: list[str]) -> CounterveilError:
    """Return the refusal for a data set that was never registered."""
    listed = ", ".join(repr(name) for name in known[:10]) or "none yet"
    return refusal("CV-L004", dataset=dataset, listed=listed)


def check_version(version: object) -> None:
    """Raise CV-L003 for a ledger that another version of the package wrote."""
    if version != SCHEMA_VERSION:
        raise refusal("CV-L003", schema_version=SCHEMA_VERSION, version=version)


def too_large(kind: str, length: int, longest: int) -> CounterveilError:
    """Return the refusal for an entry that readers could not hold."""
    return refusal("CV-L066", kind=kind, longest=longest, length=length)


def not_kept(request_id: str, why: LedgerError) -> CounterveilError:
    """Return the refusal for a release or an answer that could not be stored after its budget was spent."""
    return refusal("CV-L065", request_id=request_id, what=why.code, got=why.got)


# What a ledger refuses when it is opened: lost entries, another ledger, a missing anchor, changed guards.


def cut_off(seq: int, expected: str) -> CounterveilError:
    """Return the refusal for a ledger that lacks an entry which it had earlier."""
    return refusal("CV-L060", seq=seq, expected=expected[:16])


def other_ledger(found: str, expected: str) -> CounterveilError:
    """Return the refusal for a ledger that stands in the place of another."""
    return refusal("CV-L061", expected=expected, found=found)


def anchor_failed(place: str, problem: str) -> CounterveilError:
    """Return the refusal for an anchor that cannot be read or moved forward."""
    return refusal("CV-L063", problem=problem, place=place)


# What is refused in the same words wherever a ledger is given it.


def check_name(name: str, value: object) -> None:
    """Raise CV-L011 for the name of a data set, a request or an analyst that could be mistaken for another."""
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise refusal("CV-L011", name=name, value=value)
    # Control characters and stray spaces would make two names look alike.
    if not value.isprintable() or value != value.strip():
        raise refusal("CV-L011", name=name, value=value)


def read_json(answer: str) -> Any:
    """Return an answer as it was written, or raise CV-L014."""
    try:
        return json.loads(answer)
    except (TypeError, ValueError, RecursionError) as error:
        raise refusal("CV-L014", problem=str(error)) from None
