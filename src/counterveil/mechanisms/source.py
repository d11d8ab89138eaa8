"""Sources of random bits: the operating system, or a seed for tests and experiments."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError, shown
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
            raise ParameterError(
                "CV-P113",
                "the seed must be a non-negative integer",
                expected="SeededNoise(seed) with an int seed >= 0",
                got=f"seed={shown(seed)}",
                fix="pass a number such as 7; leave it out for a private release",
            )
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
        raise ParameterError(
            "CV-P108",
            "the number of draws cannot be negative",
            expected="count >= 0",
            got=f"count={count}",
            fix="pass the number of values to release",
        )


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
            raise ParameterError(
                "CV-P107",
                "the step of a grid must be positive",
                expected="step > 0, and a scale > 0 where the step is derived from one",
                got=f"step={self.step}",
                fix="use Grid.for_scale(scale) with the public scale of the noise",
            )

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
        raise ParameterError(
            "CV-P100",
            "the sensitivity must be positive",
            expected="sensitivity > 0",
            got=f"sensitivity={shown(value)}",
            fix="pass the proved bound on how far one person can move the statistic",
        )
    return sensitivity


def positive_epsilon(value: Number) -> Fraction:
    """Return epsilon as an exact rational, or raise CV-P101."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise ParameterError(
            "CV-P101",
            "the epsilon of a mechanism must be positive",
            expected="epsilon > 0",
            got=f"epsilon={shown(value)}",
            fix="pass a positive epsilon; typical values for one release lie between 0.1 and 5",
        )
    return epsilon


# The special functions of scipy, loaded at their first use: the import alone costs a fifth of a second.


def special(function: str, *arguments: Any) -> NDArray[np.float64]:
    """Return scipy.special.<function>(*arguments) as float64."""
    from scipy import special as scipy_special

    return np.asarray(getattr(scipy_special, function)(*arguments), dtype=np.float64)
