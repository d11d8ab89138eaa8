"""Where outcomes lie and how far they reach, from two noisy histograms of them alone.

Proof: `statistics/histogram.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS
from counterveil.numerics.arrays import Floats, Integers
from counterveil.session import Gate, Kind
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.pairs.rows import WHOLE, Place

# Releases and their parts of what the place costs.
PLACES = {"centre": Fraction(1, 3), "spread": Fraction(2, 3)}
PLACE_KINDS = dict.fromkeys(PLACES, Kind.CELLS)
_CELLS, _OCTAVES = 32, 8
# Outcomes of a cell: where they lie on average, in parts of its end; the innermost cell begins at the centre.
_WITHIN, _INNERMOST = 0.72, 0.55
# A tail is there where it exceeds its noise so far; what noise may hide beyond it, in standard deviations of the noise.
_SURE, _HIDDEN = 1.6, 0.35
# The part of outcomes within the reach, and the least reach in standard deviations.
_REACHED, _LEAST_REACH = 0.95, 1.5


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


def find_place(gate: Gate, outcome: Integers) -> Spread:
    """Return the place of outcomes from two releases: their cells, then octaves of the distance from the centre."""
    width = OUTCOME_STEPS // _CELLS
    cells = release_counts(
        gate,
        "centre",
        lambda: np.bincount(np.minimum(outcome // width, _CELLS - 1), minlength=_CELLS).tolist(),
        pure=True,
    )
    centre, at_end = _centre(cells.floats(), sqrt(cells.variance), width)
    edges = [OUTCOME_STEPS >> k for k in range(_OCTAVES - 1, 0, -1)]
    octaves = release_counts(
        gate,
        "spread",
        lambda: np.bincount(np.searchsorted(edges, np.abs(outcome - centre)), minlength=_OCTAVES).tolist(),
        pure=True,
    )
    ends = np.array([*edges, OUTCOME_STEPS]) / WHOLE.reach
    shares = _shares(octaves.floats(), sqrt(octaves.variance), at_end)
    distances = ends * _WITHIN
    distances[0] = ends[0] * _INNERMOST
    sd = sqrt(float(shares @ distances**2))
    body = ends[min(int(np.searchsorted(np.cumsum(shares), _REACHED)), _OCTAVES - 1)]
    reach = min(max(float(body), _LEAST_REACH * sd), 2.0)
    return Spread(Place(centre, max(int(reach * WHOLE.reach), 1)), sd, distances, shares)


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


def _shares(noisy: Floats, sd: float, at_end: bool) -> Floats:
    """Return shares of outcomes in the octaves, with those that noise may hide beyond the last sure one.

    Where most outcomes lie at an end of the range, what is hidden may lie anywhere beyond; else in the next octave.
    """
    count = len(noisy)
    tails = np.cumsum(noisy[::-1])[::-1]
    sure = np.flatnonzero(tails > _SURE * sd * np.sqrt(np.arange(count, 0, -1)) + 0.5)
    top = int(sure.max()) if len(sure) else count - 1
    found = np.maximum(noisy, 0.0)
    found[top] = max(found[top], float(tails[top]), 1e-9)
    found[top + 1 :] = 0.0
    beyond = count - top - 1
    if beyond and at_end:
        found[top + 1 :] = sd / sqrt(beyond)
    elif beyond:
        found[top + 1] = _HIDDEN * sd * sqrt(beyond)
    return np.asarray(found / found.sum())
