"""How much Gaussian noise a release is worth: the mu of the Gaussian pair that dominates it.

A release is mu-GDP if distinguishing two neighbours from its output is no easier than distinguishing
N(0, 1) from N(mu, 1). Proofs: `conversion.proof.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import flint

from counterveil.errors import Refusal
from counterveil.numerics.arrays import sqrt_down
from counterveil.privacy import GaussianEvent, LaplaceEvent, Number, PureEvent, ResponseEvent, exact

# Rational square roots and grids, rounded in a stated direction.
#
# Budgets are exact; where a number is irrational or its digits would grow without end, it is
# replaced by a rational on the side that costs the spender.


GRID_BITS = 64
_GRID = 1 << GRID_BITS
# Sums of human-written budgets stay exact below this denominator; above it they are rounded up.
_LONGEST_DENOMINATOR = 10**60


def square_up(value: Fraction) -> Fraction:
    """Return `value` squared, rounded up to a multiple of 2**-128 so that running sums stay short."""
    grid = _GRID * _GRID
    return Fraction(math.ceil(value * value * grid), grid)


def shorten_up(value: Fraction) -> Fraction:
    """Return `value` itself while its denominator is short, else the next multiple of 10**-60 above it."""
    if value.denominator <= _LONGEST_DENOMINATOR:
        return value
    return Fraction(math.ceil(value * _LONGEST_DENOMINATOR), _LONGEST_DENOMINATOR)


# Bits of working precision; a comparison that they cannot decide counts against the spender.
_BITS = 192


@lru_cache(maxsize=4096)
def gaussian_equivalent(event: PureEvent | LaplaceEvent | GaussianEvent | ResponseEvent) -> Fraction:
    """Return the smallest mu, up to the grid 2**-64 and never too small, for which `event` is mu-GDP."""
    if isinstance(event, GaussianEvent):
        return event.mu
    epsilon = event.epsilon
    if isinstance(event, LaplaceEvent):
        return 2 * upper_tail_point(lambda: (-_ball(epsilon) / 2).exp() / 2)
    if isinstance(event, ResponseEvent):
        k = event.categories
        return upper_tail_point(lambda: 1 / (_ball(epsilon).exp() + k - 1)) + upper_tail_point(
            lambda: (k - 1) / (_ball(epsilon).exp() + k - 1)
        )
    return 2 * upper_tail_point(lambda: 1 / (1 + _ball(epsilon).exp()))


def pure_equivalent(mu: Fraction) -> Fraction:
    """Return the largest pure epsilon, to about 2**-40 and rounded down, whose equivalent is at most `mu`."""
    with flint.ctx.workprec(_BITS):
        half = _ball(mu) / (2 * flint.arb(2).sqrt())
        odds = ((-half).erfc() / half.erfc()).log()
        steps = int((odds.lower() * (1 << 40)).floor().unique_fmpz()) - 1
    return Fraction(max(0, steps), 1 << 40)


def upper_tail_point(alpha: Callable[[], flint.arb]) -> Fraction:
    """Return the smallest multiple u of 2**-64 for which 1 - Phi(u) <= alpha is certain."""
    with flint.ctx.workprec(_BITS):
        level = alpha()
        high = 8 * _GRID
        while not _tail(high) <= level:
            high *= 2
        low = -8 * _GRID
        while _tail(low) <= level:
            low *= 2
        while high - low > 1:
            middle = (low + high) // 2
            if _tail(middle) <= level:
                high = middle
            else:
                low = middle
        return Fraction(high, _GRID)


def _tail(point: int) -> flint.arb:
    """Return a ball around 1 - Phi(point / 2**64)."""
    scaled = flint.arb(point) / _GRID
    return (scaled / flint.arb(2).sqrt()).erfc() / 2


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


# Dividing one budget among several draws.
#
# Pure epsilons add up, so epsilon is divided. Gaussian draws add up in mu squared, so mu squared is
# divided: two equal halves get mu / sqrt(2) each, not mu / 2.


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


_wrong = Refusal(
    "CV-B003",
    "the budget cannot be split this way",
    expected="{expected}",
    got="{got}",
    fix="give a positive amount and positive shares, for instance split_epsilon(1, [2, 1])",
)
