"""Randomized response: pure epsilon for one of k categories. Proof: response.proof.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from counterveil.errors import refusal
from counterveil.mechanisms.noise import (
    GUARD_BITS,
    WORD_BITS,
    BitSource,
    Described,
    Reals,
    exact_ball,
    positive_epsilon,
)
from counterveil.privacy import Number, ResponseEvent

MOST_CATEGORIES = 2**16


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Described):
    """Randomized response: epsilon-DP for one of k categories.

    Releases the true category with probability e^epsilon / (e^epsilon + k - 1), otherwise a random other one.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one response, above 0.
    categories : int, default 2
        k, from 2 to 65536.

    Attributes
    ----------
    epsilon : Fraction
        Privacy loss of one response.
    categories : int
        Number of categories.

    Raises
    ------
    CounterveilError
        An epsilon that is not positive (CV-P101), or a number of categories out of range (CV-P106).

    Notes
    -----
    Proof: ``mechanisms/response.proof.md``.

    Examples
    --------
    >>> from counterveil.mechanisms import RandomizedResponse, SeededNoise
    >>> response = RandomizedResponse(epsilon=1)
    >>> round(response.truth, 2)
    0.73
    >>> len(response.release_many([0, 1, 1], SeededNoise(1)))
    3
    """

    name: ClassVar[str] = "response"
    epsilon: Fraction
    categories: int

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        object.__setattr__(self, "epsilon", positive_epsilon(epsilon))
        object.__setattr__(self, "categories", _checked_categories(categories))

    @property
    def event(self) -> ResponseEvent:
        """What one response costs."""
        return ResponseEvent(self.epsilon, self.categories)

    @property
    def truth(self) -> float:
        """The probability of the true category."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    @property
    def probabilities(self) -> Reals:
        """The k x k matrix of P(released = column | true = row)."""
        k = self.categories
        lie = math.exp(-self.epsilon) * self.truth
        return np.full((k, k), lie) + np.eye(k) * (self.truth - lie)

    def release(self, value: int, source: BitSource) -> int:
        """Return a randomized category.

        Parameters
        ----------
        value : int
            The true category, from 0 to k - 1; a value outside is clamped.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        int
            A category from 0 to k - 1.
        """
        return int(self.release_many(np.asarray([value]), source)[0])

    def release_many(self, values: ArrayLike, source: BitSource) -> NDArray[np.int64]:
        """Return one randomized category for each value.

        Parameters
        ----------
        values : array-like of int
            The true categories, from 0 to k - 1; values outside are clamped.
        source : BitSource
            Where random bits come from: `SystemNoise`, or `SeededNoise` for tests.

        Returns
        -------
        ndarray of int64
            Categories from 0 to k - 1.
        """
        # Clamping rather than refusing: an error here would depend on a private value.
        true = np.clip(np.asarray(values, dtype=np.int64), 0, self.categories - 1)
        words = source.words(true.size)
        limits = _limits(self.epsilon, self.categories)
        offsets = np.searchsorted(limits, words, side="left").astype(np.int64)
        # A word stands for an interval of u; only a word that equals a floored limit has the limit inside.
        following = limits[np.minimum(offsets, len(limits) - 1)]
        for i in np.flatnonzero(following == words):
            offsets[i] = self._settle(int(words[i]), source)
        return ((true.reshape(-1) + offsets) % self.categories).reshape(true.shape)

    def _settle(self, head: int, source: BitSource) -> int:
        """Return how many limits lie below u in [head, head + 1] / 2**bits, with as many bits as it takes."""
        bits = WORD_BITS
        while True:
            with ctx.workprec(bits + GUARD_BITS):
                ball = arb((2 * head + 1, -bits - 1), (1, -bits - 1))
                # Limit j is 1 - (k - 1 - j) lie, so the limits up to u number k + floor((u - 1) / lie).
                lie = 1 / (exact_ball(self.epsilon).exp() + (self.categories - 1))
                count = ((ball - 1) / lie).floor().unique_fmpz()
            if count is not None:
                return max(0, int(count) + self.categories)
            head = (head << WORD_BITS) | source.bits(WORD_BITS)
            bits += WORD_BITS


@lru_cache(maxsize=64)
def _limits(epsilon: Fraction, categories: int) -> NDArray[np.uint64]:
    """Return floor(2**64 P(offset <= j)) for j < k - 1, where released = true + offset modulo k."""
    with ctx.workprec(4 * WORD_BITS):
        lie = 1 / (exact_ball(epsilon).exp() + (categories - 1))
        above = [(j * lie * 2**WORD_BITS).ceil().unique_fmpz() for j in range(categories - 1, 0, -1)]
    return np.array([2**WORD_BITS - int(distance) for distance in above], dtype=np.uint64)


def _checked_categories(value: int) -> int:
    """Return the number of categories, or raise CV-P106."""
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MOST_CATEGORIES:
        raise refusal("CV-P106", most_categories=MOST_CATEGORIES, value=value)
    return value
