"""How far one replaced row can move the stratified effect and estimates of its variance, as counts of strata stand.

The statistic is the sum over strata with both arms of h (mean treated - mean control), with h the number of
rows (ATE), of treated (ATT) or of controls (ATC), outcomes in [0, B], divided by the public number of rows N.
Changes of it are in units of B / N. Proof: `smooth_strata.proof.md`.

G is the sum over strata with both arms of h^2 (v_1/t + v_0/c), Q the sum over all cells (one arm of one
stratum, m rows) of m/(m-1) times the squares around the mean; a cell of one row has a quarter of the squared
range for its variance. Changes of these are in units of B^2: divided by N^2 it is about the variance of the effect.
Proof: `strata_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Estimand
from counterveil.rows.strata.statistics import ROUNDING

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
            raise refusal("CV-P322", count_bits=1 << COUNT_BITS, rows=rows)
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
        raise refusal(
            "CV-P321",
            smallest_smoothness=SMALLEST_SMOOTHNESS,
            largest_smoothness=LARGEST_SMOOTHNESS,
            smoothness=smoothness,
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


# Proof: smooth_strata.proof.md

# (alpha, beta) of a treated row, then of a control row: it weighs alpha + beta opp / own.
_WEIGHTS = {
    Estimand.ATE: ((1, 1), (1, 1)),
    Estimand.ATT: ((1, 0), (0, 1)),
    Estimand.ATC: ((0, 1), (1, 0)),
}
PAIRINGS = ("all", "single")
# Cells of one table of strata and departures.
_TABLE = 1 << 20
_NO_LIMIT = 1 << 40


def local_change(counts: StratumCounts, estimand: str, pairing: str) -> float:
    """Return a bound on the change under replacement of one row of these very data; a private number."""
    return _Reach.of(counts, estimand, pairing).change(0, 0.0)


def smooth_change(
    counts: StratumCounts,
    smoothness: Fraction,
    estimand: str,
    pairing: str,
    slack: Fraction = Fraction(0),
) -> Fraction:
    """Return a smooth bound on the change under replacement of one row, plus a public slack for rounding."""
    reach = _Reach.of(counts, estimand, pairing)
    return smooth_bound(reach.change, reach.largest, counts.rows, smoothness) + slack


def smooth_weight(
    counts: StratumCounts, smoothness: Fraction, estimand: str, slack: Fraction = Fraction(0)
) -> Fraction:
    """Return a smooth bound on every row's weight and on the change by one insertion or removal."""
    reach = _Reach.of(counts, estimand, "all")
    return smooth_bound(reach.weight, counts.rows + 1.0, counts.rows, smoothness) + slack


def global_change(rows: int, estimand: str, slack: Fraction = Fraction(0)) -> Fraction:
    """Return the largest change over all data sets of so many rows, plus a public slack for rounding."""
    if Estimand.parse(estimand) is not Estimand.ATE:
        return Fraction(max(rows - 1, 0)) + slack
    return Fraction(rows + 1 if rows > 2 else rows if rows == 2 else 0) + slack


@dataclass(frozen=True, slots=True)
class _Places:
    """One row each: a stratum seen from one arm, with that arm's alpha and beta."""

    stratum: Integers
    own: Integers
    opp: Integers
    alpha: Integers
    beta: Integers

    @classmethod
    def of(cls, parts: list[tuple[Integers, Integers, Integers, int, int]]) -> _Places:
        sizes = [len(part[0]) for part in parts]
        stratum, own, opp = (np.concatenate([part[column] for part in parts]) for column in range(3))
        alpha, beta = (np.repeat([part[column] for part in parts], sizes) for column in (3, 4))
        return cls(stratum, own, opp, alpha, beta)

    def __getitem__(self, chosen: NDArray[np.bool_] | slice) -> _Places:
        return _Places(
            self.stratum[chosen], self.own[chosen], self.opp[chosen], self.alpha[chosen], self.beta[chosen]
        )

    def removal(self, up: int, down: int | Integers, rows: int, pairing: str) -> Floats:
        """Return the largest change by a removal after `up` arrivals opposite and `down` departures."""
        none = self.own == 0
        o = np.maximum(1, self.own - down)
        p = np.minimum(self.opp + up - none, rows - o)
        # An arm without rows needs an arrival of its own before anyone can leave it.
        return self._value(p if up else np.where(none, 0, p), o, pairing)

    def insertion(self, up: int, down: int | Integers, rows: int, pairing: str) -> Floats:
        """Return the largest change by an insertion after `up` arrivals opposite and `down` departures."""
        o = np.maximum(0, self.own - down)
        return self._value(np.minimum(self.opp + up, rows - o), o + 1, pairing)

    def _value(self, p: Integers, o: Integers, pairing: str) -> Floats:
        if pairing == "all":
            share = p / o
        elif pairing == "single":
            share = (-(-p // o)).astype(np.float64)
        else:
            # A straight line above the ceiling, meeting it where p - 1 is a multiple of o.
            share = 1 + (p - 1) / o
        return np.where(p >= 1, self.alpha + self.beta * share, 0.0)


@dataclass(frozen=True, slots=True)
class _Reach:
    """The strata that can matter for a removal and for an insertion, whatever k."""

    removed: _Places
    inserted: _Places
    rows: int
    pairing: str
    largest: float
    # A change of arm within a stratum moves the effect by at most this above one removal or insertion.
    flip: int

    @classmethod
    def of(cls, counts: StratumCounts, estimand: str, pairing: str) -> _Reach:
        if pairing not in PAIRINGS:
            raise refusal("CV-P320", pairing=pairing)
        wanted = Estimand.parse(estimand)
        treated, control = counts.twice()
        removed, inserted = [], []
        for (own, opp), (alpha, beta) in zip(
            ((treated, control), (control, treated)), _WEIGHTS[wanted], strict=True
        ):
            for part in (own > 0, own == 0):
                places = np.flatnonzero(part)
                places = places[two_fronts(own[places], opp[places])]
                removed.append((places, own[places], opp[places], alpha, beta))
            places = two_fronts(own, opp)
            inserted.append((places, own[places], opp[places], alpha, beta))
        largest = float(global_change(counts.rows, wanted))
        flip = 2 if wanted is Estimand.ATE else 1
        return cls(_Places.of(removed), _Places.of(inserted), counts.rows, pairing, largest, flip)

    def change(self, k: int, floor: float) -> float:
        """Return the bound on one replacement over all data sets that k replacements reach."""
        rem, add = self._ends(k)
        apart = min(self.largest, rem + add)
        if apart <= floor:
            return apart
        within = max(rem, add) + self.flip if max(rem, add) > 0 else 0.0
        return min(apart, max(within, self._between(k, floor)))

    def weight(self, k: int, floor: float) -> float:
        """Return the bound on one insertion or removal over all data sets that k replacements reach."""
        del floor
        return max(self._ends(k))

    def _ends(self, k: int) -> tuple[float, float]:
        rem = self.removed.removal(k, k, self.rows, self.pairing)
        add = self.inserted.insertion(k, k, self.rows, self.pairing)
        return float(rem.max(initial=0.0)), float(add.max(initial=0.0))

    def _between(self, k: int, floor: float) -> float:
        """Return the bound on a move between two strata that share k arrivals and k departures."""
        pairing = "all" if self.pairing == "all" else "line"
        leave = self.removed.removal(k, k, _NO_LIMIT, pairing)
        enter = self.inserted.insertion(k, k, _NO_LIMIT, pairing)
        removed = self.removed[leave + enter.max(initial=0.0) > floor]
        inserted = self.inserted[enter + leave.max(initial=0.0) > floor]
        if not len(removed.own) or not len(inserted.own):
            return 0.0
        # For two given strata the departures are best spent on one of them until nothing is left to spend.
        ends = np.concatenate([[0, k], removed.own - 1, k - inserted.own])
        downs = np.unique(ends[(ends >= 0) & (ends <= k)])[:, None]
        step = max(1, _TABLE // (len(removed.own) + len(inserted.own)))
        best = 0.0
        for up in {0, min(1, k), min(2, k), max(0, k - 1), k}:
            for start in range(0, len(downs), step):
                down = downs[start : start + step]
                leave = removed.removal(up, down, _NO_LIMIT, pairing)
                enter = inserted.insertion(k - up, k - down, _NO_LIMIT, pairing)
                best = max(best, _two_strata(leave, removed.stratum, enter, inserted.stratum))
        return best


def _two_strata(leave: Floats, out: Integers, enter: Floats, into: Integers) -> float:
    """Return the largest leave + enter in one line of the two tables, over different strata or cells."""
    first, other = leave.argmax(axis=1), enter.argmax(axis=1)
    lines = np.arange(len(leave))
    most_out, most_in = leave[lines, first], enter[lines, other]
    # Where both are largest in one stratum, one of them has to be the second largest.
    next_out = np.where(out == out[first][:, None], 0.0, leave).max(axis=1)
    next_in = np.where(into == into[other][:, None], 0.0, enter).max(axis=1)
    same = out[first] == into[other]
    mixed = np.maximum(next_out + most_in, most_out + next_in)
    return float(np.where(same, mixed, most_out + most_in).max())


# Proof: strata_variance.proof.md
def pooled_change(rows: int) -> Fraction:
    """Return the largest change of Q over all data sets of so many rows, in units of B^2."""
    return Fraction(5, 4) + 2 * ROUNDING * rows


def local_variance_change(counts: StratumCounts) -> float:
    """Return a bound on the change of G from these very data, in units of B^2; a private number."""
    return _VarianceReach.of(counts).change(0, 0.0)


def smooth_variance_change(counts: StratumCounts, smoothness: Fraction) -> Fraction:
    """Return a smooth bound on the change of G, whatever the estimand, in units of B^2."""
    largest = counts.rows**2 / 2
    found = smooth_bound(_VarianceReach.of(counts).change, largest, counts.rows, smoothness)
    return found + 2 * ROUNDING * counts.rows**2


@dataclass(frozen=True, slots=True)
class _VarianceReach:
    """The cells that can matter, whatever k: few own rows and many of the other arm."""

    own: Integers
    opp: Integers
    rows: int

    @classmethod
    def of(cls, counts: StratumCounts) -> _VarianceReach:
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
            best = max(best, _two_strata(up, gaining, down, losing))
        return best


def _own_gain(o: Integers, p: Floats) -> Floats:
    """Return a bound on what a row inserted among o own rows adds to its own arm's part, p rows opposite."""
    return np.square(1 + p / np.maximum(o + 1, 2))


def _own_loss(o: Integers, p: Floats) -> Floats:
    """Return a bound on what it takes from that part."""
    o = np.maximum(o, 1)
    return np.asarray((1 + 2 * p + 2 * p * p / (o + 1)) / (4 * (np.maximum(o, 2) - 1)))
