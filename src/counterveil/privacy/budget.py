"""Privacy budgets as exact rationals: 0.1 three times is 0.3, to the last bit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any, TypeAlias

from counterveil.bounded_reading import written_number
from counterveil.errors import CounterveilError, refusal, shown

# Every float fits; a longer text or a larger exponent would only cost memory and time.
_DIGITS = 400
_LONGEST = 2 * _DIGITS + 2
_LARGEST_EXPONENT = 400
_TOO_LARGE = 10**_DIGITS
# Budgets and draws outside have no use, and squares, sums and floats of those inside are safe.
_LEAST, _MOST = Fraction(1, 10**100), Fraction(10**100)
_LARGEST_DENOMINATOR = _TOO_LARGE // 10**100
# The fractions of draws are quotients of budgets, and may have more digits than a person writes.
_WRITTEN_DIGITS = 1000
_TOO_LONG = 10**_WRITTEN_DIGITS
_WRITTEN = re.compile(rf"-?[0-9]{{1,{_WRITTEN_DIGITS}}}(?:/[0-9]{{1,{_WRITTEN_DIGITS}}})?")

Number: TypeAlias = int | float | str | Decimal | Fraction


def exact(value: Number, name: str) -> Fraction:
    """Return `value` as the rational a person wrote: the float 0.1 becomes 1/10, not its binary neighbour."""
    # Fractions come from arithmetic of ours, which may be longer than what a person writes.
    if type(value) is Fraction and type(value.numerator) is int:
        return value
    try:
        return _short(_fraction(value))
    except Exception:  # whatever somebody else's number does when it is asked for its value
        raise refusal("CV-P003", name=name, digits=_DIGITS, value=value) from None


def _fraction(value: Number) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, Decimal | str):
        return _from_text(value if isinstance(value, str) else str(value))
    if isinstance(value, Rational):
        # Whole numbers of numpy stay 64 bits wide inside a Fraction, and overflow.
        return Fraction(int(value.numerator), int(value.denominator))
    # floats, numpy scalars and other number types that know how to become a float
    as_float = float(value)
    if not math.isfinite(as_float):
        raise ValueError
    return _from_text(repr(as_float))


@lru_cache(maxsize=1024)
def _from_text(text: str) -> Fraction:
    """Return the number in `text`; exponents beyond any use are refused rather than expanded."""
    _, _, exponent = text.lower().partition("e")
    if len(text) > _LONGEST or (exponent and abs(written_number(exponent)) > _LARGEST_EXPONENT):
        raise ValueError
    return written_number(text)


def _short(value: Fraction) -> Fraction:
    if abs(value.numerator) >= _TOO_LARGE or value.denominator >= _TOO_LARGE:
        raise ValueError
    return value


def written(value: Fraction) -> str:
    """Return a fraction as the text that `read_written` reads; one of more than a thousand digits raises CV-B007."""
    if abs(value.numerator) >= _TOO_LONG or value.denominator >= _TOO_LONG:
        raise _beyond("a fraction has too many digits", f"more than {_WRITTEN_DIGITS} digits")
    return str(value)


def read_written(text: object) -> Fraction:
    """Return the fraction that `written` wrote; any other text raises CV-B007, however long it is."""
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text) or text.endswith("/0"):
        raise _beyond("this is not a fraction in the ledger's format", shown(text))
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise _beyond("this is not a fraction in the ledger's format", "a denominator of zero") from None


def _beyond(problem: str, got: str) -> CounterveilError:
    return refusal("CV-B007", problem=problem, written_digits=_WRITTEN_DIGITS, got=got)


@dataclass(frozen=True, slots=True)
class Budget:
    """A pair (epsilon, delta), exact; `Budget(epsilon=1, delta=1e-6)`."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", exact(epsilon, "epsilon"))
        object.__setattr__(self, "delta", exact(delta, "delta"))
        if self.epsilon.numerator <= 0:
            raise refusal("CV-P004", epsilon=epsilon)
        if not 0 <= self.delta.numerator < self.delta.denominator:
            raise refusal("CV-P005", delta=delta)

        if not _LEAST <= self.epsilon <= _MOST or 0 < self.delta < _LEAST:
            raise _beyond("the budget is outside the supported range", str(self))
        if max(self.epsilon.denominator, self.delta.denominator) >= _LARGEST_DENOMINATOR:
            raise _beyond("the budget has too many digits", str(self))

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta.numerator == 0

    def check_rows(self, rows: int) -> None:
        """Raise CV-P006 where delta permits publishing one of so many rows, a public number."""
        if self.delta * rows >= 1:
            raise refusal("CV-P006", rows=rows, advised=100 * rows, delta=show(self.delta))

    def to_dict(self) -> dict[str, str]:
        """Return the exact rationals as text."""
        return {"epsilon": written(self.epsilon), "delta": written(self.delta)}

    @classmethod
    def from_dict(cls, facts: dict[str, str]) -> Budget:
        """Return the budget written by `to_dict`."""
        return cls(facts["epsilon"], facts["delta"])

    def __str__(self) -> str:
        return f"epsilon {show(self.epsilon)}" + ("" if self.pure else f", delta {show(self.delta)}")


def show(value: Fraction, digits: int = 6) -> str:
    """Return a rational as short decimal text, for display only."""
    try:
        return f"{float(value):.{digits}g}"
    except OverflowError:
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits}g}"


# What a release costs, as events that can be composed.
#
# An event says how private one draw was, not what it measured. A `Charge` is what one request
# costs: the face value that was requested, and the draws it pays for.


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
        raise refusal("CV-X001", kinds=sorted(_KINDS), got=repr(facts.get("kind")))
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
