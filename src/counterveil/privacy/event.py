"""What a release costs, as events that can be composed.

An event says how private one draw was, not what it measured. A `Charge` is what one request
costs: the face value that was requested, and the draws it pays for.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from counterveil.errors import InternalError
from counterveil.privacy.budget import Budget, read_written, written


@dataclass(frozen=True, slots=True)
class PureEvent:
    """Any release that is epsilon-DP."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Laplace noise on one number, of scale (known sensitivity) / epsilon; vectors are pure events."""

    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Gaussian noise whose standard deviation is (known l2 sensitivity) / mu."""

    mu: Fraction


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    """Randomized response over `categories` values, epsilon-DP."""

    epsilon: Fraction
    categories: int


@dataclass(frozen=True, slots=True)
class ApproximateEvent:
    """Any release that is (epsilon, delta)-DP and about which nothing more is known."""

    epsilon: Fraction
    delta: Fraction


Event: TypeAlias = PureEvent | LaplaceEvent | GaussianEvent | ResponseEvent | ApproximateEvent

_KINDS: dict[str, type[Event]] = {
    "pure": PureEvent,
    "laplace": LaplaceEvent,
    "gaussian": GaussianEvent,
    "response": ResponseEvent,
    "approximate": ApproximateEvent,
}
_NAMES: dict[type[Event], str] = {kind: name for name, kind in _KINDS.items()}


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the epsilon of a pure event, None for one that is not pure."""
    if isinstance(event, PureEvent | LaplaceEvent | ResponseEvent):
        return event.epsilon
    return None


def event_to_dict(event: Event) -> dict[str, str | int]:
    """Return the event as JSON-ready facts; rationals become text."""
    facts: dict[str, str | int] = {"kind": _NAMES[type(event)]}
    for name in event.__dataclass_fields__:
        value = getattr(event, name)
        facts[name] = written(value) if isinstance(value, Fraction) else value
    return facts


def event_from_dict(facts: dict[str, str | int]) -> Event:
    """Return the event written by `event_to_dict`."""
    fields = dict(facts)
    kind = _KINDS.get(str(fields.pop("kind", "")))
    if kind is None:
        raise InternalError(
            "CV-X001",
            "unknown kind of privacy event",
            expected=f"one of {sorted(_KINDS)}",
            got=repr(facts.get("kind")),
            fix="the ledger was written by another version; use the version that wrote it",
        )
    values: dict[str, Any] = {
        name: read_written(value) if isinstance(value, str) else value for name, value in fields.items()
    }
    return kind(**values)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one request costs: the (epsilon, delta) requested and the draws it pays for."""

    face: Budget
    events: tuple[Event, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the charge as JSON-ready facts."""
        return {"face": self.face.to_dict(), "events": [event_to_dict(event) for event in self.events]}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Charge:
        """Return the charge written by `to_dict`."""
        return cls(
            Budget.from_dict(facts["face"]), tuple(event_from_dict(event) for event in facts["events"])
        )
