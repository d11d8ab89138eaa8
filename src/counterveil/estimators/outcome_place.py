"""Where outcomes lie and how far from their centre, concluded from two noisy histograms of them alone.

The first histogram counts outcomes in cells of their declared range; its median is their centre. The second
counts them by their distance from that centre, in octaves (each reaches twice as far as the one before,
`rows/outcome_histograms.py`). With p_k the share of octave k and d_k how far from the centre its outcomes
lie,

    sd^2 = sum_k p_k d_k^2,    half-width of the place = 1.5 sd.

In: noisy counts, the standard deviation of their noise and the public number of people. Out: a `Spread`:
centre and half-width in whole steps of the declared range (2^24 of them), distances and sd in halves of the
range, shares, and shares that noise may hide farther off.

A row moves a histogram by at most 2, as it leaves one cell and enters another: `rows/histogram.proof.md`. All
else is post-processing: the constants say how noisy counts are read and set lengths of intervals, and privacy
does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS
from counterveil.estimators.histogram import outcomes_at_ends
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.privacy.provenance import Quantity
from counterveil.rows.outcome_histograms import CELLS, OCTAVE_EDGES, OCTAVES, OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE, Place
from counterveil.session import Gate

# Releases and their parts of what the place costs.
PLACES = {"centre": Fraction(1, 3), "spread": Fraction(2, 3)}
PLACE_QUANTITIES = {"centre": Quantity.OUTCOME_HISTOGRAM, "spread": Quantity.OUTCOME_DISTANCES}
# Outcomes of a cell: where they lie on average, in parts of its end; the innermost cell begins at the centre.
_WITHIN = 0.72
_INNERMOST = 0.55
# A tail is there, or is there almost surely, where it exceeds its noise so far, in standard deviations of the noise.
_SURE = 1.6
_CERTAIN = 2.5
# What noise may hide beyond the last sure octave, in the same.
_HIDDEN = 0.5
# The half-width of the place of outcomes, in their standard deviations.
_HALF_WIDTH_SDS = 1.5
# What a count is at least where noise left none: shares divide by their sum.
_LEAST_COUNT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Octaves:
    """Noisy counts of outcomes by their distance from the centre, and the standard deviation of their noise.

    Numbers of all rows are known: the counts add up to them. `at_end` says that most lie at an end of the
    range, `crowds` how many at each.
    """

    counts: Floats
    sd: float
    at_end: bool
    crowds: OutcomesAtEnds

    def tails(self) -> tuple[Floats, Floats]:
        """Return the counts from each octave on, and the standard deviation of each."""
        before = np.arange(len(self.counts))
        # The counts add up to the number of people: the noise of a tail is that of a bridge.
        factors = np.sqrt(before * (len(before) - before) / len(before))
        return np.cumsum(self.counts[::-1])[::-1], self.sd * factors

    def shares(self, sure: float = _SURE) -> Floats:
        """Return shares of outcomes in the octaves, with those that noise may hide in the one after the last sure one.

        A tail is `sure` where it exceeds so many standard deviations of its noise.
        """
        counts, tails, sds = self._up_to(sure)
        if len(tails):
            counts[-len(tails)] = max(float(tails[0]), 0.0) + _HIDDEN * float(sds[0])
        return np.asarray(counts / counts.sum())

    def certain(self) -> tuple[Floats, Floats]:
        """Return shares of outcomes that are there almost surely, and of those that noise may hide anywhere beyond."""
        counts, tails, _ = self._up_to(_CERTAIN)
        hidden = np.zeros(len(counts))
        if len(tails):
            hidden[-len(tails) :] = self.sd / sqrt(len(tails))
            hidden[-len(tails)] += max(float(tails[0]), 0.0)
        return counts / counts.sum(), hidden / counts.sum()

    def _up_to(self, sure: float) -> tuple[Floats, Floats, Floats]:
        """Return outcomes up to the last sure octave, and the tails beyond it with their standard deviations."""
        tails, sds = self.tails()
        top = int(np.flatnonzero(tails > sure * sds + 0.5).max())
        counts = np.maximum(self.counts, 0.0)
        counts[top] = max(counts[top], float(tails[top]), _LEAST_COUNT)
        counts[top + 1 :] = 0.0
        return counts, tails[top + 1 :], sds[top + 1 :]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The place of outcomes, their standard deviation, and the shares of outcomes by their distance from the centre.

    Everything is in halves of the declared range. `distances` is None where outcomes are not searched.
    `hidden` are shares of outcomes that noise may hide farther off: nothing is computed from them but what a
    clip may lose. `ends` says how many crowd at the ends.
    """

    place: Place
    sd: float
    distances: Floats | None = None
    shares: Floats | None = None
    hidden: Floats | None = None
    ends: OutcomesAtEnds | None = None

    @property
    def centre(self) -> float:
        """The centre of the place; the middle of the range is 0."""
        return self.place.centre / WHOLE.half_width - 1.0

    @property
    def half_width(self) -> float:
        """How far outcomes lie from the centre at most, in units of half the declared range."""
        return self.place.half_width / WHOLE.half_width

    @property
    def stretch(self) -> float:
        """The slope of outcomes on outcomes clipped to the half-width: how much longer they are on average."""
        if self.distances is None or self.shares is None:
            return 1.0
        clipped = np.minimum(self.distances, self.half_width)
        return float(self.shares @ (clipped * self.distances)) / float(self.shares @ clipped**2)


# Ends of the octaves in steps, and in halves of the range; and how far from the centre outcomes of an octave lie.
ENDS = np.array([*OCTAVE_EDGES, OUTCOME_STEPS]) / WHOLE.half_width
DISTANCES = ENDS * np.array([_INNERMOST, *[_WITHIN] * (OCTAVES - 1)])


def count_octaves(gate: Gate, histograms: OutcomeHistograms, people: int) -> tuple[int, Octaves]:
    """Return the centre of the outcomes of so many people and the octaves of their distances, from two releases."""
    cells = histograms.release_cells(gate)
    centre, at_end = _centre(cells.floats(), sqrt(cells.variance), OUTCOME_STEPS // CELLS)
    crowds = outcomes_at_ends(cells.floats(), sqrt(cells.variance), people, histograms.pure)
    octaves = histograms.release_octaves(gate, centre)
    noisy = octaves.floats()
    # The number of people is public: the counts add up to it.
    noisy += (people - noisy.sum()) / OCTAVES
    return centre, Octaves(noisy, sqrt(octaves.variance), at_end, crowds)


def find_place(gate: Gate, histograms: OutcomeHistograms, people: int) -> Spread:
    """Return the place of outcomes from two releases: their cells, then octaves of the distance from the centre."""
    centre, octaves = count_octaves(gate, histograms, people)
    shares, hidden = octaves.certain()
    sd = sqrt(float(shares @ DISTANCES**2))
    half_width = max(int(min(_HALF_WIDTH_SDS * sd, 2.0) * WHOLE.half_width), 1)
    return Spread(
        place=Place(centre, half_width),
        sd=sd,
        distances=DISTANCES,
        shares=shares,
        hidden=hidden,
        ends=octaves.crowds,
    )


def _centre(noisy: Floats, sd: float, width: int) -> tuple[int, bool]:
    """Return the median of the cells in steps, or the end of the range where most lie, and whether they do."""
    filled = np.where(noisy > 2 * sd, noisy, 0.0)
    filled = filled if filled.any() else np.maximum(noisy, 0.0) + _LEAST_COUNT
    total = float(filled.sum())
    for cell, end in ((0, 0), (len(noisy) - 1, OUTCOME_STEPS)):
        if filled[cell] > total / 2:
            return end, True
    cumulated = np.cumsum(filled)
    cell = int(np.searchsorted(cumulated, total / 2))
    inside = (total / 2 - (cumulated[cell] - filled[cell])) / filled[cell]
    return int((cell + min(max(inside, 0.0), 1.0)) * width), False
