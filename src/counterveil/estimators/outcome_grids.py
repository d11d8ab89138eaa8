"""Cells in which outcomes are counted for distribution functions, and the plan that pays for the counts.

Cells are declared, even over the outcome's range, or where outcomes were found to lie (two earlier releases).
More cells show more of a distribution and add more noise to each of its points: with J cells, noise of
standard deviation s on each count and m people an arm, the variance of a distribution function at its middle
is about

    1 / (4 m) + s^2 J / (4 m^2),

beside a bias of linear interpolation within cells that falls with 1 / J^2 (`expected_length`). Where no cells
are declared, J is that of the shortest expected interval for normal outcomes of a supposed standard
deviation.

In: the declared range, numbers of rows, the budget. Out: edges in units of the outcome, and a plan, which
names the releases and the part of the budget that each pays. Proof of what counts cost:
`rows/distribution.proof.md`, also for a place that is found first. Privacy does not depend on what is
supposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.data import OUTCOME_STEPS, Study
from counterveil.data.domains import outcome_unit
from counterveil.estimators.histogram import count_mechanisms, counts_noise
from counterveil.estimators.outcome_place import ENDS, PLACES, count_octaves
from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.survival.distributions import NoisyHistograms
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.rows.outcome_cells import NAME, OutcomeCells
from counterveil.rows.outcome_histograms import OutcomeHistograms
from counterveil.rows.outcome_window import WHOLE
from counterveil.rows.public import PublicData
from counterveil.session import Gate, Kind, Plan, ReleasedVector

# Numbers of cells that are compared where none is declared. Round numbers fall unevenly into sevenths and sixteenths of
# a range, so that rounded outcomes show.
_CELLS = (8, 14, 16, 28, 32, 56, 64, 112, 128, 192, 256, 512)
# The tail at which lengths of intervals are compared.
_TAIL = 0.025
# Over at most so many whole numbers cells are a half or less of one, so that whole outcomes stand out as crowds.
_WHOLE_NUMBERS = 64
# What the comparison supposes: outcomes are normal with this part of their range as standard deviation.
_SUPPOSED_SD = 0.125
# The steepest change of a normal density, in parts of 1 / sd^2: a cell of length h is up to h^2 / 8 times it from
# straight lines.
_STEEPEST = 0.242
# Of the points of a range, outcomes that lie at them have cells of their own: the ends, where those beyond the range
# are, and whole numbers. Such a cell is so many steps long, as what is read may be rounded to the step below.
_POINT_STEPS = 2
# How much longer intervals may be for whole numbers that may be there.
_MORE_FOR_WHOLE = 1.25
# Words for cells whose place is found, and for even ones.
FOUND = "found"
EVEN = "even"
# Where the place of cells is found: the part of the budget for it.
_PLACE_PART = Fraction(1, 5)
# The part of outcomes that the place holds, at least. Two cells more hold all outcomes outside.
_HELD = 0.9
NO_EARLIER_RELEASES: Mapping[str, Fraction] = MappingProxyType({})
# Edges of cells that are declared, that rows and budget decide ("even"), or whose place is found ("found").
Edges = tuple[Fraction, ...] | str


def even_edges(study: Study, cells: int) -> tuple[Fraction, ...]:
    """Return the edges of so many cells of one length over the range of the outcome."""
    low, high = study.outcome_range
    return tuple(low + (high - low) * Fraction(index, cells) for index in range(cells + 1))


def _with_points(study: Study, edges: Sequence[Fraction], whole_numbers: bool) -> tuple[Fraction, ...]:
    """Return edges with points, each of which ends a cell of its own.

    Points are the ends of the range, and whole numbers if many may have them. The first edge is then below
    the range, where no outcome is.
    """
    low, high = study.outcome_range
    points = {low, high} | ({edge for edge in edges if edge.denominator == 1} if whole_numbers else set())
    length = _POINT_STEPS * outcome_unit(study.outcome_bounds)
    return tuple(sorted({*edges, *(point - length for point in points)}))


@dataclass(frozen=True, slots=True)
class HistogramRelease:
    """How counts are released.

    Attributes
    ----------
    plan : Plan
        The plan that pays for them, and for the search for their place.
    edges : tuple of Fraction
        Edges of the cells, in units of the outcome; those before the search where their place is to be found.
    searched : bool
        Whether the place of cells is to be found.
    """

    plan: Plan
    edges: tuple[Fraction, ...]
    searched: bool = False

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace's."""
        return self.plan.mechanism != "gaussian"

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of each count."""
        return counts_noise(self.plan, NAME)

    @property
    def curve_variance(self) -> float:
        """Largest variance of the noise of a number of people beyond an edge, the number of all of them known."""
        return self.noise_sd**2 * (len(self.edges) - 1) / 4

    def placed(self, gate: Gate, public: PublicData) -> HistogramRelease:
        """Return the release on its cells: where most outcomes were found to lie, by two releases, if that is asked."""
        if not self.searched:
            return self
        centre, octaves = count_octaves(gate, OutcomeHistograms(self.pure), public.rows)
        held = np.cumsum(octaves.shares())
        half_width = ENDS[min(int(np.searchsorted(held, _HELD)), len(ENDS) - 1)]
        low = self.edges[0]
        cells = len(self.edges) - 3
        unit = (self.edges[-1] - low) / OUTCOME_STEPS
        ends = (centre - int(half_width * WHOLE.half_width), centre + int(half_width * WHOLE.half_width))
        first, last = (low + unit * min(max(end, 0), OUTCOME_STEPS) for end in ends)
        cells_a_unit = self._parts_of_whole(ceil(last) - floor(first), cells, public.rows)
        if cells_a_unit:
            first = Fraction(floor(first))
            last = Fraction(ceil(last))
            cells = int(last - first) * cells_a_unit
        inner = {first + (last - first) * Fraction(k, cells) for k in range(cells + 1)}
        edges = tuple(sorted({low, *inner, self.edges[-1]}))
        return replace(self, edges=_with_points(public.study, edges, cells_a_unit > 0))

    def _parts_of_whole(self, units: int, cells: int, rows: int) -> int:
        """Return into how many cells each unit is cut beside those of whole numbers; 0 for even cells.

        Whole numbers have cells of their own where the range has whole ends and intervals are not expected
        to become longer by more than a part of what they are with so many even cells.
        """
        if not _whole(self.edges[0], self.edges[-1]) or not 2 <= units <= _WHOLE_NUMBERS:
            return 0
        most = _MORE_FOR_WHOLE * expected_length(cells, self.noise_sd, rows)
        for cells_a_unit in (max(2, round(cells / units)), 1):
            if expected_length(units * (cells_a_unit + 1), self.noise_sd, rows) <= most:
                return cells_a_unit
        return 0

    def cells(self, study: Study) -> OutcomeCells:
        """Return the cells of these edges."""
        return OutcomeCells.of(study, self.edges)

    def histograms(self, released: ReleasedVector, **public: Any) -> NoisyHistograms:
        """Return released counts with what is known of their noise; `public` are the other public facts."""
        noisy = released.floats().reshape(2, -1)
        return NoisyHistograms(
            numbers=tuple(tuple(map(float, arm)) for arm in noisy),
            noise_sd=self.noise_sd,
            heavy=self.pure,
            edges=tuple(map(float, self.edges)),
            **public,
        )


def histogram_release(public: PublicData, question: Question, grid: Edges, rows: int) -> HistogramRelease:
    """Return the release of least noise, on the declared edges or on the number of cells for so many people."""
    kinds = count_mechanisms(public, question)
    plans = [histogram_plan(question.budget, kind, grid) for kind in kinds]
    return released_on(public.study, min(plans, key=lambda plan: counts_noise(plan, NAME)), grid, rows)


def histogram_plan(
    budget: Budget, mechanism: str, grid: Edges, earlier: Mapping[str, Fraction] = NO_EARLIER_RELEASES
) -> Plan:
    """Return the plan of counts: after what comes `earlier`, in parts of the budget, and the search for their place."""
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    remaining = 1 - sum(earlier.values(), Fraction(0))
    place_shares = (
        {name: remaining * _PLACE_PART * place_share for name, place_share in PLACES.items()}
        if grid == FOUND
        else {}
    )
    shares = {**earlier, **place_shares, NAME: remaining - sum(place_shares.values(), Fraction(0))}
    return Plan.split(
        budget, shares, mechanism, dict.fromkeys(shares, kind) | dict.fromkeys(earlier, Kind.VECTOR)
    )


def released_on(study: Study, plan: Plan, grid: Edges, rows: int) -> HistogramRelease:
    """Return the release of a plan."""
    if isinstance(grid, tuple):
        return HistogramRelease(plan, grid)
    edges = _default_edges(study, counts_noise(plan, NAME), rows, grid == FOUND)
    if grid == FOUND:
        return HistogramRelease(plan, edges, True)
    low, high = study.outcome_range
    return HistogramRelease(
        plan, _with_points(study, edges, _whole(low, high) and high - low <= _WHOLE_NUMBERS)
    )


def _default_edges(study: Study, noise: float, rows: int, is_searched: bool) -> tuple[Fraction, ...]:
    """Return the even cells of the shortest expected intervals, of which the outer two lie outside a found place."""
    compared = list(_CELLS) if is_searched else _compared(*study.outcome_range)
    best = min(compared, key=lambda cells: expected_length(cells, noise, rows))
    return even_edges(study, best + 2 * is_searched)


def _whole(low: Fraction, high: Fraction) -> bool:
    """Whether outcomes may be whole numbers, as both ends of their range are."""
    return low.denominator == high.denominator == 1


def _compared(low: Fraction, high: Fraction) -> list[int]:
    """Return the numbers of cells that are compared: whole parts of a unit where the range has few units."""
    units = high - low
    if not _whole(low, high) or units > _WHOLE_NUMBERS:
        return list(_CELLS)
    return [
        int(units) * divisions
        for divisions in range(2, _CELLS[-1])
        if _CELLS[0] <= units * divisions <= _CELLS[-1]
    ]


def expected_length(cells: int, noise_sd: float, rows: int) -> float:
    """Return the half-width of intervals of a distribution function at its middle with so many cells and people."""
    people = rows / 2
    variance = 1 / (4 * people) + noise_sd**2 * cells / 4 / people**2
    bend = _STEEPEST / (cells * _SUPPOSED_SD) ** 2 / 8
    return biased_half_width(-float(ndtri(_TAIL)) * sqrt(variance), bend, 1 - 2 * _TAIL)
