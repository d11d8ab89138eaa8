"""Exact draws: random bits pushed through a quantile function in ball arithmetic.

A uniform number is known only as an interval; more bits narrow it. The interval goes through
the distribution's quantile function with rigorous error bounds, and bits are added until the grid point
of (value + noise) is the same for every number of the interval. The page `sampler.proof.md`
says why the released integer then has exactly the distribution of the rounded continuous mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from flint import arb, ctx, fmpq

from counterveil.mechanisms.source import WORD_BITS, BitSource, Grid

TAIL_BITS = WORD_BITS - 1  # of the first word, one bit is the sign
GUARD_BITS = 64  # working precision beyond the bits of the uniform number
_SIGN_SHIFT = WORD_BITS - 1
_TAIL_MASK = (1 << TAIL_BITS) - 1


class TailQuantile(Protocol):
    """A distribution that is symmetric about zero, without an atom, given by the quantiles of its size."""

    def tail_quantile(self, u: arb) -> arb:
        """Return a ball that holds every x with P(|X| > x) in the ball u; not finite if unknown."""
        ...


@dataclass(slots=True)
class SignedUniform:
    """A sign and a number u of (0, 1) that is known to lie in [head, head + 1] / 2**bits."""

    negative: bool
    head: int
    bits: int

    @classmethod
    def of_word(cls, word: int) -> SignedUniform:
        """Return the sign and the first 63 bits of u that one random word holds."""
        return cls(bool(word >> _SIGN_SHIFT), word & _TAIL_MASK, TAIL_BITS)

    def refine(self, source: BitSource) -> None:
        """Narrow u by 64 further bits."""
        self.head = (self.head << WORD_BITS) | source.bits(WORD_BITS)
        self.bits += WORD_BITS

    def ball(self) -> arb:
        """Return the interval of u as an exact ball."""
        return arb((2 * self.head + 1, -self.bits - 1), (1, -self.bits - 1))

    def signed(self, distribution: TailQuantile) -> arb:
        """Return a ball that holds the draw of `distribution` that this number stands for."""
        size = distribution.tail_quantile(self.ball())
        return -size if self.negative else size


def exact_ball(value: Fraction) -> arb:
    """Return a ball that holds a rational, at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def certain_floor(ball: arb) -> int | None:
    """Return the floor shared by every number of the ball, None if there is more than one."""
    if not ball.is_finite():
        return None
    floor = ball.floor().unique_fmpz()
    return None if floor is None else int(floor)


def working_bits(bits: int, ratio: Fraction) -> int:
    """Return a precision at which rounding is negligible beside the unknown bits of u."""
    size = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return bits + GUARD_BITS + max(0, size)


def settle(
    distribution: TailQuantile, ratio: Fraction, offset: Fraction, uniform: SignedUniform, source: BitSource
) -> int:
    """Return floor(offset + ratio * X), reading further bits only while it is not certain."""
    while True:
        with ctx.workprec(working_bits(uniform.bits, ratio)):
            total = exact_ball(offset) + exact_ball(ratio) * uniform.signed(distribution)
            floor = certain_floor(total)
        if floor is not None:
            return floor
        uniform.refine(source)


def split(value: Fraction, grid: Grid) -> tuple[int, Fraction]:
    """Return (n, rest) with value / step + 1/2 = n + rest and 0 <= rest < 1.

    Only the rest takes part in ball arithmetic, so the size of the value does not change the precision.
    """
    shifted = value / grid.step + Fraction(1, 2)
    whole = shifted.__floor__()
    return whole, shifted - whole


def release_value(
    distribution: TailQuantile, scale: Fraction, value: Fraction, grid: Grid, source: BitSource
) -> Fraction:
    """Return the grid point nearest to value + scale * X, with X an exact draw of the unit distribution."""
    whole, rest = split(Fraction(value), grid)
    uniform = SignedUniform.of_word(source.bits(WORD_BITS))
    return grid.value(whole + settle(distribution, scale / grid.step, rest, uniform, source))
