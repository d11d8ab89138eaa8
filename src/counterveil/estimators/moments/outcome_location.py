"""Where private outcomes lie in their declared range, from two noisy histograms: centre, scale and tails.

In: private rows, through a gate that adds noise to counts; the number of rows n is public. Out: an
`OutcomeLocation`, made of noisy counts alone. Units are half the declared range around its middle, so that
outcomes are in [-1, 1].

1. The first histogram has `cells` cells of one width in [-1, 1]. From either end counts are added up; the
   interval [low, high] begins a cell before the first j cells (or the last j) hold more than
   0.003 n + 3.3 s sqrt(j), s being the standard deviation of the noise of one count.
2. The second has `cells` narrow cells in [low, high] and cells outside of it that double in width. With c_j
   its noisy counts, m_j the middles of cells and q_j = c_j / (sum of sure c_j) where c_j > 3.3 s ("sure"),
   else 0,

    centre = sum q_j m_j,    scale^2 = sum q_j (m_j - centre)^2 + what the other narrow cells add together.

What noise may hide farther out is kept as `HiddenOutcomes`, so that a later clip can be priced by what it may
cut off. Where counts cannot tell (two values at the ends, nearly all outcomes in one cell) the answer is
`ANYWHERE`: no outcome is clipped.

Why it is private: a row is in one cell, so that replacing it moves two counts by one each. Edges of the first
histogram are public, those of the second are a function of the first one's noisy counts and of nothing else,
so that both compose; all else is post-processing. Proof: `rows/histogram.proof.md`.

The plan of a method names each of its releases and the part of the privacy budget that it pays; here they are
the two of `HISTOGRAMS`. The constants were set on the tuning designs of
`experiments/record_effect/RESULTS.md`. They steer clips and the length of intervals; privacy does not depend
on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.histogram import outcomes_at_ends
from counterveil.numerics.arrays import Floats
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.rows.moments.outcome_counts import release_outcome_counts
from counterveil.rows.records import Records
from counterveil.session import Gate

# Names of the two histograms in the plan (the list of releases and their parts of the privacy budget).
HISTOGRAMS = ("place 1", "place 2")
# Part of the outcomes that may lie outside the interval of the second histogram.
_OUTSIDE = 0.003
# Counts of this many standard deviations of their noise are taken to be people.
_SURE_SDS = 3.3
# A count at an end of the range is people from this many standard deviations of its noise on.
_END_SDS = 4.0
# Nobody is between both ends where the sizes of all counts there add up to less than this many, times the root of
# their number.
_BETWEEN_SDS = 8.0
# Counts within which nearly everyone lies stand out of this many standard deviations of their noise.
_SEEN_SDS = 2.0
# Tails are what lies beyond this many scales.
_TAIL_FROM = 3.0
# They are heavy where outcomes exceed that by this many scales on average.
_HEAVY = 0.01
# Outcomes are uneven from this skewness on.
_UNEVEN = 0.9
# Outcomes may be one value and a few others that noise hides where a cell of the second histogram holds more
# than this part of them,
_ONE_CELL = 0.75
# or where their standard deviation is less than this part of a cell.
_RESOLVED = 0.4
# Outcomes are far out from this many scales on.
_FAR_OUT = 4.0
# Cells outside the interval of the second histogram are each twice as wide as the one before, so many times
# at most.
_DOUBLINGS = 11


@dataclass(frozen=True, slots=True, eq=False)
class HiddenOutcomes:
    """Cells far out, in which noise may hide outcomes.

    Attributes
    ----------
    distances : ndarray of shape (cells,)
        From the centre of the outcomes, in half ranges.
    shares : ndarray of shape (cells,)
        Noisy shares of all rows.
    sd : float
        Standard deviation of the noise of a share.
    """

    distances: Floats
    shares: Floats
    sd: float

    def lost(self, losses: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        """Return estimates of what is lost, (clips,), and their noise; `losses` returns losses (clips, distances)."""
        lost = losses(self.distances)
        return lost @ self.shares, self.sd * np.sqrt((lost**2).sum(axis=1))


@dataclass(frozen=True, slots=True)
class OutcomeLocation:
    """Where the outcomes lie, in half ranges around the middle of the range.

    Attributes
    ----------
    centre, scale : float
        Their mean and standard deviation, as far as noise lets see.
    tail : float
        Mean of what exceeds three scales from the centre, in scales.
    farthest : float
        How far the farthest lie, in scales.
    skew : float
        Their skewness.
    whole : bool
        Whether they may lie anywhere in the range, so that nothing is cut off.
    hidden : HiddenOutcomes or None
        Cells farther off, where noise may hide some.
    ends : OutcomesAtEnds or None
        How many crowd at the ends of the range.
    """

    centre: float
    scale: float
    tail: float
    farthest: float
    skew: float = 0.0
    whole: bool = False
    hidden: HiddenOutcomes | None = None
    ends: OutcomesAtEnds | None = None

    @property
    def uneven(self) -> bool:
        """Whether clipping would cut off more on one side than on the other."""
        return self.heavy or self.whole or abs(self.skew) > _UNEVEN

    @property
    def heavy(self) -> bool:
        """Whether few people, far out, carry much of the outcome."""
        return self.tail > _HEAVY


# Where no search is paid for, or noise may hide outcomes that matter.
ANYWHERE = OutcomeLocation(0.0, 1.0, 0.0, 1.0, whole=True)


@dataclass(frozen=True, slots=True)
class _Histogram:
    """Noisy counts of outcomes.

    Attributes
    ----------
    counts, sd : ndarray of shape (cells,), float
        Noisy counts, and the standard deviation of the noise of one.
    edges : ndarray of shape (cells + 1,)
        Ends of cells, in half ranges.
    near : slice
        The cells of one width; those outside double in width.
    rows : int
        Number of all rows.
    """

    counts: Floats
    sd: float
    edges: Floats
    near: slice
    rows: int


def locate_outcomes(gate: Gate, records: Records, pure: bool, cells: int) -> OutcomeLocation:
    """Return where the outcomes lie, from two histograms, the second one narrower where the first is full.

    Noise is Laplace's where `pure` (epsilon-DP), else Gaussian. Edges of the second histogram depend on the
    released counts of the first and on no row.
    """
    first = _released(
        gate, HISTOGRAMS[0], records, edges=np.linspace(-1.0, 1.0, cells + 1), near=slice(0, cells), pure=pure
    )
    ends = outcomes_at_ends(first.counts, first.sd, records.count, pure)
    edges, near = _zoomed(*_filled(first), cells)
    location = _location(_released(gate, HISTOGRAMS[1], records, edges=edges, near=near, pure=pure))
    # Outcomes of two values lie at the ends.
    return location if location is ANYWHERE else replace(location, ends=ends)


def _released(gate: Gate, name: str, records: Records, edges: Floats, near: slice, pure: bool) -> _Histogram:
    released = release_outcome_counts(gate, name, records, edges=edges, pure=pure)
    return _Histogram(
        counts=released.floats(), sd=sqrt(released.variance), edges=edges, near=near, rows=records.count
    )


def _zoomed(low: float, high: float, cells: int) -> tuple[Floats, slice]:
    """Return edges of cells of one width between these ends, and beyond them of widths that double; which are near."""
    middle = (low + high) / 2
    steps = (high - low) / 2 * 2.0 ** np.arange(1, _DOUBLINGS + 1)
    below = (middle - steps)[::-1]
    above = middle + steps
    below = np.append(-1.0, below[below > -1]) if low > -1 else below[:0]
    above = np.append(above[above < 1], 1.0) if high < 1 else above[:0]
    edges = np.concatenate([below, np.linspace(low, high, cells + 1), above])
    return edges, slice(len(below), len(below) + cells)


def _filled(histogram: _Histogram) -> tuple[float, float]:
    """Return the ends of the cells that hold nearly all rows, with a cell more on either side."""
    counts = histogram.counts
    cells = len(counts)
    bound = _OUTSIDE * histogram.rows + _SURE_SDS * histogram.sd * np.sqrt(np.arange(1, cells + 1))
    first = int(np.argmax(np.append(np.cumsum(counts) > bound, True)))
    last = cells - int(np.argmax(np.append(np.cumsum(counts[::-1]) > bound, True)))
    if first >= last:
        first, last = 0, cells
    return float(histogram.edges[max(first - 1, 0)]), float(histogram.edges[min(last + 1, cells)])


def _location(histogram: _Histogram) -> OutcomeLocation:
    """Return mean and standard deviation of the cells that noise cannot explain.

    Where these are two values or hardly more than one cell, outcomes that noise hides may have most of the
    variance: they may lie anywhere in the range.
    """
    counts = histogram.counts
    sd = histogram.sd
    near = histogram.near
    rows = histogram.rows
    middles = (histogram.edges[1:] + histogram.edges[:-1]) / 2
    width = float(np.diff(histogram.edges[near.start : near.stop + 1])[0])
    sure = counts > _SURE_SDS * sd
    weights = np.where(sure, counts, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(counts), 1 / len(counts))
    centre = float(weights @ middles)
    # What cells hold that noise hides one by one counts together, the less the more noise there is in that.
    unsure = np.zeros(len(counts))
    unsure[near] = (counts / rows - weights)[near]

    def in_unsure_cells(moment: Floats, typical: float) -> float:
        noise_sd = sd / rows * float(np.linalg.norm(moment[near]))
        return float(unsure @ moment) / (1 + (noise_sd / typical) ** 2)

    variance = max(float(weights @ (middles - centre) ** 2), width**2 / 12)
    scale = sqrt(variance + max(in_unsure_cells((middles - centre) ** 2, variance), 0.0))
    two_valued = _is_two_valued(counts, sd)
    if two_valued or scale < _RESOLVED * width or counts.max() > _ONE_CELL * counts.sum():
        fullest = int(counts.argmax())
        others = np.arange(len(counts)) != fullest
        distances = np.abs(middles - middles[fullest])[others]
        hidden = HiddenOutcomes(distances, counts[others] / rows, sd / rows)
        return ANYWHERE if two_valued else replace(ANYWHERE, hidden=hidden)
    z = (middles - centre) / scale
    size = np.abs(z)
    outside = size > _FAR_OUT
    outside[near] &= ~(np.logical_or.accumulate(sure) & np.logical_or.accumulate(sure[::-1])[::-1])[near]
    return OutcomeLocation(
        centre=centre,
        scale=scale,
        tail=float(weights @ np.maximum(size - _TAIL_FROM, 0.0)),
        farthest=float(size[_seen(counts, sd)].max(initial=0.0)),
        skew=float(weights @ z**3) + in_unsure_cells(z**3, 1.0),
        hidden=HiddenOutcomes(size[outside] * scale, counts[outside] / rows, sd / rows),
    )


def _is_two_valued(counts: Floats, sd: float) -> bool:
    """Return whether outcomes are at both ends of the range and nowhere between, as far as noise lets see."""
    at_both_ends = bool(counts[0] > _END_SDS * sd and counts[-1] > _END_SDS * sd)
    return at_both_ends and float(np.abs(counts[1:-1]).sum()) < _BETWEEN_SDS * sd * sqrt(len(counts))


def _seen(counts: Floats, sd: float) -> NDArray[np.bool_]:
    """Return the cells within which nearly everyone is, as far as noise lets see: beyond them there is none left."""
    noise = _SEEN_SDS * sd * np.sqrt(np.arange(1, len(counts) + 1))
    below = np.cumsum(counts) > noise
    above = np.cumsum(counts[::-1]) > noise
    inside = np.logical_or.accumulate(below) & np.logical_or.accumulate(above)[::-1]
    return np.asarray(inside)
