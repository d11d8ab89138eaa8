"""From rows to cells: which releases a form needs, what they pay, and the score that comes out of them.

Outcomes are in units of half their range. Plain: psi = (t - e)/(e(1-e)) (y - c) with the share treated e and a
mean outcome c. Adjusted: psi = (t - e(x)) (y - m(x) - b (t - e)) / (e(x)(1 - e(x))), to which b is added back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Backend, Study, Sums
from counterveil.data.features import feature_map
from counterveil.estimators.histogram import HELD, beyond
from counterveil.estimators.moments.adjustment_budget import ChainSplit, Design, split
from counterveil.estimators.moments.nuisance_models import (
    LONGEST_RESIDUAL,
    Nuisances,
    first_models,
    refined,
    residual_clip,
)
from counterveil.estimators.moments.scaling import is_near_bound, scaling_of, standard_rows
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import denoised
from counterveil.numerics.products import FeatureMap, Standard
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Budget
from counterveil.results.question import Question
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2, release_counts, release_sums
from counterveil.rows.moments.feature_moments import release_moments
from counterveil.rows.moments.joint_gram import release_gram
from counterveil.rows.moments.residual_products import release_residuals
from counterveil.rows.moments.scores import (
    LOWEST,
    TERM_BITS,
    CellBlock,
    LinearModels,
    cell_sums,
    counts_between,
)
from counterveil.rows.moments.sensitivity import (
    MODEL_TERMS,
    PURE_MODEL_TERMS,
    SCORE_TERMS,
    SQUARE_WEIGHT,
    CellTerms,
)
from counterveil.rows.records import Part, Records, TableRecords
from counterveil.session import Gate, Kind, Plan
from counterveil.settings import Groups

# An arm with a smaller part of everybody than this is one of few people.
_FEW = 0.25


@dataclass(frozen=True, slots=True)
class PlainScore:
    """The score of a trial: share treated and mean outcome, without covariates.

    `share_sd` is the noise in the share, zero where the design declares it.
    """

    share: float
    mean: float
    share_sd: float
    square: float  # released mean square of the outcome, for the effect of the share's noise
    square_sd: float = 0.0
    models_leave: None = None
    left_bounds: tuple[float, ...] = ()
    part_reached: float = 1.0

    @property
    def offset(self) -> float:
        """Nothing is taken out of a plain score."""
        return 0.0

    @property
    def largest_score(self) -> float:
        """The largest plain score."""
        return (1 + abs(self.mean)) / min(self.share, 1 - self.share)

    @property
    def heavy_tailed(self) -> bool:
        """Whether the mean outcome lies near an end of its range, or few are in one of the arms."""
        return is_near_bound(self.mean) or not _FEW < self.share < 1 - _FEW

    @property
    def variance(self) -> float:
        """About the variance of the scores of the smaller arm, which are the larger ones."""
        return _variance(self.square, self.mean) / min(self.share, 1 - self.share) ** 2

    def unseen(self, seen: float) -> float:
        """Return the mean square of scores that a histogram with this variance may not show, or the noise in it."""
        weight = 1 / (self.share * (1 - self.share))
        return max(weight * (self.square - self.mean**2) - seen, weight * self.square_sd)

    @property
    def extra(self) -> float:
        """The share's noise meets the distance of a group's mean outcome from that of everybody.

        That is not taken for more than a standard deviation of the outcome.
        """
        return _variance(self.square, self.mean) * (self.share_sd / (self.share * (1 - self.share))) ** 2

    @property
    def bias(self) -> float:
        """None."""
        return 0.0

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        e = self.share
        return np.asarray(np.where(part.treated, 1 / e, -1 / (1 - e)) * (part.y - self.mean))

    placed = value


@dataclass(frozen=True, slots=True)
class AdjustedScore:
    """The doubly robust score of two linear models with one effect in common.

    `weight` multiplies e(1-e)/(e(x)(1-e(x))), e being the share treated; `residual_bound` is where residuals
    are clipped when their sums are released, `residual_variance` no less than their variance;
    `propensity_error_variance` is that of a group's propensity; `heavy_tailed` says that few people carry the outcome.
    """

    standard: Standard
    models: LinearModels
    least: float  # propensities are kept this far from 0 and 1
    residual_bound: float
    residual_variance: float
    propensity_error_variance: float
    extra: float
    bias: float
    heavy_tailed: bool = False
    hidden: float = 0.0

    def unseen(self, _seen: float) -> float:
        """Return the mean square of scores that noise may hide."""
        return 0.0 if self.heavy_tailed else self.weight * self.hidden

    @property
    def offset(self) -> float:
        """The effect that the outcome's model has in common for all."""
        return self.models.effect

    @property
    def largest_score(self) -> float:
        """The longest residual with the largest weight; only errors of the models go beyond."""
        return LONGEST_RESIDUAL * self.largest_weight

    @property
    def part_reached(self) -> float:
        """The mean square of residuals as a part of the longest one's, where the histogram has that."""
        return min(self.residual_variance / LONGEST_RESIDUAL**2, 1.0) if self.heavy_tailed else 1.0

    @property
    def largest_weight(self) -> float:
        """The largest weight of a residual, at the ends of what released propensities can be."""
        standard, slopes = self.standard, np.abs(self.models.shrunk[1:])
        furthest = np.minimum((1 + np.abs(standard.centre)) / standard.scale, standard.limit)
        spread = min(float(slopes @ furthest), sqrt(standard.squared_length) * float(np.linalg.norm(slopes)))
        middle = self.models.share + float(self.models.shrunk[0])
        return max(
            (1 - e) / (kept * (1 - kept))
            for e in (max(LOWEST, middle - spread), max(LOWEST, 1 - middle - spread))
            for kept in (min(max(e, self.least), 1 - self.least),)
        )

    @property
    def variance(self) -> float:
        """About the variance of the scores."""
        return self.residual_variance * self.weight

    @property
    def weight(self) -> float:
        """A typical weight of a residual."""
        return 1 / (self.models.share * (1 - self.models.share))

    @property
    def left_bounds(self) -> tuple[float, ...]:
        """Bounds of what is left of treatment and outcome, and of the information."""
        share = self.models.share
        return 1.0, self.residual_bound, self.largest_weight * max(share, 1 - share)

    def value(self, part: Part, /) -> Floats:
        """Return the scores of a block of rows."""
        u, t = part.u(self.standard), part.treated.astype(np.float64)
        return np.asarray(self._weights(u, t) * self.models.residual(u, t, part.y))

    def placed(self, part: Part, /) -> Floats:
        """Return the scores, or where few people carry the outcome what they would be for the longest residual."""
        if not self.heavy_tailed:
            return self.value(part)
        return LONGEST_RESIDUAL * self._weights(part.u(self.standard), part.treated.astype(np.float64))

    def _weights(self, u: Floats, t: Floats) -> Floats:
        e = np.clip(self.models.score(u), self.least, 1 - self.least)
        return np.asarray(self.models.treatment_residual(u, t) / (e * (1 - e)))

    def models_leave(self, part: Part) -> tuple[Floats, ...]:
        """Return what the models leave of treatment and outcome, and how much a score moves with the effect.

        All as parts of their bounds. Scores move by the last, the information, where every effect moves by one: by
        less on average where propensities are shrunk or kept away from 0 and 1.
        """
        u, t = part.u(self.standard), part.treated.astype(np.float64)
        left = self.models.treatment_residual(u, t), self.models.residual(u, t, part.y)
        terms = (*left, self._weights(u, t) * (t - self.models.share))
        return tuple(term / bound for term, bound in zip(terms, self.left_bounds, strict=True))


@dataclass(frozen=True, slots=True)
class MeanScore:
    """Outcomes around a released mean, or around the middle of their range, for cells that are arms of groups."""

    mean: float = 0.0
    square: float = 1.0
    square_sd: float = 0.0
    offset: float = 0.0
    extra: float = 0.0
    bias: float = 0.0
    models_leave: None = None
    left_bounds: tuple[float, ...] = ()
    part_reached: float = 1.0

    @property
    def heavy_tailed(self) -> bool:
        """Whether the mean outcome lies near an end of its range."""
        return is_near_bound(self.mean)

    @property
    def variance(self) -> float:
        """About the variance of the outcomes."""
        return _variance(self.square, self.mean)

    def unseen(self, seen: float) -> float:
        """Return the mean square of outcomes that a histogram with this variance may not show, or the noise in it."""
        return max(self.square - self.mean**2 - seen, self.square_sd)

    @property
    def largest_score(self) -> float:
        """The largest distance of an outcome from the mean."""
        return 1 + abs(self.mean)

    def value(self, part: Part, /) -> Floats:
        """Return the outcomes of a block of rows, less the mean."""
        return np.asarray(part.y - self.mean)

    placed = value


# Scores of rows, from public and released numbers alone.
Score: TypeAlias = PlainScore | AdjustedScore | MeanScore


def _variance(square: float, mean: float) -> float:
    # Where noise hides the variance, a fifth of half the range stands in.
    return max(square - mean**2, 0.04)


# Edges fall by this factor from the largest score downwards.
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
# A histogram is worth its price where the noise of a cell is below this part of the rows.
RESOLVED = 1 / 400


@dataclass(frozen=True, slots=True)
class ScoreClip:
    """Scores are taken as (psi - centre) / size, clipped to [-1, 1].

    `lost` is what that may take off the mean of those seen; `hidden` a standard deviation of what it takes off those
    that noise hides.
    """

    centre: float
    size: float
    lost: float = 0.0
    hidden: float = 0.0


def edges_of(largest_score: float) -> Floats:
    """Return the public edges of the histogram, from minus the largest score to the largest."""
    up = largest_score * _RATIO ** np.arange(_EDGES - 1, -1, -1)
    return np.concatenate([-up[::-1], up])


def score_counts(records: TableRecords, score: Score, edges: Floats) -> Sums:
    """Return how many scores lie between every two edges, as `placed` has them."""
    return (counts_between(edges, (score.placed(part) for part in records.parts())),)


def release_histogram(gate: Gate, records: Records, score: Score, pure: bool) -> tuple[Floats, Floats, float]:
    """Return the ends of the cells, how many rows they hold (noisy), and the noise's standard deviation."""
    edges = edges_of(score.largest_score)
    (counts,) = records.run(score_counts, score, edges)
    released = release_counts(gate, "histogram", counts, pure)
    ends = np.concatenate([[edges[0] / _RATIO], edges, [edges[-1] / _RATIO]])
    return ends, released.floats(), sqrt(released.variance)


def clip_without_histogram(score: Score, rows: int, cells: int, unit: float) -> ScoreClip:
    """Return the clip of the shortest expected interval from moments released before; `unit` as below.

    A clip at C takes at most the mean square over 4 C off a mean, (x - C)+ <= x^2 / (4 C): that of all scores where few
    people carry the outcome, else what noise may hide of it.
    """
    size, variance = rows / cells, score.variance
    nearest = min((1.0 if score.heavy_tailed else _BLIND) * sqrt(variance), score.largest_score)
    sizes = np.geomspace(nearest, score.largest_score, 32)
    lost = (_CARE * variance if score.heavy_tailed else 0.0) / (4 * sizes) * min(cells, _ONE_OF)
    hidden = HELD * score.unseen(variance) / (4 * sizes)
    lost[-1] = hidden[-1] = 0.0
    errors = variance / size + score.extra + (sizes * unit / size) ** 2 + hidden**2
    best = float(sizes[np.argmin(2 * np.sqrt(errors) + lost)])
    clip = max(best, min(free_clip(variance, score.extra, size, unit), score.largest_score))
    return ScoreClip(0.0, clip, float(np.interp(clip, sizes, lost)), float(np.interp(clip, sizes, hidden)))


def free_clip(variance: float, extra: float, size: float, unit: float) -> float:
    """Return the clip whose noise adds little to the other errors of the mean of `size` scores."""
    return _SPARE * sqrt(variance / size + extra) * size / unit


def within_range(clip: ScoreClip, score: MeanScore) -> ScoreClip:
    """Return the part of a clip in which outcomes can lie."""
    low = max(clip.centre - clip.size, -1 - score.mean)
    high = min(clip.centre + clip.size, 1 - score.mean)
    return replace(clip, centre=(low + high) / 2, size=(high - low) / 2)


def chosen_clip(
    ends: Floats,
    counts: Floats,
    sd: float,
    rows: int,
    cells: int,
    unit: float,
    score: Score,
) -> ScoreClip:
    """Return the clip of least expected error of the mean of one of `cells` equal cells.

    `unit` is the noise of a sum of scores clipped at one. The histogram has how far scores could reach, of whose mean
    square theirs is `part_reached`: no more than that part of what lies beyond a clip is lost, (x - C)+ <=
    x^2 (r - C)/r^2 for 0 <= x <= r <= 2 C. What the histogram does not show, noise may hide: a clip loses what counts
    there say, or the noise in that, and at most its mean square over 4 C. Post-processing of released counts.
    """
    extra, part_reached = score.extra, score.part_reached
    seen = _shown(counts, sd)
    if seen.sum() <= 0:
        return ScoreClip(0.0, float(ends[-2]))
    middles = (ends[1:] + ends[:-1]) / 2
    part = seen / seen.sum()
    centre = part_reached * float(part @ middles)
    far, near = _distances(ends, centre)
    # Within a cell scores differ by as much as it is wide: where one alone is shown that is all there is.
    width = np.interp(centre, middles, np.gradient(middles))
    variance = part_reached * float(part @ (middles - centre) ** 2) + float(width) ** 2 / 12
    size = rows / cells
    furthest = max(float(far[seen > 0].max()), 3 * sqrt(variance))
    sizes = np.geomspace(_NEAREST * sqrt(variance), max(furthest, float(ends[-2])), 48)
    held = beyond(counts, sd, np.where(seen == 0, np.abs(middles - centre), 0.0), sizes) / rows
    hidden = HELD * np.minimum(held, score.unseen(variance) / (4 * sizes))
    # Scores of a cell are supposed to fill it evenly.
    over = np.clip(far - sizes[:, None], 0.0, far - near)
    cut = over**2 / (2 * (far - near)) + np.maximum(near - sizes[:, None], 0.0)
    lost = cut @ part * min(cells, _ONE_OF) * part_reached
    errors = (sizes * unit / size) ** 2 + variance / size + (_CARE * lost) ** 2 + hidden**2
    best = max(float(sizes[np.argmin(errors)]), min(free_clip(variance, extra, size, unit), furthest))
    return ScoreClip(centre, best, float(np.interp(best, sizes, lost)), float(np.interp(best, sizes, hidden)))


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


Codes = NDArray[np.int64]


class Placing(Protocol):
    """Which cell every row of a block is in, by a public rule that reads each row by itself.

    `sequential` says that the rule must be asked about one block after the other.
    """

    @property
    def sequential(self) -> bool:
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
    def sequential(self) -> bool:
        """As the rule says."""
        return self.placing.sequential

    def __call__(self, part: Part, /) -> Codes:
        """Return the cell of every row."""
        return np.asarray(2 * self.placing(part) + part.treated)


@dataclass(frozen=True, slots=True)
class Tallies:
    """Released numbers of every cell, in the units of the scores, and the standard deviations of their noise.

    `lost` is what clipping may take off a mean, `noise_variance` that of what clipping hides and of noisy information.

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
    noise_variance: Floats | float = 0.0
    treatment_residual: Floats | None = None
    residual: Floats | None = None
    treatment_residual_sd: float = 0.0
    residual_sd: float = 0.0

    @property
    def safe_sizes(self) -> Floats:
        """Sizes to divide by: none is taken for less than three standard deviations of its noise."""
        return np.maximum(self.sizes, 3 * self.size_sd)


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
    records: TableRecords, score: Score, placing: Placing, cells: int, clip: ScoreClip, further: int
) -> Sums:
    """Return the sums of `cell_sums`: counts, scores, squares and the further terms, (3 + further, cells)."""
    models = score.models_leave

    def rows() -> Iterator[CellBlock]:
        for part in records.parts():
            left = () if models is None else models(part)
            yield placing(part), (score.value(part) - clip.centre) / clip.size, left

    return cell_sums(rows(), cells, further)


def release_cells(
    gate: Gate, records: Records, score: Score, placing: Placing, cells: int, clip: ScoreClip, pure: bool
) -> Tallies:
    """Return the released cells; `placing` says which cell every row of a block is in, by a public rule."""
    terms = cell_terms(score.models_leave is not None, pure)
    arguments = (score, placing, cells, clip, len(terms.further))
    ((counts, scores, squares, *further),) = records.run(
        sums_of_cells, *arguments, sequential=placing.sequential
    )
    one = Fraction(1, 1 << TERM_BITS)
    sums = [(n, one * s, one * one * q) for n, s, q in zip(counts, scores, squares, strict=True)]
    values = [(n - 2 * s + q) / 4 for n, s, q in sums]
    values += [(n - q) / 2 for n, _, q in sums]
    values += [(n + 2 * s + q) / 4 for n, s, q in sums]
    for weight, totals in zip(terms.further, further, strict=True):
        values += [weight * one * total for total in totals]
    released = release_sums(gate, "cells", values, pure, terms.absolute, terms.euclidean)
    return _scaled(released.floats().reshape(-1, cells), sqrt(released.variance), terms, clip, score, pure)


def _scaled(noisy: Floats, sd: float, terms: CellTerms, clip: ScoreClip, score: Score, pure: bool) -> Tallies:
    """Return the released numbers in the units of the scores."""
    low, middle, high = noisy[:3]
    found = Tallies(
        low + middle + high,
        (high - low) * clip.size,
        (low - middle + high) * clip.size**2,
        clip.centre,
        sd * COUNT_NOISE,
        sd * SUM_NOISE * clip.size,
        sd * COUNT_NOISE * clip.size**2,
        pure,
        clip.lost,
        clip.hidden**2,
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


def _whole_effects(cells: Tallies, information: Floats, sd: float) -> Tallies:
    """Return the cells with scores divided by their mean information, so that they move as much as effects do."""
    count = sqrt(len(cells.sizes))
    whole = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    noise = (sd * count / whole) ** 2
    part = _INFORMATION_SD**2 / (_INFORMATION_SD**2 + noise)
    by = float(np.clip(1 + part * (float(information.sum()) / whole - 1), *_INFORMATION))
    means = (cells.centre + cells.totals / cells.safe_sizes) / by
    return replace(
        cells,
        totals=cells.totals / by,
        squares=cells.squares / by**2,
        centre=cells.centre / by,
        total_sd=cells.total_sd / by,
        square_sd=cells.square_sd / by**2,
        lost=cells.lost / by,
        noise_variance=cells.noise_variance / by**2 + part * noise * (means / by) ** 2,
    )


def cell_variances(cells: Tallies) -> Floats:
    """Return the variance of the scores in every cell, shrunk towards that of all where the cell's own is noise.

    The variance of all is taken for no less than the standard deviation of its own noise.
    """
    count = sqrt(len(cells.sizes))
    whole = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    mean = float(cells.totals.sum()) / whole
    noise = float(_squares_noise(cells, np.array(mean))) * count / whole
    shared = max(float(cells.squares.sum()) / whole - mean**2, noise, 1e-12)
    sizes = cells.safe_sizes
    means = cells.totals / sizes
    own = np.maximum(cells.squares / sizes - means**2, 0.0)
    # Variances of cells are assumed to differ by about a half of what they have in common.
    noise_variance = (_squares_noise(cells, means) / sizes) ** 2
    part = (shared / 2) ** 2 / ((shared / 2) ** 2 + noise_variance)
    return np.asarray(part * own + (1 - part) * shared)


def _squares_noise(cells: Tallies, m: Floats) -> Floats:
    """Return the noise of Q - 2 m S + m^2 N; that of Q and N has a correlation of one third."""
    q, t, n = cells.square_sd, cells.total_sd, cells.size_sd
    return np.asarray(np.sqrt(q**2 + (2 * m * t) ** 2 + (m**2 * n) ** 2 + 2 * m**2 * q * n / 3))


def model_errors(cells: Tallies, score: Score) -> tuple[Floats, Floats]:
    """Return what errors of the models add to every cell's total, as far as it shows, and the variance left.

    The mean score of a cell is wrong by weight times (error of the propensity) times (error of the outcome's
    model), both averaged over the cell; the released sums of what the models leave estimate the two. Both results are
    of a cell of its `safe_sizes`: the variance left in a total is that of the mean times these squared.
    """
    none = np.zeros(len(cells.sizes))
    if not isinstance(score, AdjustedScore) or cells.treatment_residual is None or cells.residual is None:
        return none, none + score.extra + cells.noise_variance
    sizes = cells.safe_sizes
    treatment, outcome = cells.treatment_residual / sizes, cells.residual / sizes
    # Who was treated, and outcomes, vary by chance as well.
    treatment_noise_variance = (cells.treatment_residual_sd / sizes) ** 2 + 0.25 / sizes
    outcome_noise_variance = (cells.residual_sd / sizes) ** 2 + score.residual_bound**2 / 9 / sizes
    supposed = np.maximum(score.propensity_error_variance, treatment**2 - treatment_noise_variance)
    part = supposed / (supposed + treatment_noise_variance)
    shift = score.weight * part * treatment * outcome
    left = score.weight**2 * (
        part * treatment_noise_variance * outcome**2 + outcome_noise_variance * (part * treatment) ** 2
    )
    return shift * sizes, left + score.extra + cells.noise_variance


PAGE = "rows/moments/group_scores.proof.md"
_MODEL_PAGES = (
    "rows/moments/record_moments.proof.md",
    "rows/histogram.proof.md",
    "rows/moments/free_gram.proof.md",
    "rows/moments/orthogonal_score.proof.md",
)
# Parts of the budget: mean outcome, and with the share treated where scores need one that no design declares; histogram
# of scores; models of treatment and outcome; histogram of a ranking. An error of the share is in all scores.
_CENTRE, _SHARE = Fraction(3, 100), Fraction(15, 100)
_HISTOGRAM, _MODELS = Fraction(4, 100), Fraction(35, 100)
_RANKS = Fraction(5, 100)
# Of a histogram of outcomes, where the usual part does not show where they end.
_LARGE_HISTOGRAM = Fraction(10, 100)
# Squared length of the mean of a group's standardised rows, the constant included.
_LENGTH = 3.0
# Modelled propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.1
# Effects are supposed to differ along so many directions of the covariates, out of all of them.
_DIRECTIONS = 1


@dataclass(frozen=True, slots=True)
class Scoring:
    """A form, its public numbers and its plan; `run` is called once inside the gate."""

    form: str
    plan: Plan
    study: Study
    source: Backend
    settings: Groups
    features: FeatureMap
    design: Design
    split: ChainSplit | None

    @property
    def pure(self) -> bool:
        """Whether the guarantee is pure."""
        return self.design.pure

    @property
    def pages(self) -> tuple[str, ...]:
        """The proofs of what is released, and of the noise."""
        mechanisms = ("mechanisms/laplace.proof.md", "mechanisms/ball.proof.md")
        own = (PAGE, *_MODEL_PAGES) if self.form == "adjusted" else (PAGE, _MODEL_PAGES[0])
        return (*own, *(mechanisms if self.pure else ("mechanisms/gaussian.proof.md",)))

    def _released(self, name: str) -> bool:
        return any(name == one for one, _ in self.plan.amounts)

    def unit(self) -> float:
        """Return the noise of a sum of scores clipped at one; draws nothing."""
        terms = cell_terms(self.form == "adjusted", self.pure)
        if self.pure:
            return SUM_NOISE * sqrt(2.0) * float(terms.absolute / self.plan.amount("cells", Kind.CELLS))
        return SUM_NOISE * sqrt(self.plan.coordinate_noise("cells", terms.euclidean).variance)

    def run(self, gate: Gate, placing: Placing, cells: int, one_mean: bool = False) -> tuple[Tallies, Score]:
        """Return the released cells and the score that they hold; everything in them was released.

        With `one_mean` the clip is chosen for means over everybody rather than over a cell.
        """
        records = Records(self.source, self.features)
        score = self._score(gate, records)
        count = cells
        if self.form == "arms":
            count, placing = 2 * cells, ArmPlaces(placing)
        clip = self._clip(gate, records, score, 1 if one_mean else count)
        return release_cells(gate, records, score, placing, count, clip, self.pure), score

    def _clip(self, gate: Gate, records: Records, score: Score, cells: int) -> ScoreClip:
        if self.settings.clip is not None:
            low, high = self.study.outcome_range
            return ScoreClip(0.0, float(self.settings.clip / float(high - low) * 2))
        histogram = (
            release_histogram(gate, records, score, self.pure) if self._released("histogram") else None
        )
        rows, unit = self.source.rows, self.unit()
        if isinstance(score, MeanScore):
            if histogram is None or score.heavy_tailed:
                return ScoreClip(-score.mean, 1.0)  # cuts nothing off
            return within_range(chosen_clip(*histogram, rows, cells, unit, score), score)
        if score.heavy_tailed and isinstance(score, PlainScore):
            # Those few who carry the outcome are hidden by the noise of a histogram of scores.
            return ScoreClip(0.0, score.largest_score)
        if histogram is None:
            return clip_without_histogram(score, rows, cells, unit)
        return chosen_clip(*histogram, rows, cells, unit, score)

    def _score(self, gate: Gate, records: Records) -> Score:
        if self.split is not None:
            return _adjusted(gate, records, self.design, self.split, self.study.treated_share)
        if self.form == "arms" and not self._released("centre"):
            return MeanScore()
        moments = release_moments(gate, records, 0)
        mean = float(np.clip(moments.outcome, -1.0, 1.0))
        square = float(np.clip(moments.outcome_square, 0.0, 1.0))
        square_sd = moments.sd / float(SQUARE_WEIGHT)
        if self.form == "arms":
            return MeanScore(mean, square, square_sd, mean)
        declared = self.study.treated_share
        share = (1 + moments.treatment) / 2 if declared is None else float(declared)
        return PlainScore(
            float(np.clip(share, float(LEAST_SHARE), 1 - float(LEAST_SHARE))),
            mean,
            moments.sd / 2 if declared is None else 0.0,
            square,
            square_sd,
        )


def scoring(study: Study, source: Backend, question: Question, ranks: bool = False) -> Scoring:
    """Return the form with its plan, from public numbers alone; `ranks` buys a histogram of a ranking as well.

    The question's method is "scores", "arms" or "adjusted"; its settings are `Groups`, or None for the usual ones.
    """
    form, budget, mechanism = question.method, question.budget, question.mechanism
    settings = question.settings or Groups()
    features = feature_map(study, 1) if form == "adjusted" else FeatureMap(())
    design = Design(source.rows, features.size, budget, mechanism)
    histogram = (
        Fraction(0) if settings.clip is not None else _histogram_share(form, source.rows, budget, mechanism)
    )
    models = split(design) if form == "adjusted" else None
    shares: dict[str, Fraction] = {"histogram": histogram, "ranks": _RANKS if ranks else Fraction(0)}
    if models is None:
        # Sums by arm need no centre where the whole range is taken.
        whole = form == "arms" and settings.clip is None and not histogram
        share = _SHARE if form == "scores" and study.treated_share is None else _CENTRE
        shares["centre"] = Fraction(0) if whole else share
    else:
        shares |= _model_shares(models)
    shares["cells"] = 1 - sum(shares.values(), Fraction(0))
    kinds = dict.fromkeys(shares, Kind.VECTOR)
    if design.pure:
        kinds |= {name: Kind.CELLS for name in ("histogram", "ranks", "cells", "norms") if name in shares}
    plan = Plan.split(budget, shares, mechanism, kinds)
    return Scoring(form, plan, study, source, settings, features, design, models)


def _histogram_share(form: str, rows: int, budget: Budget, mechanism: str) -> Fraction:
    """Return the share of a histogram of scores: the usual one where it resolves them, else none.

    Sums by arm lose little to a larger one, which finds outcomes that fill a small part of their range.
    """
    for share in (_HISTOGRAM, _LARGE_HISTOGRAM) if form == "arms" else (_HISTOGRAM,):
        plan = Plan.split(budget, {"histogram": share, "rest": 1 - share}, mechanism)
        amount = float(plan.amount("histogram"))
        sd = float(COUNTS_L2) / amount if mechanism == "gaussian" else sqrt(2.0) * float(COUNTS_L1) / amount
        if sd <= RESOLVED * rows:
            return share
    return Fraction(0)


def _model_shares(models: ChainSplit) -> dict[str, Fraction]:
    """Return the shares of the models' releases, in the proportions that suit an effect on everyone."""
    kept = {name: share for name, share in models.shares if name != "score"}
    return {name: _MODELS * share / sum(kept.values()) for name, share in kept.items()}


def _adjusted(
    gate: Gate,
    records: Records,
    design: Design,
    models: ChainSplit,
    declared: Fraction | None,
) -> AdjustedScore:
    """Return the score of models that are fitted to noisy moments: centre, lengths, Gram, residuals."""
    moments, standard = standard_rows(gate, records, design)
    scaling = scaling_of(moments, 1 + standard.squared_length, models.treatment, models.outcome)
    second = release_gram(gate, records, standard, scaling)
    assert second.matrix is not None
    nuisances = first_models(second, scaling, denoised(second.matrix, second.entry_sd))
    for place in range(models.residual_passes):
        name = f"residual {place + 1}"
        clip = residual_clip(nuisances)
        nuisances = refined(
            nuisances, release_residuals(gate, name, records, standard, nuisances.models, clip)
        )
    if declared is not None:
        nuisances = _known_share(nuisances, float(declared))
    return AdjustedScore(
        standard,
        nuisances.models,
        _LEAST_PROPENSITY,
        residual_bound=residual_clip(nuisances),
        residual_variance=nuisances.residual_variance,
        propensity_error_variance=_LENGTH * nuisances.treatment_variance,
        extra=nuisances.treatment_variance * nuisances.product / nuisances.variance**2
        + _wrong_weights(nuisances),
        bias=nuisances.bias / nuisances.variance,
        heavy_tailed=nuisances.least_clip > 0,
        hidden=nuisances.hidden,
    )


def _wrong_weights(nuisances: Nuisances) -> float:
    """Return the variance that a wrong propensity adds through the weights, where effects differ in a group.

    A weight is wrong by the part (1 - 2e)/(e(1-e)) of the propensity's error; it multiplies how far effects
    lie from the one in common, whose mean square is at most the residual variance over e(1-e).
    """
    models = nuisances.models
    e = models.share
    varies = float(models.shrunk @ nuisances.gram.matrix @ models.shrunk)
    slope = ((1 - 2 * e) ** 2 + 4 * varies) / nuisances.variance**2
    error = min(1.0, _DIRECTIONS / len(models.shrunk)) * nuisances.gamma_error
    return error * slope * nuisances.residual_variance / nuisances.variance


def _known_share(nuisances: Nuisances, share: float) -> Nuisances:
    """Return the models with the propensity that the design declares."""
    models, none = nuisances.models, np.zeros_like(nuisances.models.treatment)
    known = replace(
        models,
        share=share,
        # Residuals are taken around effect times (t - share): what the share moves goes to the mean.
        mean=models.mean + models.effect * (share - models.share),
        treatment=none,
        shrunk=none,
    )
    return replace(
        nuisances,
        models=known,
        treatment_sd=0.0,
        gamma=0.0,
        gamma_error=0.0,
        noise_bias=0.0,
        raised_bias=0.0,
        variance=share * (1 - share),
    )
