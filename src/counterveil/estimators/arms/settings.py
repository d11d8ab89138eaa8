"""What may be chosen about adjusted means of several arms."""

from __future__ import annotations

import math
from dataclasses import dataclass

from counterveil.errors import ParameterError


@dataclass(frozen=True, slots=True)
class ArmsSettings:
    """Settings of `arms(method="weighting")` and `arms(method="matching")`.

    Attributes:
        neighbours: matching: how many units of an arm stand in for one unit of another.
        limit: matching: how often one unit may be used; None takes the limit of least expected error.
        penalty: of the multinomial score; None is one over the number of rows.
        signal: what is supposed, as a part of the outcome's range, of the spread of the mean outcome over
            the covariates. It steers the trade-off of balance against noise and nothing else.
        residual: the same for the spread of outcomes around that mean.
    """

    neighbours: int = 5
    limit: int | None = None
    penalty: float | None = None
    signal: float = 0.0625
    residual: float = 0.0625

    def __post_init__(self) -> None:
        for name, none in (("neighbours", False), ("limit", True)):
            value = getattr(self, name)
            if not (none and value is None) and not _whole(value):
                raise _refusal(name, "a whole number of at least 1", value, none)
        for name, none in (("penalty", True), ("signal", False), ("residual", False)):
            value = getattr(self, name)
            if not (none and value is None) and not _positive(value):
                raise _refusal(name, "a finite number above 0", value, none)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _positive(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    )


def _refusal(name: str, expected: str, value: object, none: bool) -> ParameterError:
    return ParameterError(
        "CV-P281",
        f"the setting {name} is out of range",
        expected=f"{name}: {expected}{', or None' if none else ''}",
        got=f"{name}={value!r}",
        fix="leave the setting out, or pass a value inside the range",
    )
