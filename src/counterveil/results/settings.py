"""What settings of methods may be: tests of single values, and the refusal of one that is out of range."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, Final

from counterveil.errors import ParameterError, shown

# Beyond it a setting means nothing, and what is computed from it is not finite.
LARGEST = 1e300


def whole(value: Any, least: int, most: float = inf) -> bool:
    """Return whether a value is a whole number from `least` to `most`; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def number(value: Any, least: float = -inf, most: float = inf) -> bool:
    """Return whether a value is a finite number from `least` to `most`; True and False are none."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared rather than converted: a whole number beyond the largest double has no float.
    return real and -LARGEST <= value <= LARGEST and least <= value <= most


def one_of(value: Any, *known: object) -> bool:
    """Return whether a value is one of those known, and of its type: an array is equal to nothing as a whole."""
    return any(type(value) is type(each) and value == each for each in known)


def between(value: Any, low: float, high: float) -> bool:
    """Return whether a value is a finite number above `low` and below `high`."""
    return number(value) and bool(low < value < high)


def out_of_range(code: str, of: str, name: str, expected: str, value: object) -> ParameterError:
    """Return the refusal of one setting of a method."""
    return ParameterError(
        code,
        f"the setting {name} of {of} is out of range",
        expected=f"{name}: {expected}",
        got=f"{name}={shown(value)}",
        fix="leave the setting out, or pass a value inside the range",
    )


# What is supposed of the spread of outcomes where noise is traded for balance; public, and no part of a promise.


# Parts of the outcome's range: of its mean over the covariates, and of outcomes around that mean.
NUMBERS: Final = 1 / 8
YES_OR_NO: Final = 3 / 8


def supposed_spread(outcome_range: tuple[Fraction, Fraction]) -> float:
    """Return the spread that is supposed of outcomes, over the covariates and around them, as a part of their range.

    Outcomes declared from 0 to 1 are mostly yes or no, which spread as far as outcomes can. Others fill their range
    less. Too little supposed leaves imbalance that goes with outcomes and that no interval holds; too much makes
    weights, and noise, somewhat larger than they need to be.
    """
    low, high = outcome_range
    return YES_OR_NO if low == 0 and high == 1 else NUMBERS
