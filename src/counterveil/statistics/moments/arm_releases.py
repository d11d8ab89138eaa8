"""The releases of the private effect from moments by arm: each one pass over blocks of rows, then the gate.

Every function takes public or released numbers and the rows, and returns released numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard, WholeSum, exact_arm_grams, grid_bits, steps, upper_places
from counterveil.session import Gate
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.arm_sensitivity import ArmGrams, FeatureMoments
from counterveil.statistics.moments.kernels.arm_scores import (
    ArmLines,
    ArmScore,
    Index,
    residual_sums,
    score_sizes,
    score_sums,
)
from counterveil.statistics.moments.kernels.scores import TERM_BITS, Block, counts_between
from counterveil.statistics.moments.records import Records, TableRecords
from counterveil.statistics.moments.sensitivity import (
    OFF_DIAGONAL,
    SQUARE_WEIGHT,
    OrthogonalScore,
    ResidualMoments,
)

# Part of the outcomes that may lie outside the cells that are looked at again.
_OUTSIDE = 0.003
# Counts of this many standard deviations of their noise are taken to be people.
_SURE = 3.3
# Tails are heavy where outcomes exceed three standard deviations by this many of them, on average; outcomes are uneven
# beyond this skewness.
_HEAVY, _UNEVEN = 0.01, 0.9
# Outcomes of which a cell of the second histogram holds more than this part, or whose standard deviation is less than
# this part of a cell, may be one value and a few others that noise hides.
_ONE_CELL, _RESOLVED = 0.75, 0.4


@dataclass(frozen=True, slots=True)
class Place:
    """Where the outcomes lie, in units of half their range around its middle: a centre and a scale.

    `tail` is the mean of what exceeds three scales from the centre, in scales, `reach` how far the farthest lie, and
    `skew` the skewness. `whole` says that they may lie anywhere in the range, so that nothing is cut off.
    """

    centre: float
    scale: float
    tail: float
    reach: float
    skew: float = 0.0
    whole: bool = False

    @property
    def uneven(self) -> bool:
        """Whether clipping would cut off more on one side than on the other."""
        return self.heavy or self.whole or abs(self.skew) > _UNEVEN

    @property
    def heavy(self) -> bool:
        """Whether few people, far out, carry much of the outcome."""
        return self.tail > _HEAVY


# Where a place is not looked for, or noise may hide outcomes that matter.
WHOLE = Place(0.0, 1.0, 0.0, 1.0, whole=True)


def outcome_counts(records: TableRecords, edges: Floats) -> Sums:
    """Return how many outcomes lie between every two edges; those outside count in the outermost cells."""
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for part in records.parts():
        counts += np.histogram(np.clip(part.y, edges[0], edges[-1]), edges)[0]
    return (counts,)


def _outcomes_between(records: Records, edges: Floats) -> NDArray[np.int64]:
    return records.run(outcome_counts, edges, covariates=False)[0]


def release_place(gate: Gate, records: Records, pure: bool, cells: int) -> Place:
    """Return centre and standard deviation of the outcomes from two histograms, the second where the first is full."""
    low, high = -1.0, 1.0
    for look in (1, 2):
        edges = np.linspace(low, high, cells + 1)
        released = release_counts(gate, f"place {look}", partial(_outcomes_between, records, edges), pure)
        noisy, sd = released.floats(), sqrt(released.variance)
        if look == 1:
            low, high = _filled(noisy, sd, edges, records.count)
    return _spread(noisy, sd, edges)


def _filled(noisy: Floats, sd: float, edges: Floats, rows: int) -> tuple[float, float]:
    """Return the ends of the cells that hold nearly all rows, with a cell more on either side."""
    cells = len(noisy)
    bound = _OUTSIDE * rows + _SURE * sd * np.sqrt(np.arange(1, cells + 1))
    first = int(np.argmax(np.append(np.cumsum(noisy) > bound, True)))
    last = cells - int(np.argmax(np.append(np.cumsum(noisy[::-1]) > bound, True)))
    if first >= last:
        first, last = 0, cells
    return float(edges[max(first - 1, 0)]), float(edges[min(last + 1, cells)])


def _spread(noisy: Floats, sd: float, edges: Floats) -> Place:
    """Return mean and standard deviation of the cells that noise cannot explain.

    Where these are two values or hardly more than one cell, outcomes that noise hides may have most of the variance:
    they may lie anywhere in the range.
    """
    middles, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0])
    ends = bool(noisy[0] > 4 * sd and noisy[-1] > 4 * sd)
    two_valued = ends and float(np.abs(noisy[1:-1]).sum()) < 8 * sd * sqrt(len(noisy))
    weights = np.where(noisy > _SURE * sd, noisy, 0.0)
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(noisy), 1 / len(noisy))
    centre = float(weights @ middles)
    scale = sqrt(float(weights @ (middles - centre) ** 2))
    if two_valued or scale < _RESOLVED * width or noisy.max() > _ONE_CELL * noisy.sum():
        return WHOLE
    off = (middles - centre) / scale
    size = np.abs(off)
    tail, reach = float(weights @ np.maximum(size - 3, 0.0)), float(size[weights > 0].max(initial=0.0))
    return Place(centre, scale, tail, reach, float(weights @ off**3))


@dataclass(frozen=True, slots=True)
class Look:
    """Released means and mean squares of features, and their noise; a square's is `sd` over SQUARE_WEIGHT.

    `treated` is the share treated where it was released, and `treated_sd` its noise.
    """

    means: Floats
    squares: Floats
    sd: float
    treated: float = 0.5
    treated_sd: float = 0.0


def look_sums(records: TableRecords) -> Sums:
    """Return the sums of features, of their squares, and the number treated."""
    first, second, treated = WholeSum(), WholeSum(), WholeSum()
    for part in records.parts():
        x = steps(part.x, TERM_BITS).astype(np.int64)
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
        treated.add(np.array([np.count_nonzero(part.treated)]))
    return first.whole(), second.whole(), treated.whole()


def release_look(
    gate: Gate, name: str, records: Records, counted: int, chosen: NDArray[np.bool_], share: bool
) -> Look:
    """Return moments of the `chosen` features and, if `share`, the share treated.

    `counted` bounds how many of the chosen features one record moves; the others have mean 0 and square 1.
    """
    n, two_valued = records.count, records.features.two_valued
    size = len(two_valued)
    weight = Fraction(round(1000 * sqrt(max(counted, 1) / 8)), 1000) if share else Fraction(0)
    places = np.flatnonzero(chosen)
    squared = [place for place in places if not two_valued[place]]

    def values() -> list[Fraction]:
        first, second, (treated,) = records.run(look_sums)
        one = Fraction(1, n << TERM_BITS)
        sums = [int(first[place]) * one for place in places]
        sums += [int(second[place]) * one * SQUARE_WEIGHT / 2**TERM_BITS for place in squared]
        return sums + ([weight * Fraction(2 * treated - n, n)] if share else [])

    released = gate.release_vector(name, values, FeatureMoments(n, counted, weight).means)
    found, sd = released.floats(), sqrt(released.variance)
    means, squares = np.zeros(size), np.ones(size)
    means[places] = found[: len(places)]
    squares[squared] = found[len(places) : len(places) + len(squared)] / float(SQUARE_WEIGHT)
    if not share:
        return Look(means, squares, sd)
    return Look(means, squares, sd, (1 + found[-1] / float(weight)) / 2, sd / float(weight) / 2)


@dataclass(frozen=True, slots=True)
class Scale:
    """How rows enter the arm Grams: their map, the outcome's place, and squared lengths beside |z|^2.

    `constant` is the squared length of the constant, `outcome` that of the outcome, which is clipped at `reach`
    of its scales. Where there is an `index`, rows have its hats as well.
    """

    standard: Standard
    place: Place
    constant: float
    outcome: float
    reach: float
    index: Index | None = None

    def least_clip(self, levels: Floats) -> float:
        """Return the least clip of residuals, in these units: as far as outcomes reach where they are uneven.

        `levels` are the mean outcomes of both arms.
        """
        if self.place.whole:
            return 1.0 + min(float(np.abs(levels).max()), 1.0)
        return min(self.place.reach / self.reach, 1.0) if self.place.uneven else 0.0

    def to_end(self, levels: Floats) -> Floats:
        """Return how far mean outcomes are from the nearer end of the range, in these units."""
        return np.asarray(np.maximum((1.0 - np.abs(self.place.centre + self.unit * levels)) / self.unit, 0.0))

    @property
    def unit(self) -> float:
        """Outcomes are divided by this."""
        return self.reach * self.place.scale

    @property
    def longest(self) -> float:
        """Bound of |(1, z)|."""
        return sqrt(1.0 + self.standard.squared_length)

    def rows(self, records: TableRecords) -> Iterator[Block]:
        """Yield (1, z) or (1, z, hats), treatment and outcome in these units, a block at a time."""
        for part in records.parts():
            x, t, y = part.x, part.treated.astype(np.float64), part.y
            u = self.standard.rows(x)
            if self.index is not None:
                u = np.vstack((u.T, self.index.hats(self.standard.coordinates(x)).T)).T
            yield u, t, (y - self.place.centre) / self.unit


def arm_gram_sums(records: TableRecords, scale: Scale, bits: int) -> Sums:
    """Return the sums of v v' over the untreated and over the treated, v = (a, z, b y)."""
    a, b = sqrt(scale.constant), sqrt(scale.outcome)

    def rows() -> Iterator[tuple[NDArray[np.bool_], Floats]]:
        for u, t, y in scale.rows(records):
            outcome = b * np.clip(np.nan_to_num(y), -1.0, 1.0)
            yield t == 1, np.vstack((np.full(len(outcome), a), u[:, 1:].T, outcome)).T

    return exact_arm_grams(rows(), bits)


def release_arm_grams(gate: Gate, records: Records, scale: Scale) -> tuple[Floats, float]:
    """Return the means over all rows of v v' in each arm, (2, m + 1, m + 1), v = (1, z, y), and an entry's noise.

    The noise is that of an entry between features; those with the constant or the outcome are divided by roots of
    their squared lengths.
    """
    n, a, b = records.count, sqrt(scale.constant), sqrt(scale.outcome)

    def values() -> list[Fraction]:
        bits = grid_bits(max(scale.standard.limit, a, b))
        totals = records.run(arm_gram_sums, scale, bits)
        unit, upper = Fraction(1, n * 4**bits), upper_places(len(totals[0]))
        return [(unit if i == j else unit * OFF_DIAGONAL) * total[i, j] for total in totals for i, j in upper]

    reach = Fraction(scale.standard.squared_length) + Fraction(scale.constant) + Fraction(scale.outcome)
    released = gate.release_vector("gram", values, ArmGrams(n, reach).entries)
    found = released.floats().reshape(2, -1)
    size = isqrt(found.size)  # of two triangles of m (m + 1) / 2 numbers
    grams = np.zeros((2, size, size))
    for place, (i, j) in enumerate(upper_places(size)):
        grams[:, i, j] = grams[:, j, i] = found[:, place] / (1.0 if i == j else float(OFF_DIAGONAL))
    lengths = np.array([a, *[1.0] * (size - 2), b])
    return grams / np.outer(lengths, lengths), sqrt(released.variance) / float(OFF_DIAGONAL)


@dataclass(frozen=True, slots=True)
class ArmResiduals:
    """Released means over all rows of u times the residual, by arm (2, m), and of its square, with their noise."""

    products: Floats
    square: float
    sd: float
    square_sd: float


def arm_residuals(records: TableRecords, scale: Scale, lines: ArmLines, clip: float) -> Sums:
    """Return the sums of `residual_sums`."""
    sums, square = residual_sums(scale.rows(records), lines, clip, scale.longest)
    return np.array(sums, dtype=object), np.array([square], dtype=object)


def release_arm_residuals(
    gate: Gate, name: str, records: Records, scale: Scale, lines: ArmLines, clip: float
) -> ArmResiduals:
    """Return moments of u with the residuals of both arms, which are clipped to [-clip, clip]."""
    n, reach = records.count, scale.longest

    def values() -> list[Fraction]:
        sums, (square,) = records.run(arm_residuals, scale, lines, clip)
        unit = Fraction(1, n * 4**TERM_BITS)
        return [total * unit for total in sums] + [SQUARE_WEIGHT * square * unit]

    released = gate.release_vector(name, values, ResidualMoments(n).means)
    found, sd, weight = released.floats(), sqrt(released.variance), float(SQUARE_WEIGHT)
    return ArmResiduals(
        (found[:-1] * reach * clip).reshape(2, -1),
        found[-1] * clip**2 / weight,
        sd * reach * clip,
        sd * clip**2 / weight,
    )


def size_counts(records: TableRecords, scale: Scale, score: ArmScore, edges: Floats) -> Sums:
    """Return how many scores lie between edges of their size."""
    return (counts_between(edges, score_sizes(scale.rows(records), score)),)


def release_sizes(
    gate: Gate, records: Records, scale: Scale, score: ArmScore, edges: Floats, pure: bool
) -> tuple[Floats, float]:
    """Return how many scores lie between edges of their size, with noise, and the noise of one count."""
    released = release_counts(gate, "sizes", lambda: records.run(size_counts, scale, score, edges)[0], pure)
    return released.floats(), sqrt(released.variance)


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """Released mean of the scores and of their squares, and their noise."""

    score: float
    square: float
    sd: float
    square_sd: float


def arm_score_sums(records: TableRecords, scale: Scale, score: ArmScore, clip: float) -> Sums:
    """Return the sums of scores and of their squares."""
    return (np.array(score_sums(scale.rows(records), score, clip), dtype=object),)


def release_arm_score(
    gate: Gate, records: Records, scale: Scale, score: ArmScore, clip: float
) -> ScoreMoments:
    """Return the mean score, clipped to [-clip, clip], and the mean of its square."""
    n = records.count
    weight = float(SQUARE_WEIGHT)

    def values() -> list[Fraction]:
        ((total, square),) = records.run(arm_score_sums, scale, score, clip)
        one = Fraction(1, n << TERM_BITS)
        return [total * one, SQUARE_WEIGHT * square * one / 2**TERM_BITS]

    released = gate.release_vector("score", values, OrthogonalScore(n, Fraction(0)).means)
    found, sd = released.floats(), sqrt(released.variance)
    return ScoreMoments(
        clip * float(found[0]), clip**2 * float(found[1]) / weight, clip * sd, clip**2 * sd / weight
    )
