"""The one release behind groups, policies and curves: counts, sums and squares of clipped scores in public cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.session import Gate, Plan
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.kernels.scores import TERM_BITS, CellBlock, cell_sums, counts_between
from counterveil.statistics.moments.records import Part, Records, TableRecords
from counterveil.statistics.moments.row_scores import AdjustedScore, ArmScore, Score
from counterveil.statistics.moments.sensitivity import (
    MODEL_TERMS,
    PURE_MODEL_TERMS,
    SCORE_TERMS,
    CellTerms,
)

# Where scores are clipped: chosen from a bought histogram on public geometric cells, by released numbers alone.


# Edges fall by this factor from the reach of the scores downwards.
_RATIO, _EDGES = 2**-0.5, 18
# A cell is surely occupied from so many standard deviations of its noise; beside such a one, from so many.
_SURE, _SEEN = 3.3, 1.0
# What clipping takes off counts this many times beside the noise when clips are compared, and may lie in one cell
# out of at most so many.
_CARE, _ONE_OF = 1.5, 4
# The nearest clip, in standard deviations of the scores; and the nearest without a histogram.
_NEAREST, _BLIND = 2.0, 3.5
# A clip is as long as noise allows that adds this part of the other errors.
_SPARE = 0.25
# Information is supposed to lie so far from one, as a standard deviation, and within these ends.
_INFORMATION_SD, _INFORMATION = 0.2, (0.5, 1.5)
# Part of the noise of a count that is supposed to hide rows in the first cell beyond those shown.
_HIDDEN = 0.1
# A histogram is worth its price where the noise of a cell is below this part of the rows.
RESOLVED = 1 / 400


@dataclass(frozen=True, slots=True)
class Clip:
    """Scores are taken as (psi - centre) / size, clipped to [-1, 1]; `lost` is what that may take off their mean."""

    centre: float
    size: float
    lost: float = 0.0


def edges_of(reach: float) -> Floats:
    """Return the public edges of the histogram, from -reach to reach."""
    up = reach * _RATIO ** np.arange(_EDGES - 1, -1, -1)
    return np.concatenate([-up[::-1], up])


def score_counts(records: TableRecords, score: Score, edges: Floats) -> Sums:
    """Return how many scores lie between every two edges, as `placed` has them."""
    return (counts_between(edges, (score.placed(part) for part in records.parts())),)


def release_histogram(gate: Gate, records: Records, score: Score, pure: bool) -> tuple[Floats, Floats, float]:
    """Return the ends of the cells, how many rows they hold (noisy), and the noise's standard deviation."""
    edges = edges_of(score.reach)
    (counts,) = records.run(score_counts, score, edges)
    released = release_counts(gate, "histogram", counts, pure)
    ends = np.concatenate([[edges[0] / _RATIO], edges, [edges[-1] / _RATIO]])
    return ends, released.floats(), sqrt(released.variance)


def clip_without_histogram(score: Score, rows: int, cells: int, unit: float) -> Clip:
    """Return a clip some standard deviations from the middle, from moments released before; `unit` as below."""
    sizes = _BLIND * sqrt(score.variance), free_clip(score.variance, score.extra, rows / cells, unit)
    return Clip(0.0, min(max(sizes), score.reach))


def clip_of_few(score: Score, rows: int, cells: int, unit: float) -> Clip:
    """Return the clip of the shortest expected interval where few people carry the outcome, which may cut nobody off.

    A clip at C takes at most the mean square over 4 C off a mean: (x - C)+ <= x^2 / (4 C).
    """
    size = rows / cells
    sizes = np.geomspace(min(sqrt(score.variance), score.reach), score.reach, 32)
    lost = _CARE * score.variance / (4 * sizes) * min(cells, _ONE_OF)
    lost[-1] = 0.0
    lengths = 2 * np.sqrt(score.variance / size + score.extra + (sizes * unit / size) ** 2) + lost
    best = int(np.argmin(lengths))
    return Clip(0.0, float(sizes[best]), float(lost[best]))


def free_clip(variance: float, extra: float, size: float, unit: float) -> float:
    """Return the clip whose noise adds little to the other errors of the mean of `size` scores."""
    return _SPARE * sqrt(variance / size + extra) * size / unit


def whole_range(score: ArmScore) -> Clip:
    """Return the clip that cuts nothing off: all outcomes, around the middle of their range."""
    return Clip(-score.mean, 1.0)


def within_range(clip: Clip, score: ArmScore) -> Clip:
    """Return the part of a clip in which outcomes can lie."""
    low = max(clip.centre - clip.size, -1 - score.mean)
    high = min(clip.centre + clip.size, 1 - score.mean)
    return Clip((low + high) / 2, (high - low) / 2, clip.lost)


def chosen_clip(
    ends: Floats,
    counts: Floats,
    sd: float,
    rows: int,
    cells: int,
    unit: float,
    extra: float = 0.0,
    part_reached: float = 1.0,
) -> Clip:
    """Return the clip of least expected error of the mean of one of `cells` equal cells.

    `unit` is the noise of a sum of scores clipped at one, `extra` the variance of other errors of that mean. The
    histogram has how far scores could reach, of whose mean square theirs is `part_reached`: no more than that part of
    what lies beyond a clip is lost, (x - C)+ <= x^2 (r - C)/r^2 for 0 <= x <= r <= 2 C. Post-processing of released
    counts.
    """
    seen = _shown(counts, sd)
    if seen.sum() <= 0:
        return Clip(0.0, float(ends[-2]))
    middles = (ends[1:] + ends[:-1]) / 2
    part = seen / seen.sum()
    centre = part_reached * float(part @ middles)
    far, near = _distances(ends, centre)
    # Within a cell scores differ by as much as it is wide: where one alone is shown that is all there is.
    width = np.interp(centre, middles, np.gradient(middles))
    variance = part_reached * float(part @ (middles - centre) ** 2) + float(width) ** 2 / 12
    size = rows / cells
    furthest = max(float(far[seen > 0].max()), 3 * sqrt(variance))
    sizes = np.geomspace(_NEAREST * sqrt(variance), furthest, 32)
    part = part + _unseen(seen, sd) / rows
    # Scores of a cell are supposed to fill it evenly.
    over = np.clip(far - sizes[:, None], 0.0, far - near)
    cut = over**2 / (2 * (far - near)) + np.maximum(near - sizes[:, None], 0.0)
    beyond = cut @ part * min(cells, _ONE_OF) * part_reached
    errors = (sizes * unit / size) ** 2 + variance / size + (_CARE * beyond) ** 2
    best = max(float(sizes[np.argmin(errors)]), min(free_clip(variance, extra, size, unit), furthest))
    return Clip(centre, best, float(np.interp(best, sizes, beyond)))


def _distances(ends: Floats, centre: float) -> tuple[Floats, Floats]:
    """Return how far the further and the nearer end of every cell lie from a centre, 0 from inside a cell."""
    low, high = ends[:-1] - centre, ends[1:] - centre
    near = np.where((low < 0) & (high > 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.maximum(np.abs(low), np.abs(high)), near


def _shown(counts: Floats, sd: float) -> Floats:
    """Return the counts between the outermost cells that are surely occupied, and their neighbours; else 0.

    Outwards from there, scores end at the first cell whose count is below its noise.
    """
    sure = np.flatnonzero(counts > _SURE * sd)
    if not len(sure):
        return np.zeros(len(counts))
    low, high = int(sure[0]), int(sure[-1])
    while low > 0 and counts[low - 1] > _SEEN * sd:
        low -= 1
    while high < len(counts) - 1 and counts[high + 1] > _SEEN * sd:
        high += 1
    places = np.arange(len(counts))
    return np.where((places >= low) & (places <= high), np.maximum(counts, 0.0), 0.0)


def _unseen(seen: Floats, sd: float) -> Floats:
    """Return the rows supposed in cells beyond the outermost shown: as many as its noise hides, then half each."""
    shown = np.flatnonzero(seen)
    places = np.arange(len(seen))
    steps = np.maximum(shown[0] - places, places - shown[-1])
    return np.where(steps > 0, _HIDDEN * sd * 2.0 ** (1 - np.maximum(steps, 1)), 0.0)


Codes = NDArray[np.int64]


class Placing(Protocol):
    """Which cell every row of a block is in, by a public rule that reads each row by itself.

    `in_turn` says that the rule must be asked about one block after the other.
    """

    @property
    def in_turn(self) -> bool:
        """Whether blocks are to be placed one after the other."""
        ...

    def __call__(self, part: Part, /) -> Codes:
        """Return the cell of every row."""
        ...


@dataclass(frozen=True, slots=True)
class ArmPlaces:
    """Two cells for each that a rule makes: the untreated in the first."""

    placing: Placing

    @property
    def in_turn(self) -> bool:
        """As the rule says."""
        return self.placing.in_turn

    def __call__(self, part: Part, /) -> Codes:
        """Return the cell of every row."""
        return np.asarray(2 * self.placing(part) + part.treated)


@dataclass(frozen=True, slots=True)
class Cells:
    """Released numbers of every cell, in the units of the scores, and the standard deviations of their noise.

    `lost` is what clipping may take off a mean, `doubt` the variance that noise of the information adds to it.

    `totals` are sums of (psi - centre) over the cell's rows; their noise has no covariance with that of `sizes`.
    `treatment_residual` and `residual` are sums of what the models leave of treatment and outcome, where there are
    models.
    """

    sizes: Floats
    totals: Floats
    squares: Floats
    centre: float
    size_sd: float
    total_sd: float
    square_sd: float
    heavy: bool
    lost: float = 0.0
    doubt: float = 0.0
    treatment_residual: Floats | None = None
    residual: Floats | None = None
    treatment_residual_sd: float = 0.0
    residual_sd: float = 0.0


def cell_terms(models: bool, pure: bool) -> CellTerms:
    """Return the terms of a cell and their weights."""
    if not models:
        return SCORE_TERMS
    return PURE_MODEL_TERMS if pure else MODEL_TERMS


# Noise of a cell's sum of scores, and of its number of rows or squares, beside that of one of its terms.
SUM_NOISE, COUNT_NOISE = sqrt(2.0), sqrt(3.0)


def term_noise(budget: Budget, mechanism: str, share: Fraction, models: bool) -> float:
    """Return the noise of one term of a cell for a share of the budget; draws nothing."""
    plan = Plan.split(budget, {"cells": share, "rest": 1 - share}, mechanism)
    terms, amount = cell_terms(models, mechanism != "gaussian"), float(plan.amount("cells"))
    if mechanism == "gaussian":
        return float(terms.euclidean) / amount
    return sqrt(2.0) * float(terms.absolute) / amount


def sums_of_cells(
    records: TableRecords, score: Score, placing: Placing, cells: int, clip: Clip, further: int
) -> Sums:
    """Return the sums of `cell_sums`: counts, scores, squares and the further terms, (3 + further, cells)."""
    models = score.models_leave

    def rows() -> Iterator[CellBlock]:
        for part in records.parts():
            left = () if models is None else models(part)
            yield placing(part), (score.value(part) - clip.centre) / clip.size, left

    found = cell_sums(rows(), cells, further)
    return (np.array([found.counts, found.scores, found.squares, *found.further], dtype=object),)


def release_cells(
    gate: Gate, records: Records, score: Score, placing: Placing, cells: int, clip: Clip, pure: bool
) -> Cells:
    """Return the released cells; `placing` says which cell every row of a block is in, by a public rule."""
    terms = cell_terms(score.models_leave is not None, pure)
    arguments = (score, placing, cells, clip, len(terms.further))
    ((counts, scores, squares, *further),) = records.run(sums_of_cells, *arguments, in_turn=placing.in_turn)
    one = Fraction(1, 1 << TERM_BITS)
    sums = [(n, one * s, one * one * q) for n, s, q in zip(counts, scores, squares, strict=True)]
    values = [(n - 2 * s + q) / 4 for n, s, q in sums]
    values += [(n - q) / 2 for n, _, q in sums]
    values += [(n + 2 * s + q) / 4 for n, s, q in sums]
    for weight, totals in zip(terms.further, further, strict=True):
        values += [weight * one * total for total in totals]
    if pure:
        released = gate.release_cells("cells", values, terms.absolute)
    else:
        released = gate.release_vector("cells", values, terms.euclidean)
    return _scaled(released.floats().reshape(-1, cells), sqrt(released.variance), terms, clip, score, pure)


def _scaled(noisy: Floats, sd: float, terms: CellTerms, clip: Clip, score: Score, pure: bool) -> Cells:
    """Return the released numbers in the units of the scores."""
    low, middle, high = noisy[:3]
    found = Cells(
        low + middle + high,
        (high - low) * clip.size,
        (low - middle + high) * clip.size**2,
        clip.centre,
        sd * COUNT_NOISE,
        sd * SUM_NOISE * clip.size,
        sd * COUNT_NOISE * clip.size**2,
        pure,
        clip.lost,
    )
    if not terms.further:
        return found
    units = [bound / float(weight) for bound, weight in zip(score.left_bounds, terms.further, strict=True)]
    return replace(
        _whole_effects(found, noisy[5] * units[2], sd * units[2]),
        treatment_residual=noisy[3] * units[0],
        residual=noisy[4] * units[1],
        treatment_residual_sd=sd * units[0],
        residual_sd=sd * units[1],
    )


def _whole_effects(cells: Cells, information: Floats, sd: float) -> Cells:
    """Return the cells with scores divided by their mean information, so that they move as much as effects do."""
    count = sqrt(len(cells.sizes))
    whole = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    noise = (sd * count / whole) ** 2
    part = _INFORMATION_SD**2 / (_INFORMATION_SD**2 + noise)
    by = float(np.clip(1 + part * (float(information.sum()) / whole - 1), *_INFORMATION))
    mean = (cells.centre + float(cells.totals.sum()) / whole) / by
    return replace(
        cells,
        totals=cells.totals / by,
        squares=cells.squares / by**2,
        centre=cells.centre / by,
        total_sd=cells.total_sd / by,
        square_sd=cells.square_sd / by**2,
        lost=cells.lost / by,
        doubt=part * noise * (mean / by) ** 2,
    )


def cell_variances(cells: Cells) -> Floats:
    """Return the variance of the scores in every cell, drawn towards that of all where the cell's own is noise.

    The variance of all is taken for no less than the standard deviation of its own noise.
    """
    count = sqrt(len(cells.sizes))
    whole = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    mean = float(cells.totals.sum()) / whole
    noise = float(_squares_noise(cells, np.array(mean))) * count / whole
    shared = max(float(cells.squares.sum()) / whole - mean**2, noise, 1e-12)
    sizes = np.maximum(cells.sizes, 3 * cells.size_sd)
    means = cells.totals / sizes
    own = np.maximum(cells.squares / sizes - means**2, 0.0)
    # Variances of cells are assumed to differ by about a half of what they have in common.
    doubt = (_squares_noise(cells, means) / sizes) ** 2
    part = (shared / 2) ** 2 / ((shared / 2) ** 2 + doubt)
    return np.asarray(part * own + (1 - part) * shared)


def _squares_noise(cells: Cells, m: Floats) -> Floats:
    """Return the noise of Q - 2 m S + m^2 N; that of Q and N has a correlation of one third."""
    q, t, n = cells.square_sd, cells.total_sd, cells.size_sd
    return np.asarray(np.sqrt(q**2 + (2 * m * t) ** 2 + (m**2 * n) ** 2 + 2 * m**2 * q * n / 3))


def model_errors(cells: Cells, score: Score) -> tuple[Floats, Floats]:
    """Return what errors of the models add to every cell's total, as far as it shows, and the variance left.

    The mean score of a cell is wrong by weight times (error of the propensity) times (error of the outcome's
    model), both averaged over the cell; the released sums of what the models leave estimate the two.
    """
    none = np.zeros(len(cells.sizes))
    if not isinstance(score, AdjustedScore) or cells.treatment_residual is None or cells.residual is None:
        return none, none + score.extra
    sizes = np.maximum(cells.sizes, 3 * cells.size_sd)
    treatment, outcome = cells.treatment_residual / sizes, cells.residual / sizes
    # Who was treated, and outcomes, vary by chance as well.
    treatment_doubt = (cells.treatment_residual_sd / sizes) ** 2 + 0.25 / sizes
    outcome_doubt = (cells.residual_sd / sizes) ** 2 + score.residual_bound**2 / 9 / sizes
    supposed = np.maximum(score.doubt, treatment**2 - treatment_doubt)
    part = supposed / (supposed + treatment_doubt)
    shift = score.weight * part * treatment * outcome
    left = score.weight**2 * (part * treatment_doubt * outcome**2 + outcome_doubt * (part * treatment) ** 2)
    return shift * sizes, left + score.extra + cells.doubt
