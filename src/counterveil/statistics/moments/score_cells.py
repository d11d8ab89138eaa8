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
from counterveil.session import Gate
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.kernels.scores import TERM_BITS, CellBlock, cell_sums, counts_between
from counterveil.statistics.moments.records import Part, Records, TableRecords
from counterveil.statistics.moments.row_scores import AdjustedScore, Score
from counterveil.statistics.moments.sensitivity import (
    ABSOLUTE,
    ABSOLUTE_MODELS,
    EUCLIDEAN,
    EUCLIDEAN_MODELS,
    CellWeights,
)

# Where scores are clipped: chosen from a bought histogram on public geometric cells, by released numbers alone.


# Edges fall by this factor from the reach of the scores downwards.
_RATIO, _EDGES = 2**-0.5, 18
# A cell is surely occupied from so many standard deviations of its noise; beside such a one, from so many.
_SURE, _SEEN = 3.3, 1.0
# What clipping takes off counts this many times beside the noise when clips are compared, and may lie in one cell
# out of at most so many.
_CARE, _ONE_OF = 1.5, 4
# The nearest clip, in standard deviations of the scores; and where it is put without a histogram.
_NEAREST, _BLIND = 2.0, 3.5
# Part of the noise of a count that is supposed to hide rows in the first cell beyond those shown.
_HIDDEN = 0.1
# A histogram is worth its price where the noise of a cell is below this part of the rows.
_RESOLVED = 1 / 400


@dataclass(frozen=True, slots=True)
class Clip:
    """Scores are taken as (psi - centre) / size, clipped to [-1, 1]."""

    centre: float
    size: float


def edges_of(reach: float) -> Floats:
    """Return the public edges of the histogram, from -reach to reach."""
    up = reach * _RATIO ** np.arange(_EDGES - 1, -1, -1)
    return np.concatenate([-up[::-1], up])


def score_counts(records: TableRecords, score: Score, edges: Floats) -> Sums:
    """Return how many scores lie between every two edges."""
    return (counts_between(edges, (score.value(part) for part in records.parts())),)


def release_histogram(gate: Gate, records: Records, score: Score, pure: bool) -> tuple[Floats, Floats, float]:
    """Return a typical score of every cell, how many rows it holds (noisy), and the noise's standard deviation."""
    edges = edges_of(score.reach)
    (counts,) = records.run(score_counts, score, edges)
    released = release_counts(gate, "histogram", counts, pure)
    ends = np.concatenate([[edges[0] / _RATIO], edges, [edges[-1] / _RATIO]])
    return (ends[1:] + ends[:-1]) / 2, released.floats(), sqrt(released.variance)


def worth_a_histogram(rows: int, sd: float) -> bool:
    """Return whether a histogram with this noise would show where the scores end; public numbers only."""
    return sd <= _RESOLVED * rows


def clip_without_histogram(score: Score) -> Clip:
    """Return a clip a fixed number of standard deviations from the middle, from moments released before."""
    return Clip(0.0, min(_BLIND * sqrt(score.variance), score.reach))


def chosen_clip(middles: Floats, counts: Floats, sd: float, rows: int, cells: int, unit: float) -> Clip:
    """Return the clip of least expected error of the mean of one of `cells` equal cells.

    `unit` is the noise of a sum of scores clipped at one. Post-processing of released counts.
    """
    seen = _shown(counts, sd)
    if seen.sum() <= 0:
        return Clip(0.0, float(middles[-1]))
    part = seen / seen.sum()
    centre = float(part @ middles)
    away = np.abs(middles - centre)
    # Within a cell scores differ by as much as it is wide: where one alone is shown that is all there is.
    width = np.interp(centre, middles, np.gradient(middles))
    variance = float(part @ away**2) + float(width) ** 2 / 12
    size = rows / cells
    furthest = max(float(away[seen > 0].max()), 3 * sqrt(variance))
    sizes = np.geomspace(_NEAREST * sqrt(variance), furthest, 32)
    part = part + _unseen(seen, sd) / rows
    beyond = np.array([float(part @ np.maximum(away - at, 0.0)) for at in sizes]) * min(cells, _ONE_OF)
    errors = (sizes * unit / size) ** 2 + variance / size + (_CARE * beyond) ** 2
    return Clip(centre, float(sizes[np.argmin(errors)]))


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

    `totals` are sums of (psi - centre) over the cell's rows. `treatment_residual` and `residual` are sums of what the
    models leave of treatment and outcome, where there are models.
    """

    sizes: Floats
    totals: Floats
    squares: Floats
    centre: float
    size_sd: float
    total_sd: float
    square_sd: float
    heavy: bool
    treatment_residual: Floats | None = None
    residual: Floats | None = None
    treatment_residual_sd: float = 0.0
    residual_sd: float = 0.0


def cell_weights(models: bool, pure: bool) -> CellWeights:
    """Return the weights of the numbers of a cell."""
    if models:
        return ABSOLUTE_MODELS if pure else EUCLIDEAN_MODELS
    return ABSOLUTE if pure else EUCLIDEAN


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
    weights = cell_weights(score.models_leave is not None, pure)
    arguments = (score, placing, cells, clip, len(weights.further))
    ((counts, scores, squares, *further),) = records.run(sums_of_cells, *arguments, in_turn=placing.in_turn)
    one = Fraction(1, 1 << TERM_BITS)
    values = [weights.size * count for count in counts]
    values += [one * total for total in scores]
    values += [weights.square * one * one * total for total in squares]
    for weight, totals in zip(weights.further, further, strict=True):
        values += [weight * one * total for total in totals]
    if pure:
        released = gate.release_cells("cells", values, weights.absolute)
    else:
        released = gate.release_vector("cells", values, weights.euclidean)
    return _scaled(released.floats().reshape(-1, cells), sqrt(released.variance), weights, clip, score, pure)


def _scaled(noisy: Floats, sd: float, weights: CellWeights, clip: Clip, score: Score, pure: bool) -> Cells:
    """Return the released numbers in the units of the scores."""
    a, k = float(weights.size), float(weights.square)
    found = Cells(
        noisy[0] / a,
        noisy[1] * clip.size,
        noisy[2] * clip.size**2 / k,
        clip.centre,
        sd / a,
        sd * clip.size,
        sd * clip.size**2 / k,
        pure,
    )
    if not weights.further:
        return found
    units = [bound / float(weight) for bound, weight in zip(score.left_bounds, weights.further, strict=True)]
    return replace(
        found,
        treatment_residual=noisy[3] * units[0],
        residual=noisy[4] * units[1],
        treatment_residual_sd=sd * units[0],
        residual_sd=sd * units[1],
    )


def cell_variances(cells: Cells) -> Floats:
    """Return the variance of the scores in every cell, drawn towards that of all where the cell's own is noise."""
    whole = max(float(cells.sizes.sum()), 1.0)
    # No less than what noise alone may take off it.
    doubt = cells.square_sd * sqrt(len(cells.sizes)) / whole
    shared = max(float(cells.squares.sum()) / whole - (float(cells.totals.sum()) / whole) ** 2, doubt)
    sizes = np.maximum(cells.sizes, 3 * cells.size_sd)
    means = cells.totals / sizes
    own = np.maximum(cells.squares / sizes - means**2, 0.0)
    # Variances of cells are assumed to differ by about a half of what they have in common.
    own_doubt = (cells.square_sd / sizes) ** 2
    part = (shared / 2) ** 2 / ((shared / 2) ** 2 + own_doubt)
    return np.asarray(part * own + (1 - part) * max(shared, 1e-12))


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
    return shift * sizes, left + score.extra
