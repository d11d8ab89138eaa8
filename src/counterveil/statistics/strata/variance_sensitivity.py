"""How far one replaced row can move the estimates of the stratified effect's variance.

G is the sum over strata with both arms of h^2 (v_1/t + v_0/c), Q the sum over all cells (one arm of one
stratum, m rows) of m/(m-1) times the squares around the mean; a cell of one row has a quarter of the squared
range for its variance. Everything here is in units of B^2, outcomes lying in [0, B]: divided by N^2 it is
about the variance of the effect. Proof: `strata_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.strata import ROUNDING

# The counts of all strata, and the largest discounted value over the counts that k replacements can reach.


# Proof: stratum_counts.proof.md


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
    """Return max over 0 <= k <= last of e^(-k smoothness) value(k), searching only where it can lie."""
    best = value(0, 0.0)
    blocks: list[tuple[int, int, float]] = []

    def value_at(k: int, left: int) -> float:
        nonlocal best
        found = value(k, best * exp((left + 1) * smoothness))
        best = max(best, exp(-k * smoothness) * found)
        return found

    left = 0
    while left < last and exp(-(left + 1) * smoothness) * largest > best:
        right = min(max(1, 2 * left), last)
        blocks.append((left, right, value_at(right, left)))
        left = right
    while blocks:
        left, right, at_right = blocks.pop()
        # Inside a block no discount is weaker than its first and no value above its last.
        if right - left > 1 and exp(-(left + 1) * smoothness) * at_right > best:
            middle = (left + right) // 2
            at_middle = value_at(middle, left)
            blocks += [(left, middle, at_middle), (middle, right, at_right)]
    return best


# Proof: strata_variance.proof.md


# Cells of one table of strata and departures.
_TABLE = 1 << 20


def pooled_change(rows: int) -> Fraction:
    """Return the largest change of Q over all data sets of so many rows, in units of B^2."""
    return Fraction(5, 4) + 2 * ROUNDING * rows


def local_variance_change(counts: StratumCounts) -> float:
    """Return a bound on the change of G from these very data, in units of B^2; a private number."""
    return _Reach.of(counts).change(0, 0.0)


def smooth_variance_change(counts: StratumCounts, smoothness: Fraction) -> Fraction:
    """Return a smooth bound on the change of G, whatever the estimand, in units of B^2."""
    largest = counts.rows**2 / 2
    found = smooth_bound(_Reach.of(counts).change, largest, counts.rows, smoothness)
    return found + 2 * ROUNDING * counts.rows**2


@dataclass(frozen=True, slots=True)
class _Reach:
    """The cells that can matter, whatever k: few own rows and many of the other arm."""

    own: Integers
    opp: Integers
    rows: int

    @classmethod
    def of(cls, counts: StratumCounts) -> _Reach:
        treated, control = counts.twice()
        own, opp = np.append(treated, control), np.append(control, treated)
        places = two_fronts(own, opp)
        return cls(own[places], opp[places], counts.rows)

    def change(self, k: int, floor: float) -> float:
        """Return the bound on one replacement over all data sets that k replacements reach."""
        p = np.minimum(self.opp + k, self.rows - 1).astype(np.float64)
        left = self.own - (k + 1)
        up, down = _own_gain(left, p), _own_loss(left, p)
        other = self._other_arm(k)
        most_up, most_down = float(up.max(initial=0.0)), float(down.max(initial=0.0))
        largest = self.rows**2 / 2
        bound = most_up + most_down + other
        if bound > floor:
            gaining, losing = up + most_down + other > floor, down + most_up + other > floor
            shared = self._shared(k, p, np.flatnonzero(gaining), np.flatnonzero(losing))
            bound = max(most_up, shared) + other
        return min(bound, largest)

    def _other_arm(self, k: int) -> float:
        """Return the largest change of the other arm's part by an insertion into a matched stratum."""
        # Seen from the other arm: here few rows belong to it and many to the arm of the row inserted.
        p = np.maximum(self.own - (k + 1), 2)
        o = np.minimum(self.opp + k, self.rows - 1)
        return float((0.5 + (2 * o + 3) / (4 * (p - 1))).max(initial=0.0))

    def _shared(self, k: int, p: Floats, gaining: Integers, losing: Integers) -> float:
        """Return the largest gain of one cell and loss of another that share k + 1 departures."""
        if not len(gaining) or not len(losing):
            return 0.0
        own, best = self.own, 0.0
        ends = np.concatenate([[0, k + 1], own[gaining] - 1, k + 2 - own[losing], k + 3 - own[losing]])
        splits = np.unique(ends[(ends >= 0) & (ends <= k + 1)])[:, None]
        step = max(1, _TABLE // (len(gaining) + len(losing)))
        for start in range(0, len(splits), step):
            split = splits[start : start + step]
            up = _own_gain(own[gaining] - split, p[gaining])
            down = _own_loss(own[losing] - (k + 1 - split), p[losing])
            best = max(best, _two_cells(up, gaining, down, losing))
        return best


def _own_gain(o: Integers, p: Floats) -> Floats:
    """Return a bound on what a row inserted among o own rows adds to its own arm's part, p rows opposite."""
    return np.square(1 + p / np.maximum(o + 1, 2))


def _own_loss(o: Integers, p: Floats) -> Floats:
    """Return a bound on what it takes from that part."""
    o = np.maximum(o, 1)
    return np.asarray((1 + 2 * p + 2 * p * p / (o + 1)) / (4 * (np.maximum(o, 2) - 1)))


def _two_cells(up: Floats, gaining: Integers, down: Floats, losing: Integers) -> float:
    """Return the largest up + down in one line of the two tables, over different cells."""
    lines = np.arange(len(up))
    first, other = up.argmax(axis=1), down.argmax(axis=1)
    most_up, most_down = up[lines, first], down[lines, other]
    # Where both are largest in one cell, one of them has to be the second largest.
    next_up = np.where(gaining == gaining[first][:, None], 0.0, up).max(axis=1)
    next_down = np.where(losing == losing[other][:, None], 0.0, down).max(axis=1)
    mixed = np.maximum(next_up + most_down, most_up + next_down)
    same = gaining[first] == losing[other]
    return float(np.where(same, mixed, most_up + most_down).max())
