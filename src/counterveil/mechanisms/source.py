"""Sources of random bits (the operating system, or a seed for tests), grids, and the exact sampler."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.privacy import Number, exact

WORD_BITS = 64


class BitSource(Protocol):
    """Independent fair bits; `simulated` is True when someone could draw them again."""

    @property
    def simulated(self) -> bool:
        """Whether the bits can be reproduced, so that the noise could be subtracted."""
        ...

    def bits(self, count: int) -> int:
        """Return an integer uniform in [0, 2**count)."""
        ...

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` integers uniform in [0, 2**64)."""
        ...


class SystemNoise:
    """The operating system's generator; nothing is buffered, so a forked process repeats nothing."""

    simulated = False

    def bits(self, count: int) -> int:
        """Return an integer uniform in [0, 2**count)."""
        check_count(count)
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` integers uniform in [0, 2**64)."""
        check_count(count)
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "SystemNoise()"


class SeededNoise:
    """A reproducible stream for tests and experiments; its releases are not private."""

    simulated = True

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise refusal("CV-P113", seed=seed)
        self.seed = seed
        self._stream = np.random.PCG64(seed)

    def bits(self, count: int) -> int:
        """Return an integer uniform in [0, 2**count), from the next whole words of the stream."""
        check_count(count)
        size = -(-count // WORD_BITS)
        joined = 0
        for word in self.words(size):
            joined = (joined << WORD_BITS) | int(word)
        return joined >> (size * WORD_BITS - count)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` integers uniform in [0, 2**64)."""
        check_count(count)
        words: NDArray[np.uint64] = self._stream.random_raw(count)
        return words

    def __repr__(self) -> str:
        return f"SeededNoise({self.seed})"


def check_count(count: int) -> None:
    """Raise CV-P108 for a negative number of bits or draws."""
    if count < 0:
        raise refusal("CV-P108", count=count)


# The process's global generators, for code of others that draws from them.
#
# Nothing of ours draws from them. A learner that a user brings may: what one piece of data makes it draw would then
# reach the next piece through the generator's state. Starting every piece from one fixed state cuts that way.


_FIXED = 0


@contextmanager
def fixed_ambient_generators() -> Iterator[Callable[[], None]]:
    """Run a block with the global generators in one fixed state, and put them back as they were afterwards.

    The block is given a function that puts them into that fixed state again.
    """
    plain, vectors = random.getstate(), np.random.get_state()
    _fix()
    try:
        yield _fix
    finally:
        random.setstate(plain)
        np.random.set_state(vectors)


def _fix() -> None:
    random.seed(_FIXED)
    np.random.seed(_FIXED)


# The public grid on which every released number lies.


DEFAULT_BITS = 24  # a step of 2**-24 scales adds less than 1e-14 of the noise's variance


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `step`; the step must be chosen from public numbers only."""

    step: Fraction

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise refusal("CV-P107", step=self.step)

    @classmethod
    def for_scale(cls, scale: Fraction, bits: int = DEFAULT_BITS) -> Grid:
        """Return the grid whose step is the largest power of two that is at most scale / 2**bits."""
        if scale <= 0:
            return cls(Fraction(scale))
        target = Fraction(scale) / Fraction(2) ** bits
        power = target.numerator.bit_length() - target.denominator.bit_length()
        step = _power_of_two(power)
        return cls(step if step <= target else step / 2)

    def units(self, value: Fraction) -> int:
        """Return the grid point nearest to `value`, counted in steps; halves go up."""
        return (value / self.step + Fraction(1, 2)).__floor__()

    def value(self, units: int) -> Fraction:
        """Return the number that lies `units` steps from zero."""
        return units * self.step


def _power_of_two(power: int) -> Fraction:
    return Fraction(1 << power) if power >= 0 else Fraction(1, 1 << -power)


# The checks of parameters that several mechanisms share; none of them ever sees a private value.


def positive_sensitivity(value: Number) -> Fraction:
    """Return the sensitivity as an exact rational, or raise CV-P100."""
    sensitivity = exact(value, "sensitivity")
    if sensitivity <= 0:
        raise refusal("CV-P100", value=value)
    return sensitivity


def positive_epsilon(value: Number) -> Fraction:
    """Return epsilon as an exact rational, or raise CV-P101."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise refusal("CV-P101", value=value)
    return epsilon


def hash_of(*numbers: Fraction) -> int:
    """Return a hash of rationals; intervals look noises up by theirs, and Python's for fractions is slow."""
    return hash(tuple([(one.numerator, one.denominator) for one in numbers]))


# The special functions of scipy, loaded at their first use: the import alone costs a fifth of a second.


def special(function: str, *arguments: Any) -> NDArray[np.float64]:
    """Return scipy.special.<function>(*arguments) as float64."""
    from scipy import special as scipy_special

    return np.asarray(getattr(scipy_special, function)(*arguments), dtype=np.float64)


# Exact draws: random bits pushed through a quantile function in ball arithmetic.
#
# A uniform number is known only as an interval; more bits narrow it. The interval goes through
# the distribution's quantile function with rigorous error bounds, and bits are added until the grid point
# of (value + noise) is the same for every number of the interval. The page `sampler.proof.md`
# says why the released integer then has exactly the distribution of the rounded continuous mechanism.


# Proof: sampler.proof.md

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
    top, bottom = value.numerator * grid.step.denominator, value.denominator * grid.step.numerator
    whole, rest = divmod(2 * top + bottom, 2 * bottom)
    return whole, Fraction(rest, 2 * bottom)
