"""Where outcomes lie and how far they reach, from two noisy histograms of them alone.

Proof: `statistics/histogram.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Backend, Sums, Table
from counterveil.numerics.arrays import Floats, Integers
from counterveil.session import Gate, Kind
from counterveil.statistics.histogram import release_counts

# Fractional digits of outcomes around their centre.
OUTCOME_BITS = 16
# Releases and their parts of what the place costs.
PLACES = {"centre": Fraction(1, 3), "spread": Fraction(2, 3)}
PLACE_KINDS = dict.fromkeys(PLACES, Kind.CELLS)
PLACE_WORDS = {
    "centre": "histogram of the outcome over its range",
    "spread": "histogram of distances from the outcomes' centre",
}
_CELLS, _OCTAVES = 32, 8
# Outcomes of a cell: where they lie on average, in parts of its end; the innermost cell begins at the centre.
_WITHIN, _INNERMOST = 0.72, 0.55
# A tail is there where it exceeds its noise so far; what noise may hide beyond it, in standard deviations of the noise.
_SURE, _HIDDEN = 1.6, 0.5
# The part of outcomes within the reach, and the least reach in standard deviations.
_REACHED, _LEAST_REACH = 0.95, 1.5


@dataclass(frozen=True, slots=True)
class Place:
    """Where outcomes lie: the centre and the reach around it, in whole steps of the outcome."""

    centre: int
    reach: int

    def fixed(self, outcome: Integers) -> Integers:
        """Return outcomes from the centre on, in parts 2**-16 of the reach, clipped to [-1, 1] and rounded."""
        moved = ((outcome - self.centre) << (OUTCOME_BITS + 1)) + self.reach
        return np.asarray(np.clip(moved // (2 * self.reach), -(1 << OUTCOME_BITS), 1 << OUTCOME_BITS))


WHOLE = Place(OUTCOME_STEPS // 2, OUTCOME_STEPS // 2)


@dataclass(frozen=True, slots=True, eq=False)
class Octaves:
    """Noisy counts of outcomes by their distance from the centre, and the standard deviation of their noise.

    Numbers of all rows are known: the counts add up to them. `at_end` says that most lie at an end of the range.
    """

    counts: Floats
    sd: float
    at_end: bool

    def tails(self) -> tuple[Floats, Floats]:
        """Return the counts from each octave on, and the standard deviation of each."""
        before = np.arange(len(self.counts))
        known = np.sqrt(before * (len(before) - before) / len(before))
        return np.cumsum(self.counts[::-1])[::-1], self.sd * known

    def shares(self, anywhere: bool, sure: float = _SURE) -> Floats:
        """Return shares of outcomes in the octaves, with those that noise may hide beyond the last sure one.

        A tail is `sure` where it exceeds so many standard deviations of its noise. What is hidden may lie `anywhere`
        beyond, or in the next octave.
        """
        tails, sds = self.tails()
        top = int(np.flatnonzero(tails > sure * sds + 0.5).max())
        found = np.maximum(self.counts, 0.0)
        found[top] = max(found[top], float(tails[top]), 1e-9)
        found[top + 1 :] = 0.0
        beyond = len(found) - top - 1
        if beyond and anywhere:
            found[top + 1 :] = self.sd / sqrt(beyond)
        elif beyond:
            found[top + 1] = max(float(tails[top + 1]), 0.0) + _HIDDEN * float(sds[top + 1])
        return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The place of outcomes, their standard deviation, and the shares of outcomes by their distance from the centre.

    Everything is in halves of the declared range. `distances` is None where outcomes are not searched.
    """

    place: Place
    sd: float
    distances: Floats | None = None
    shares: Floats | None = None

    @property
    def centre(self) -> float:
        """The centre of the place; the middle of the range is 0."""
        return self.place.centre / WHOLE.reach - 1.0

    @property
    def reach(self) -> float:
        """How far outcomes reach from the centre."""
        return self.place.reach / WHOLE.reach


# Ends of the octaves in steps, and in halves of the range; and how far from the centre outcomes of an octave lie.
_EDGES = [OUTCOME_STEPS >> k for k in range(_OCTAVES - 1, 0, -1)]
ENDS = np.array([*_EDGES, OUTCOME_STEPS]) / WHOLE.reach
DISTANCES = ENDS * np.array([_INNERMOST, *[_WITHIN] * (_OCTAVES - 1)])


def count_octaves(gate: Gate, source: Backend, pure: bool = True) -> tuple[int, Octaves]:
    """Return the centre of outcomes and the octaves of their distances from it, from two releases."""
    cells = release_counts(gate, "centre", partial(_counted, source, _cells), pure)
    centre, at_end = _centre(cells.floats(), sqrt(cells.variance), OUTCOME_STEPS // _CELLS)
    by_distance = partial(_octaves, centre=centre)
    octaves = release_counts(gate, "spread", partial(_counted, source, by_distance), pure)
    noisy = octaves.floats()
    noisy += (source.rows - noisy.sum()) / _OCTAVES
    return centre, Octaves(noisy, sqrt(octaves.variance), at_end)


def find_place(gate: Gate, source: Backend) -> Spread:
    """Return the place of outcomes from two releases: their cells, then octaves of the distance from the centre."""
    centre, octaves = count_octaves(gate, source)
    # Few outcomes that noise hides may lie at the far end of the range: what clipping them loses is part of the error.
    shares = octaves.shares(anywhere=True)
    sd = sqrt(float(shares @ DISTANCES**2))
    body = ENDS[min(int(np.searchsorted(np.cumsum(shares), _REACHED)), _OCTAVES - 1)]
    reach = min(max(float(body), _LEAST_REACH * sd), 2.0)
    return Spread(Place(centre, max(int(reach * WHOLE.reach), 1)), sd, DISTANCES, shares)


def _counted(source: Backend, count: Callable[[Integers], Integers]) -> list[int]:
    return [int(each) for each in source.run(partial(_counts, count=count))[0]]


def _counts(block: Table, count: Callable[[Integers], Integers]) -> Sums:
    return (count(block.outcome),)


def _cells(outcome: Integers) -> Integers:
    places = np.minimum(outcome // (OUTCOME_STEPS // _CELLS), _CELLS - 1)
    return np.bincount(places, minlength=_CELLS)


def _octaves(outcome: Integers, centre: int) -> Integers:
    return np.bincount(np.searchsorted(_EDGES, np.abs(outcome - centre)), minlength=_OCTAVES)


def _centre(noisy: Floats, sd: float, width: int) -> tuple[int, bool]:
    """Return the median of the cells in steps, or the end of the range where most lie, and whether they do."""
    filled = np.where(noisy > 2 * sd, noisy, 0.0)
    filled = filled if filled.any() else np.maximum(noisy, 0.0) + 1e-9
    total = float(filled.sum())
    for cell, end in ((0, 0), (len(noisy) - 1, OUTCOME_STEPS)):
        if filled[cell] > total / 2:
            return end, True
    cumulated = np.cumsum(filled)
    cell = int(np.searchsorted(cumulated, total / 2))
    inside = (total / 2 - (cumulated[cell] - filled[cell])) / filled[cell]
    return int((cell + min(max(inside, 0.0), 1.0)) * width), False
