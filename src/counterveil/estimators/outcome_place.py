"""Where outcomes lie and how far from their centre, from two noisy histograms of them alone.

Proof: `rows/histogram.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Sums, Table
from counterveil.data.table import arm_sizes
from counterveil.estimators.histogram import outcomes_at_ends
from counterveil.numerics.arm_totals import Arm, cell_totals
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy.caveats import OutcomesAtEnds
from counterveil.rows.counts import release_counts
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.session import Gate

# Fractional digits of outcomes around their centre.
OUTCOME_BITS = 16
# Releases and their parts of what the place costs.
PLACES = {"centre": Fraction(1, 3), "spread": Fraction(2, 3)}
PLACE_WORDS = {
    "centre": "histogram of the outcome over its range",
    "spread": "histogram of distances from the outcomes' centre",
}
_CELLS, _OCTAVES = 32, 8
# Outcomes of a cell: where they lie on average, in parts of its end; the innermost cell begins at the centre.
_WITHIN, _INNERMOST = 0.72, 0.55
# A tail is there where it exceeds its noise so far; what noise may hide beyond it, in standard deviations of the noise.
_SURE, _CERTAIN, _HIDDEN = 1.6, 2.5, 0.5
# The half-width of the place of outcomes, in their standard deviations.
_HALF_WIDTH_SDS = 1.5


@dataclass(frozen=True, slots=True)
class Place:
    """Where outcomes lie: the centre and the half-width around it, in whole steps of the outcome."""

    centre: int
    half_width: int

    def fixed(self, outcome: Integers) -> Integers:
        """Return outcomes from the centre on, in parts 2**-16 of the half-width, clipped to [-1, 1] and rounded."""
        moved = ((outcome - self.centre) << (OUTCOME_BITS + 1)) + self.half_width
        return np.asarray(np.clip(moved // (2 * self.half_width), -(1 << OUTCOME_BITS), 1 << OUTCOME_BITS))


WHOLE = Place(OUTCOME_STEPS // 2, OUTCOME_STEPS // 2)


@dataclass(frozen=True, slots=True, eq=False)
class Octaves:
    """Noisy counts of outcomes by their distance from the centre, and the standard deviation of their noise.

    Numbers of all rows are known: the counts add up to them. `at_end` says that most lie at an end of the range,
    `crowds` how many at each.
    """

    counts: Floats
    sd: float
    at_end: bool
    crowds: OutcomesAtEnds

    def tails(self) -> tuple[Floats, Floats]:
        """Return the counts from each octave on, and the standard deviation of each."""
        before = np.arange(len(self.counts))
        known = np.sqrt(before * (len(before) - before) / len(before))
        return np.cumsum(self.counts[::-1])[::-1], self.sd * known

    def shares(self, sure: float = _SURE) -> Floats:
        """Return shares of outcomes in the octaves, with those that noise may hide in the one after the last sure one.

        A tail is `sure` where it exceeds so many standard deviations of its noise.
        """
        found, tails, sds = self._up_to(sure)
        if len(tails):
            found[-len(tails)] = max(float(tails[0]), 0.0) + _HIDDEN * float(sds[0])
        return np.asarray(found / found.sum())

    def certain(self) -> tuple[Floats, Floats]:
        """Return shares of outcomes that are there almost surely, and of those that noise may hide anywhere beyond."""
        found, tails, _ = self._up_to(_CERTAIN)
        hidden = np.zeros(len(found))
        if len(tails):
            hidden[-len(tails) :] = self.sd / sqrt(len(tails))
            hidden[-len(tails)] += max(float(tails[0]), 0.0)
        return found / found.sum(), hidden / found.sum()

    def _up_to(self, sure: float) -> tuple[Floats, Floats, Floats]:
        """Return outcomes up to the last sure octave, and the tails beyond it with their standard deviations."""
        tails, sds = self.tails()
        top = int(np.flatnonzero(tails > sure * sds + 0.5).max())
        found = np.maximum(self.counts, 0.0)
        found[top] = max(found[top], float(tails[top]), 1e-9)
        found[top + 1 :] = 0.0
        return found, tails[top + 1 :], sds[top + 1 :]


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The place of outcomes, their standard deviation, and the shares of outcomes by their distance from the centre.

    Everything is in halves of the declared range. `distances` is None where outcomes are not searched. `hidden` are
    shares of outcomes that noise may hide farther off: nothing is computed from them but what a clip may lose. `ends`
    says how many crowd at the ends.
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
_EDGES = [OUTCOME_STEPS >> k for k in range(_OCTAVES - 1, 0, -1)]
ENDS = np.array([*_EDGES, OUTCOME_STEPS]) / WHOLE.half_width
DISTANCES = ENDS * np.array([_INNERMOST, *[_WITHIN] * (_OCTAVES - 1)])


def count_octaves(gate: Gate, source: Backend, pure: bool = True, which: str = "") -> tuple[int, Octaves]:
    """Return the centre of outcomes and the octaves of their distances from it, from two releases of one outcome."""
    cells = release_counts(gate, f"centre{which}", partial(_counted, source, _cells), pure)
    centre, at_end = _centre(cells.floats(), sqrt(cells.variance), OUTCOME_STEPS // _CELLS)
    crowds = outcomes_at_ends(cells.floats(), sqrt(cells.variance), source.rows, pure)
    by_distance = partial(_octaves, centre=centre)
    octaves = release_counts(gate, f"spread{which}", partial(_counted, source, by_distance), pure)
    noisy = octaves.floats()
    noisy += (source.rows - noisy.sum()) / _OCTAVES
    return centre, Octaves(noisy, sqrt(octaves.variance), at_end, crowds)


def find_place(gate: Gate, source: Backend, pure: bool = True, which: str = "") -> Spread:
    """Return the place of outcomes from two releases: their cells, then octaves of the distance from the centre."""
    centre, octaves = count_octaves(gate, source, pure, which)
    shares, hidden = octaves.certain()
    sd = sqrt(float(shares @ DISTANCES**2))
    half_width = max(int(min(_HALF_WIDTH_SDS * sd, 2.0) * WHOLE.half_width), 1)
    return Spread(Place(centre, half_width), sd, DISTANCES, shares, hidden, octaves.crowds)


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


# Slopes are whole numbers of these parts.
SLOPE_PARTS = 16


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a study: names, ranges, and weights that one over their noise is in proportion to.

    `earlier` are the places among a table's measures of what was measured before, None where nothing was; `slopes`,
    released by then, say how many sixteenths of it are taken off the outcome.
    """

    names: tuple[str, ...]
    ranges: tuple[tuple[Fraction, Fraction], ...]
    weights: tuple[Fraction, ...]
    earlier: tuple[int | None, ...] = ()
    slopes: tuple[int, ...] = ()

    @property
    def measured_before(self) -> list[tuple[int, int]]:
        """The places of outcomes that were measured before, each with the place of that number."""
        return [(place, column) for place, column in enumerate(self.earlier) if column is not None]

    @property
    def widths(self) -> list[Fraction]:
        """The widths of the ranges of what is compared: outcomes, less what is taken off them."""
        slopes = self.slopes or (0,) * len(self.names)
        return [
            (high - low) * (1 + Fraction(slope, SLOPE_PARTS))
            for (low, high), slope in zip(self.ranges, slopes, strict=True)
        ]

    # Proof: earlier_values.proof.md
    def numbers(self, table: Table) -> list[NDArray[np.int64]]:
        """Return what is compared, in steps of its range: outcomes, less slopes times what was measured before."""
        found = [table.outcome, *table.measures[: len(self.names) - 1]]
        for place, column in self.measured_before if self.slopes else []:
            slope = self.slopes[place]
            above = slope * (OUTCOME_STEPS - table.measures[column])
            found[place] = (SLOPE_PARTS * found[place] + above) // (SLOPE_PARTS + slope)
        return found

    @property
    def _even(self) -> bool:
        return len(set(self.weights)) == 1

    def drawn(self, mechanism: str) -> str:
        """Return the noise that is drawn for a question's mechanism."""
        return "gaussian" if mechanism == "gaussian" else "box" if self._even else "staircase"

    def mechanisms(self, mechanism: str) -> tuple[str, ...]:
        """Return all noise that is drawn; moments with earlier numbers have equal weights, whatever outcomes have."""
        own = self.drawn(mechanism)
        return (own, "box") if self.slopes and own == "staircase" else (own,)

    def noise_factor(self, mechanism: str) -> float:
        """Return about how much more noise the first outcome has than it would have alone."""
        sizes = [float(weight / self.weights[0]) for weight in self.weights]
        if mechanism == "gaussian":
            return sqrt(sum(size**2 for size in sizes))
        count = len(sizes)
        return sqrt((count + 1) * (count + 2) / 6) if self._even else sum(sizes)


def totals_by_arm(source: Backend, outcomes: Outcomes) -> list[list[Arm]]:
    """Return for every outcome the exact totals of every arm, the reference or control first."""
    arms = len(source.study.treatment_labels)
    (sums,) = source.run(partial(outcome_sums, outcomes=outcomes, arms=arms))
    return [[Arm(*one) for one in line] for line in sums]


def outcome_sums(block: Table, outcomes: Outcomes, arms: int) -> Sums:
    """Return number of rows, sum and sum of squares of every outcome in every arm, (outcomes, arms, 3)."""
    return (np.stack([cell_totals(block.arm, arms, numbers) for numbers in outcomes.numbers(block)]),)


def sizes_by_arm(source: Backend) -> list[int]:
    """Return how many rows every arm has, the reference or control first."""
    (counts,) = source.run(partial(arm_sizes, arms=len(source.study.treatment_labels)))
    return [int(count) for count in counts]


PAGE = "rows/earlier_values.proof.md"
NAME = "slopes"
# The part of the budget for the moments that slopes are chosen from; `python -m experiments.measures --only earlier`.
PART = Fraction(1, 10)
_HALF = OUTCOME_STEPS // 2


# Proof: earlier_values.proof.md
def bounds(rows: int) -> list[Fraction]:
    """Return how far one row moves the means of x, y, x y and x^2, for numbers in [-1/2, 1/2]."""
    return [Fraction(1, rows), Fraction(1, rows), Fraction(1, 2 * rows), Fraction(1, 4 * rows)]


def moment_sums(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the sums of x, y, x y and x^2 for steps less half of their range; exact."""
    x, y = before - _HALF, after - _HALF
    return [int(x.sum()), int(y.sum()), exact_dot(x, y), exact_dot(x, x)]


def exact_moments(sums: Sequence[int], rows: int) -> list[Fraction]:
    """Return the means of x, y, x y and x^2 in [-1/2, 1/2] from those sums."""
    units = (OUTCOME_STEPS, OUTCOME_STEPS, OUTCOME_STEPS**2, OUTCOME_STEPS**2)
    return [Fraction(int(one), rows * unit) for one, unit in zip(sums, units, strict=True)]


def earlier_sums(block: Table, outcomes: Outcomes) -> Sums:
    """Return `moment_sums` of every outcome that was measured before, (outcomes, 4)."""
    plain = outcomes.numbers(block)
    found = [moment_sums(block.measures[column], plain[place]) for place, column in outcomes.measured_before]
    return (np.array(found, dtype=object),)


def with_slopes(
    gate: Gate, source: Backend, outcomes: Outcomes, squares: float, noise: Sequence[float]
) -> Outcomes:
    """Return the outcomes with their slopes, from moments that are released here.

    `squares` is the sum of squared coefficients of the comparison, `noise` the variance of each outcome's noise in
    units of its squared range.
    """
    pairs = outcomes.measured_before
    (sums,) = source.run(partial(earlier_sums, outcomes=replace(outcomes, slopes=())))
    values = [moment for line in sums for moment in exact_moments(line, source.rows)]
    limits = bounds(source.rows) * len(pairs)
    released = gate.release_several(NAME, values, limits, [Fraction(1)] * len(values))
    slopes = [0] * len(outcomes.names)
    for order, (place, _) in enumerate(pairs):
        own = released[4 * order : 4 * order + 4]
        x, y, product, square = map(float, own)
        # A covariance that is lost in its noise is none.
        together = product - x * y - sqrt(own[2].noise.variance)
        spread = max(square - x * x + sqrt(own[3].noise.variance), together, 1e-12)

        def expected(slope: int, own: float = noise[place], c: float = together, v: float = spread) -> float:
            part = slope / SLOPE_PARTS
            return squares * (part * part * v - 2 * part * c) + own * (1 + part) ** 2

        slopes[place] = min(range(SLOPE_PARTS + 1), key=expected)
    return replace(outcomes, slopes=tuple(slopes))


def slopes_said(outcomes: Outcomes) -> dict[str, float | str]:
    """Return the slopes in words, nothing where nothing was measured before."""
    if not outcomes.slopes:
        return {}
    places = [place for place, _ in outcomes.measured_before]
    said = [f"{outcomes.names[place]} {outcomes.slopes[place] / SLOPE_PARTS:g}" for place in places]
    return {"slopes_on_earlier": ", ".join(said)}
