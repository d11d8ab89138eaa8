"""How far one replaced row can move the estimates of the stratified effect's variance.

G is the sum over strata with both arms of h^2 (v_1/t + v_0/c), Q the sum over all cells (one arm of one
stratum, m rows) of m/(m-1) times the squares around the mean; a cell of one row has a quarter of the squared
range for its variance. Everything here is in units of B^2, outcomes lying in [0, B]: divided by N^2 it is
about the variance of the effect. Proof: `strata_variance.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.stratified import ROUNDING
from counterveil.sensitivity.stratum_counts import Integers, StratumCounts, smooth_bound, two_fronts

Floats = NDArray[np.float64]

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
