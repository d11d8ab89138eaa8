"""How much Gaussian noise a release is worth: the mu of the Gaussian pair that dominates it.

A release is mu-GDP if telling two neighbours apart from its output is no easier than telling
N(0, 1) from N(mu, 1). Proofs: `conversion.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import flint

from counterveil.accounting.rounding import GRID_BITS
from counterveil.privacy import GaussianEvent, LaplaceEvent, PureEvent, ResponseEvent

_GRID = 1 << GRID_BITS
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
