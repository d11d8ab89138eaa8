"""Dividing one budget among several draws.

Pure epsilons add up, so epsilon is divided. Gaussian draws add up in mu squared, so mu squared is
divided: two equal halves get mu / sqrt(2) each, not mu / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from counterveil.accounting.rounding import sqrt_down
from counterveil.errors import BudgetError
from counterveil.privacy import Number, exact


def split_epsilon(epsilon: Number, shares: Sequence[Number]) -> tuple[Fraction, ...]:
    """Return epsilons in proportion to `shares`; they add up to `epsilon` exactly."""
    total = _positive(epsilon, "epsilon")
    return tuple(total * weight for weight in _weights(shares))


def split_mu(mu: Number, shares: Sequence[Number]) -> tuple[Fraction, ...]:
    """Return mus whose squares are in proportion to `shares` and add up to at most mu squared."""
    squared = _positive(mu, "mu") ** 2
    return tuple(sqrt_down(squared * weight) for weight in _weights(shares))


def _positive(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise _wrong(f"{name} > 0", f"{name}={value!r}")
    return number


def _weights(shares: Sequence[Number]) -> list[Fraction]:
    numbers = [exact(share, "share") for share in shares]
    if not numbers or any(number <= 0 for number in numbers):
        raise _wrong("at least one share, each positive", f"shares={list(shares)!r}")
    total = sum(numbers)
    return numbers if total == 1 else [number / total for number in numbers]


def _wrong(expected: str, got: str) -> BudgetError:
    return BudgetError(
        "CV-B003",
        "a budget cannot be divided like this",
        expected=expected,
        got=got,
        fix="give a positive amount and positive shares, for instance split_epsilon(1, [2, 1])",
    )
