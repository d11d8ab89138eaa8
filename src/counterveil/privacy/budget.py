"""Privacy budgets as exact rationals: 0.1 three times is 0.3, to the last bit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from counterveil.errors import BudgetError, ParameterError, shown

# Every float fits; a longer text or a larger exponent would only cost memory and time.
_DIGITS = 400
_LONGEST = 2 * _DIGITS + 2
_LARGEST_EXPONENT = 400
_TOO_LARGE = 10**_DIGITS
# Budgets and draws outside have no use, and squares, sums and floats of those inside are safe.
_LEAST, _MOST = Fraction(1, 10**100), Fraction(10**100)
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
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ParameterError(
            "CV-P003",
            f"{name} is not a finite number",
            expected=f"an int, a float, a Fraction, a Decimal or a text such as '1/3', of at most {_DIGITS} digits",
            got=f"{name}={shown(value)}",
            fix=f"pass {name} as a finite number; as text with a point: '0.5' or '1/2'",
        ) from None


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
    return Fraction(repr(as_float))


def _from_text(text: str) -> Fraction:
    """Return the number in `text`; exponents beyond any use are refused rather than expanded."""
    if len(text) > _LONGEST:
        raise ValueError
    _, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise ValueError
    return Fraction(text)


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


def _beyond(problem: str, got: str) -> BudgetError:
    return BudgetError(
        "CV-B007",
        problem,
        expected="epsilon between 1e-100 and 1e100, delta 0 or between 1e-100 and 1, draws of at most "
        f"{_WRITTEN_DIGITS} digits",
        got=got,
        fix="round the budget; typical epsilons lie between 0.01 and 10",
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """A pair (epsilon, delta), exact; `Budget(epsilon=1, delta=1e-6)`."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", exact(epsilon, "epsilon"))
        object.__setattr__(self, "delta", exact(delta, "delta"))
        if self.epsilon <= 0:
            raise ParameterError(
                "CV-P004",
                "epsilon must be positive",
                expected="epsilon > 0",
                got=f"epsilon={shown(epsilon)}",
                fix="pass a positive epsilon; typical values for one estimate lie between 0.1 and 5",
            )
        if not 0 <= self.delta < 1:
            raise ParameterError(
                "CV-P005",
                "delta must lie in [0, 1)",
                expected="0 <= delta < 1, and far below 1/n when it is not zero",
                got=f"delta={shown(delta)}",
                fix="pass delta=0 for a pure guarantee or a small number such as 1e-6",
            )

        if not _LEAST <= self.epsilon <= _MOST or 0 < self.delta < _LEAST:
            raise _beyond("the budget is outside the supported range", str(self))
        if max(self.epsilon.denominator, self.delta.denominator) >= _TOO_LARGE // _MOST:
            raise _beyond("the budget has too many digits", str(self))

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta == 0

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
