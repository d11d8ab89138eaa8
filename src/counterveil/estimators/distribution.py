"""Counts of outcomes by arm and public cell, released at once: both arms' distribution functions and quantiles.

Every row is in one cell of its arm. Proof: `distribution.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import ndtri

from counterveil.data import OUTCOME_STEPS, Backend, Study, Table
from counterveil.data.domains import outcome_unit
from counterveil.data.passes import Sums
from counterveil.errors import refusal
from counterveil.estimators.histogram import count_mechanisms, counts_noise
from counterveil.estimators.outcome_place import ENDS, PLACE_WORDS, PLACES, WHOLE, count_octaves, sizes_by_arm
from counterveil.estimators.pairs.effect import feature_sets, known_propensities, released_propensities
from counterveil.estimators.time_tables import said_of_weights, weighted_rows
from counterveil.inference.biased_intervals import biased_half_width
from counterveil.inference.survival.distributions import NoisyHistograms
from counterveil.numerics.arrays import Floats, Integers
from counterveil.privacy import Budget, Unit
from counterveil.results.answering import answer_request
from counterveil.results.question import Question
from counterveil.results.survival import QuantilesResult, quantiles_result
from counterveil.rows.counts import release_counts
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.settings.methods import ALLOWED_BIAS, allowed_bias

PAGE = "rows/distribution.proof.md"
NAME = "counts of outcomes"
# Numbers of cells that are compared where none is declared, and the tail at which lengths are. Round numbers fall
# unevenly into sevenths and sixteenths of a range, so that rounded outcomes show.
_CELLS, _TAIL = (8, 14, 16, 28, 32, 56, 64, 112, 128, 192, 256, 512), 0.025
# Over at most so many whole numbers cells are a half or less of one, so that whole outcomes stand out as crowds.
_WHOLE_NUMBERS = 64
# What the comparison supposes: outcomes are normal with this part of their range as standard deviation. A cell of
# length h is then up to h^2 / 8 times the steepest change of the density, .242 / sd^2, from straight lines.
_SUPPOSED_SD, _STEEPEST = 0.125, 0.242
# Of the points of a range, outcomes that lie at them have cells of their own: the ends, where those beyond the range
# are, and whole numbers. Such a cell is so many steps long, as what is read may be rounded to the step below.
_POINT_STEPS = 2
# How much longer intervals may be for whole numbers that may be there.
_MORE_FOR_WHOLE = 1.25
# Where the place of cells is found: the part of the budget for it, and of outcomes that it holds, at least. Two cells
# more hold all outcomes outside.
FOUND, EVEN = "found", "even"
NOTHING: Mapping[str, Fraction] = MappingProxyType({})
_PLACE_PART, _HELD = Fraction(1, 5), 0.9
# Where treatments are private: the part of the budget that propensities take, how far from 0 and 1 they are kept, and
# the fractional digits of weights.
_MODEL, _MODEL_PART, _LEAST_PROPENSITY, _BITS = "propensities", Fraction(1, 3), 0.05, 20


def even_edges(study: Study, cells: int) -> tuple[Fraction, ...]:
    """Return the edges of so many cells of one length over the range of the outcome."""
    low, high = study.outcome_range
    return tuple(low + (high - low) * Fraction(place, cells) for place in range(cells + 1))


def _with_points(study: Study, edges: Sequence[Fraction], whole_numbers: bool) -> tuple[Fraction, ...]:
    """Return edges of which the ends of the range, and whole numbers if many may have them, end cells of their own.

    The first edge is then below the range, where no outcome is.
    """
    low, high = study.outcome_range
    points = {low, high} | ({edge for edge in edges if edge.denominator == 1} if whole_numbers else set())
    length = _POINT_STEPS * outcome_unit(study.outcome_bounds)
    return tuple(sorted({*edges, *(point - length for point in points)}))


@dataclass(frozen=True, slots=True)
class CountCells:
    """The pass that counts rows by arm and cell; `starts` are the first steps of the cells after the first."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, study: Study, edges: Sequence[Fraction]) -> CountCells:
        """Return the pass for these edges; cells hold their upper end, as distribution functions do."""
        low = study.outcome_bounds.lo
        unit = outcome_unit(study.outcome_bounds)
        return cls(tuple(int((edge - low) // unit) + 1 for edge in edges[1:-1]))

    def places(self, block: Table) -> Integers:
        """Return the cell of every row."""
        return np.searchsorted(np.array(self.starts, dtype=np.int64), block.outcome, side="right")

    def __call__(self, block: Table) -> Sums:
        """Return the counts of a block of rows, one array."""
        cells = len(self.starts) + 1
        return (np.bincount(block.arm * cells + self.places(block), minlength=2 * cells),)


# Edges of cells that are declared, that rows and budget decide ("even"), or whose place is found ("found").
Edges = tuple[Fraction, ...] | str


@dataclass(frozen=True, slots=True)
class HistogramRelease:
    """How counts are released: the plan that pays for them, and the edges of cells; with `found`, before the search."""

    plan: Plan
    edges: tuple[Fraction, ...]
    found: bool = False

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

    def placed(self, study: Study, gate: Gate, source: Backend) -> HistogramRelease:
        """Return the release on its cells: where most outcomes were found to lie, by two releases, if that is asked."""
        if not self.found:
            return self
        centre, octaves = count_octaves(gate, source, self.pure)
        held = np.cumsum(octaves.shares())
        half_width = ENDS[min(int(np.searchsorted(held, _HELD)), len(ENDS) - 1)]
        low = self.edges[0]
        cells = len(self.edges) - 3
        unit = (self.edges[-1] - low) / OUTCOME_STEPS
        ends = (centre - int(half_width * WHOLE.half_width), centre + int(half_width * WHOLE.half_width))
        first, last = (low + unit * min(max(end, 0), OUTCOME_STEPS) for end in ends)
        cells_a_unit = self._parts_of_whole(ceil(last) - floor(first), cells, source.rows)
        if cells_a_unit:
            first, last = Fraction(floor(first)), Fraction(ceil(last))
            cells = int(last - first) * cells_a_unit
        inner = {first + (last - first) * Fraction(k, cells) for k in range(cells + 1)}
        edges = tuple(sorted({low, *inner, self.edges[-1]}))
        return replace(self, edges=_with_points(study, edges, cells_a_unit > 0))

    def _parts_of_whole(self, units: int, cells: int, rows: int) -> int:
        """Return into how many cells each unit of a place is cut beside those of whole numbers; 0 for even cells.

        Whole numbers have cells of their own where the range has whole ends and intervals are not expected to become
        longer by more than a part of what they are with so many even cells.
        """
        if not _whole(self.edges[0], self.edges[-1]) or not 2 <= units <= _WHOLE_NUMBERS:
            return 0
        most = _MORE_FOR_WHOLE * expected_length(cells, self.noise_sd, rows)
        for cells_a_unit in (max(2, round(cells / units)), 1):
            if expected_length(units * (cells_a_unit + 1), self.noise_sd, rows) <= most:
                return cells_a_unit
        return 0

    def histograms(
        self, gate: Gate, counts: Callable[[], Sequence[int | Fraction]], **facts: Any
    ) -> NoisyHistograms:
        """Return the released counts with what is known of their noise."""
        noisy = release_counts(gate, NAME, counts, self.pure).floats().reshape(2, -1)
        return NoisyHistograms(
            numbers=tuple(tuple(map(float, arm)) for arm in noisy),
            noise_sd=self.noise_sd,
            heavy=self.pure,
            edges=tuple(map(float, self.edges)),
            **facts,
        )


def histogram_release(session: BaseSession, question: Question, grid: Edges, rows: int) -> HistogramRelease:
    """Return the release of least noise, on the declared edges or on the number of cells for so many people."""
    kinds = count_mechanisms(session, question)
    plans = [histogram_plan(question.budget, kind, grid) for kind in kinds]
    return released_on(session.study, min(plans, key=lambda one: counts_noise(one, NAME)), grid, rows)


def histogram_plan(
    budget: Budget, mechanism: str, grid: Edges, earlier: Mapping[str, Fraction] = NOTHING
) -> Plan:
    """Return the plan of counts: after what comes `first`, in parts of the budget, and the search for their place."""
    kind = Kind.VECTOR if mechanism == "gaussian" else Kind.CELLS
    remaining = 1 - sum(earlier.values(), Fraction(0))
    place_shares = (
        {name: remaining * _PLACE_PART * part for name, part in PLACES.items()} if grid == FOUND else {}
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
    return [int(units) * parts for parts in range(2, _CELLS[-1]) if _CELLS[0] <= units * parts <= _CELLS[-1]]


def expected_length(cells: int, noise_sd: float, rows: int) -> float:
    """Return the half-width of intervals of a distribution function at its middle with so many cells and people."""
    people = rows / 2
    variance = 1 / (4 * people) + noise_sd**2 * cells / 4 / people**2
    bend = _STEEPEST / (cells * _SUPPOSED_SD) ** 2 / 8
    return biased_half_width(-float(ndtri(_TAIL)) * sqrt(variance), bend, 1 - 2 * _TAIL)


def quantiles_of_arms(
    session: BaseSession, question: Question, grid: Edges, shares: tuple[float, ...]
) -> QuantilesResult:
    """Return both arms' distributions of a trial; sizes of arms are public where outcomes alone are private."""
    session.attach_batches()
    rows = session.batches.rows
    release = histogram_release(session, question, grid, rows)
    source = session.batches
    arms = sizes_by_arm(source) if question.unit is Unit.OUTCOME else [rows]
    facts = {"totals": tuple(float(max(one, 1)) for one in arms), "design": (1.0, 1.0)}

    def compute(gate: Gate) -> QuantilesResult:
        placed = release.placed(session.study, gate, source)
        counted = CountCells.of(session.study, placed.edges)
        tables = placed.histograms(gate, lambda: [int(one) for one in source.run(counted)[0]], **facts)
        return quantiles_result(session, question, tables, PAGE, shares)

    return _answered(session, question, release, shares, compute)


def quantiles_by_weights(
    session: BaseSession, question: Question, grid: Edges, shares: tuple[float, ...]
) -> QuantilesResult:
    """Return both arms' distributions, weighted towards everybody; outcomes are private."""
    study = session.study
    session.attach("quantiles with method='weighting'")
    release = histogram_release(session, question, grid, session.table.rows)
    arms, diagnostics = weighted_rows(session.table, release.curve_variance)
    bias = allowed_bias(None, study.randomised is True, len(study.covariates))
    facts = {
        "totals": tuple(float(one.total) for one in arms),
        "design": tuple(one.design for one in arms),
        "inflation": biased(bias),
    }

    def compute(gate: Gate) -> QuantilesResult:
        placed = release.placed(study, gate, session.batches)
        cell = CountCells.of(study, placed.edges).places(session.table)
        cells = len(placed.edges) - 1
        tables = placed.histograms(
            gate, lambda: [number for one in arms for number in one.table(cell, cells)], **facts
        )
        result = quantiles_result(session, question, tables, PAGE, shares)
        return said_of_weights(result, "quantiles", bias, diagnostics)

    return _answered(session, question, release, shares, compute)


def quantiles_by_scores(
    session: BaseSession, question: Question, grid: Edges, shares: tuple[float, ...]
) -> QuantilesResult:
    """Return both arms' distributions, weighted by propensities that are released first, or that the design says."""
    study = session.study
    session.attach("quantiles with method='weighting'")
    table = session.table
    known = known_propensities(session.table)
    candidates = feature_sets(table)
    if not candidates:
        raise refusal("CV-P407", features=len(study.covariates), rows=table.rows)
    first = NOTHING if known is not None else {_MODEL: _MODEL_PART}
    plan = histogram_plan(question.budget, "laplace", grid, first)
    release = released_on(study, plan, grid, table.rows)
    bias = allowed_bias(None, False, len(study.covariates))

    def compute(gate: Gate) -> QuantilesResult:
        treated = known
        error = np.zeros((1, 1))
        if treated is None:
            treated, error = released_propensities(gate, _MODEL, candidates[0], table.arm == 1)
        likely = (1 - treated, treated)
        treated = np.clip(treated, _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
        propensities = (1 - treated, treated)
        largest = max(float((1 / one).max()) for one in propensities)
        # Covariates explain no more of any share than its whole variance.
        worst = float(np.linalg.eigvalsh(error)[-1]) * table.rows
        moved = max(float(np.mean((1 - one) ** 2) / np.mean(1 / one)) for one in propensities)
        facts = {
            "totals": (),
            "design": tuple(float(np.mean(1 / one)) / largest for one in propensities),
            "inflation": biased(bias) + worst * moved,
            # Whoever is likelier in the other arm than weights reach is stood for in part, by how much they weigh.
            "left_out": tuple(
                float(np.mean(np.abs(1 - e / one))) for e, one in zip(likely, propensities, strict=True)
            ),
        }
        placed = release.placed(study, gate, session.batches)
        tables = placed.histograms(
            gate, lambda: weighed_counts(table, placed.edges, propensities, largest), **facts
        )
        result = quantiles_result(session, question, tables, PAGE, shares)
        result = said_of_weights(result, "quantiles", bias, {"largest_weight": largest})
        return replace(result, method="quantiles with inverse propensity weights")

    return _answered(session, question, release, shares, compute)


def biased(bias: float) -> float:
    """Return what sampling variances of weighted distributions grow by for a bias of so many standard errors.

    They take nothing off for what covariates explain. Errors vary by the rest alone, and bias is what imbalance makes
    of the explained part: where that is a fifth or more, the usual bias is within what is not taken off.
    """
    return max(1.0, (1 + bias**2) / (1 + ALLOWED_BIAS**2))


def weighed_counts(
    table: Table, edges: Sequence[Fraction], propensities: tuple[Floats, Floats], largest: float
) -> list[Fraction]:
    """Return sums of weights by arm and cell; a row's weight is that of its arm, in parts of the largest."""
    of_control, of_treated = (np.floor(2**_BITS / own / largest) for own in propensities)
    units = np.where(table.arm == 1, of_treated, of_control)
    cell = CountCells.of(table.study, edges).places(table)
    cells = len(edges) - 1
    units = np.minimum(units, 2**_BITS).astype(np.int64)
    sums = np.zeros(2 * cells, dtype=np.int64)
    np.add.at(sums, table.arm * cells + cell, units)
    return [Fraction(int(one), 2**_BITS) for one in sums]


def _answered(
    session: BaseSession,
    question: Question,
    release: HistogramRelease,
    shares: tuple[float, ...],
    compute: Callable[[Gate], QuantilesResult],
) -> QuantilesResult:
    edges = f"{FOUND}, {len(release.edges) - 1}" if release.found else [str(edge) for edge in release.edges]
    description: dict[str, object] = {"shares": list(shares), "edges": edges}
    description |= {"question": "quantiles", "noise": release.plan.mechanism}

    def with_place(gate: Gate) -> QuantilesResult:
        answer = compute(gate)
        place_releases = tuple((PLACE_WORDS[name], answer.releases[0][1]) for name in PLACES if release.found)
        return replace(answer, releases=(*place_releases, *answer.releases))

    return answer_request(QuantilesResult, session, question, release.plan, with_place, said=description)
