"""Privacy budgets as exact rationals: 0.1 three times is 0.3, to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from counterveil.errors import ParameterError

# A longer text or a larger exponent would only cost memory and time.
_LONGEST = 400
_LARGEST_EXPONENT = 400

Number: TypeAlias = int | float | str | Decimal | Fraction


def exact(value: Number, name: str) -> Fraction:
    """Return `value` as the rational a person wrote: the float 0.1 becomes 1/10, not its binary neighbour."""
    if type(value) is Fraction:
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ValueError
            return Fraction(repr(float(value)))
        if isinstance(value, Decimal | str):
            return _from_text(str(value))
        if isinstance(value, Rational):
            return Fraction(value)
        # numpy scalars and other number types that know how to become a float
        as_float = float(value)
        if not math.isfinite(as_float):
            raise ValueError
        return Fraction(repr(as_float))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ParameterError(
            "CV-P003",
            f"{name} is not a finite number",
            expected="an int, a float, a Fraction, a Decimal or a text such as '1/3'",
            got=f"{name}={value!r}",
            fix=f"pass {name} as a finite number; as text with a point: '0.5' or '1/2'",
        ) from None


def _from_text(text: str) -> Fraction:
    """Return the number in `text`; exponents beyond any use are refused rather than expanded."""
    _, _, exponent = text.lower().partition("e")
    if len(text) > _LONGEST or (exponent and abs(int(exponent)) > _LARGEST_EXPONENT):
        raise ValueError
    return Fraction(text)


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
                got=f"epsilon={epsilon!r}",
                fix="pass a positive epsilon; typical values for one estimate lie between 0.1 and 5",
            )
        if not 0 <= self.delta < 1:
            raise ParameterError(
                "CV-P005",
                "delta must lie in [0, 1)",
                expected="0 <= delta < 1, and far below 1/n when it is not zero",
                got=f"delta={delta!r}",
                fix="pass delta=0 for a pure guarantee or a small number such as 1e-6",
            )

    @property
    def pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta == 0

    def to_dict(self) -> dict[str, str]:
        """Return the exact rationals as text."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def from_dict(cls, facts: dict[str, str]) -> Budget:
        """Return the budget written by `to_dict`."""
        return cls(facts["epsilon"], facts["delta"])

    def __str__(self) -> str:
        return f"epsilon {show(self.epsilon)}" + ("" if self.pure else f", delta {show(self.delta)}")


def show(value: Fraction, digits: int = 6) -> str:
    """Return a rational as short decimal text, for reading and never for computing."""
    return f"{float(value):.{digits}g}"
