"""The counts of all strata, and the largest discounted value over the counts that k replacements can reach.

Proof: `stratum_counts.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError

Integers = NDArray[np.int64]

# Two counts share one 64-bit key.
COUNT_BITS = 31
# Doubles are wrong by less than 2^-44 (proof page): this much smoothness is held back, this much is added.
SMOOTHNESS_MARGIN = Fraction(1, 2**37)
VALUE_MARGIN = Fraction(1, 2**42)
SMALLEST_SMOOTHNESS = Fraction(1, 2**20)
LARGEST_SMOOTHNESS = Fraction(64)


@dataclass(frozen=True, slots=True, eq=False)
class StratumCounts:
    """The distinct (treated, control) counts over all public strata, empty ones included.

    `many` says how many strata have these counts; `rows` is the public number of rows.
    """

    treated: Integers
    control: Integers
    many: Integers
    rows: int

    @classmethod
    def of(cls, treated: Integers, control: Integers, public: int) -> StratumCounts:
        """Return the counts of a layout of `public` strata, those not listed being empty."""
        rows = int(treated.sum()) + int(control.sum())
        if rows >= 1 << COUNT_BITS:
            raise ParameterError(
                "CV-P322",
                "there are too many rows for the bound of the stratified effect",
                expected=f"fewer than {1 << COUNT_BITS} rows",
                got=f"{rows} rows",
                fix="split the table into sites and combine their results",
            )
        key, many = np.unique((treated << COUNT_BITS) | control, return_counts=True)
        if public > len(treated):
            empty = public - len(treated)
            if len(key) and key[0] == 0:
                many[0] += empty
            else:
                key, many = np.append(0, key), np.append(empty, many)
        return cls(key >> COUNT_BITS, key & ((1 << COUNT_BITS) - 1), many.astype(np.int64), rows)

    def twice(self) -> tuple[Integers, Integers]:
        """Return the treated and control counts, those of several strata twice: a pair of strata needs no more."""
        again = self.many > 1
        return np.append(self.treated, self.treated[again]), np.append(self.control, self.control[again])


def two_fronts(own: Integers, opp: Integers) -> Integers:
    """Return the places of all pairs but those for which two others have no more own and no less opp."""
    if not len(own):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort((own << COUNT_BITS) | ((1 << COUNT_BITS) - 1 - opp), kind="stable")
    first = _front(opp[order])
    return np.append(order[first], order[~first][_front(opp[order[~first]])])


def _front(opp: Integers) -> NDArray[np.bool_]:
    # In ascending order of own, a pair is on the front if its opp exceeds all before it.
    before = np.append(-1, np.maximum.accumulate(opp)[:-1]) if len(opp) else opp
    return np.asarray(opp > before)


def smooth_bound(
    value: Callable[[int, float], float], largest: float, last: int, smoothness: Fraction
) -> Fraction:
    """Return an upper bound of max over k <= last of e^(-k g) value(k), smooth to the full smoothness.

    `value(k, floor)` does not fall in k nor exceed `largest`; where it is at most `floor`, any number up
    to `floor` will do.
    """
    if not SMALLEST_SMOOTHNESS <= smoothness <= LARGEST_SMOOTHNESS:
        raise ParameterError(
            "CV-P321",
            "the smoothness is out of the range in which its rounding is proved harmless",
            expected=f"{SMALLEST_SMOOTHNESS} <= smoothness <= {LARGEST_SMOOTHNESS}",
            got=f"smoothness={smoothness}",
            fix="use a smoothness of about epsilon / 10, chosen without looking at the data",
        )
    found = largest_discounted(value, largest, last, float(smoothness - SMOOTHNESS_MARGIN))
    return Fraction(found) * (1 + VALUE_MARGIN)


def largest_discounted(
    value: Callable[[int, float], float], largest: float, last: int, smoothness: float
) -> float:
    """Return max over 0 <= k <= last of e^(-k smoothness) value(k), looking only where it can lie."""
    best = value(0, 0.0)
    blocks: list[tuple[int, int, float]] = []

    def look(k: int, left: int) -> float:
        nonlocal best
        found = value(k, best * exp((left + 1) * smoothness))
        best = max(best, exp(-k * smoothness) * found)
        return found

    left = 0
    while left < last and exp(-(left + 1) * smoothness) * largest > best:
        right = min(max(1, 2 * left), last)
        blocks.append((left, right, look(right, left)))
        left = right
    while blocks:
        left, right, at_right = blocks.pop()
        # Inside a block no discount is weaker than its first and no value above its last.
        if right - left > 1 and exp(-(left + 1) * smoothness) * at_right > best:
            middle = (left + right) // 2
            at_middle = look(middle, left)
            blocks += [(left, middle, at_middle), (middle, right, at_right)]
    return best
