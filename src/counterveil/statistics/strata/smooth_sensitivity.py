"""How far one replaced row can move the stratified effect, as the counts of the strata stand.

The statistic is the sum over strata with both arms of h (mean treated - mean control), with h the number of
rows (ATE), of treated (ATT) or of controls (ATC), outcomes in [0, B], divided by the public number of rows N.
Everything here is in units of B / N. Proof: `smooth_sensitivity.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import ParameterError
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Estimand
from counterveil.statistics.strata.variance_sensitivity import StratumCounts, smooth_bound, two_fronts

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
            raise ParameterError(
                "CV-P320",
                "there is no such pairing within strata",
                expected='"all" or "single"',
                got=f"pairing={pairing!r}",
                fix='use "all", the default: it needs no order of rows and less noise',
            )
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
    """Return the largest leave + enter in one line of the two tables, over different strata."""
    first, other = leave.argmax(axis=1), enter.argmax(axis=1)
    lines = np.arange(len(leave))
    most_out, most_in = leave[lines, first], enter[lines, other]
    # Where both are largest in one stratum, one of them has to be the second largest.
    next_out = np.where(out == out[first][:, None], 0.0, leave).max(axis=1)
    next_in = np.where(into == into[other][:, None], 0.0, enter).max(axis=1)
    same = out[first] == into[other]
    mixed = np.maximum(next_out + most_in, most_out + next_in)
    return float(np.where(same, mixed, most_out + most_in).max())
