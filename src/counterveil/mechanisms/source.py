"""Where random bits come from: the operating system, or a seed for tests and experiments."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError, shown

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
    """A reproducible stream for tests and experiments; whatever it touches is not a private release."""

    simulated = True

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ParameterError(
                "CV-P113",
                "the seed must be a whole number that is not negative",
                expected="SeededNoise(seed) with an int seed >= 0",
                got=f"seed={shown(seed)}",
                fix="pass a number such as 7; leave the argument out altogether for a private release",
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
            fix="pass the number of values that are to be released",
        )
