"""Where scores are clipped before they are summed by cell, from a released histogram of them or without one.

With C the clip, u the noise of a sum of scores clipped at one, n the rows of a cell and V the variance of
scores, the error of a cell's mean is about

    V / n + (C u / n)^2 + (what the clip loses)^2,

whose least value gives the clip. Everything is post-processing of released numbers, in units of scores
(outcomes in half their range). The numbers of this rule were chosen on designs of `experiments/groups`; they
steer the lengths of intervals, and privacy does not depend on them.

The first term is sampling, the second noise, which grows with the clip, the third the bias of clipping.
Privacy of the histogram: `rows/histogram.proof.md`; of the clipped sums:
`rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.histogram import HELD, beyond
from counterveil.estimators.moments.group_score import MeanScore, Score
from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.cell_scores import release_score_counts
from counterveil.rows.records import Records
from counterveil.session import Gate

# Edges fall by this factor from the largest score downwards, so many of them on either side.
_RATIO = 2**-0.5
_EDGES = 18
# A cell is surely occupied from so many standard deviations of its noise; beside such a one, from so many.
_SURE = 3.3
_SEEN = 1.0
# What clipping takes off counts this many times beside the noise when clips are compared, and may lie in one cell
# out of at most so many.
_CARE = 1.5
_ONE_OF = 4
# The nearest clip, in standard deviations of the scores; and the nearest without a histogram.
_NEAREST = 2.0
_BLIND = 3.5
# A clip is as long as noise allows that adds this part of the other errors.
_SPARE = 0.25
# A histogram is worth its price where the noise of a cell is below this part of the rows.
RESOLVED = 1 / 400


@dataclass(frozen=True, slots=True)
class CellClip:
    """Scores are taken as (psi - centre) / size, clipped to [-1, 1].

    Attributes
    ----------
    centre, size : float
        Of the clip, in units of scores.
    lost : float
        What clipping may take off the mean of the scores that a histogram shows.
    hidden : float
        Standard deviation of what it takes off those that noise hides.
    """

    centre: float
    size: float
    lost: float = 0.0
    hidden: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoreHistogram:
    """Noisy counts of scores between public ends of cells, and the standard deviation of their noise."""

    ends: Floats
    counts: Floats
    sd: float


def edges_of(largest_score: float) -> Floats:
    """Return the public edges of the histogram, from minus the largest score to the largest."""
    up = largest_score * _RATIO ** np.arange(_EDGES - 1, -1, -1)
    return np.concatenate([-up[::-1], up])


def release_histogram(gate: Gate, records: Records, score: Score, pure: bool) -> ScoreHistogram:
    """Return the noisy histogram of scores; the outermost cells are as long as if there were one more edge."""
    edges = edges_of(score.largest_score)
    released = release_score_counts(gate, records, score.rows, edges=edges, pure=pure)
    ends = np.concatenate([[edges[0] / _RATIO], edges, [edges[-1] / _RATIO]])
    return ScoreHistogram(ends, released.floats(), sqrt(released.variance))


def clip_without_histogram(score: Score, *, rows: int, cells: int, unit: float) -> CellClip:
    """Return the clip of the shortest expected interval from moments released before.

    `unit` is the noise of a sum of scores clipped at one.

    A clip at C takes at most the mean square over 4 C off a mean, (x - C)+ <= x^2 / (4 C): that of all scores where few
    people carry the outcome, else what noise may hide of it.
    """
    size = rows / cells
    variance = score.variance
    nearest = min((1.0 if score.heavy_tailed else _BLIND) * sqrt(variance), score.largest_score)
    sizes = np.geomspace(nearest, score.largest_score, 32)
    lost = (_CARE * variance if score.heavy_tailed else 0.0) / (4 * sizes) * min(cells, _ONE_OF)
    hidden = HELD * score.unseen(variance) / (4 * sizes)
    lost[-1] = hidden[-1] = 0.0
    errors = variance / size + score.extra + (sizes * unit / size) ** 2 + hidden**2
    best = float(sizes[np.argmin(2 * np.sqrt(errors) + lost)])
    clip = max(best, min(free_clip(variance, score.extra, size, unit), score.largest_score))
    return CellClip(0.0, clip, float(np.interp(clip, sizes, lost)), float(np.interp(clip, sizes, hidden)))


def free_clip(variance: float, extra: float, size: float, unit: float) -> float:
    """Return the clip whose noise adds little to the other errors of the mean of `size` scores."""
    return _SPARE * sqrt(variance / size + extra) * size / unit


def within_range(clip: CellClip, score: MeanScore) -> CellClip:
    """Return the part of a clip in which outcomes can lie."""
    low = max(clip.centre - clip.size, -1 - score.mean)
    high = min(clip.centre + clip.size, 1 - score.mean)
    return replace(clip, centre=(low + high) / 2, size=(high - low) / 2)


def chosen_clip(histogram: ScoreHistogram, score: Score, *, rows: int, cells: int, unit: float) -> CellClip:
    """Return the clip of least expected error of the mean of one of `cells` equal cells.

    `unit` is the noise of a sum of scores clipped at one. The histogram has how far scores could reach, of whose mean
    square theirs is `part_reached`: no more than that part of what lies beyond a clip is lost, (x - C)+ <=
    x^2 (r - C)/r^2 for 0 <= x <= r <= 2 C. What the histogram does not show, noise may hide: a clip loses what counts
    there say, or the noise in that, and at most its mean square over 4 C. Post-processing of released counts.
    """
    ends = histogram.ends
    counts = histogram.counts
    sd = histogram.sd
    extra = score.extra
    part_reached = score.part_reached
    shown = _shown(counts, sd)
    if shown.sum() <= 0:
        return CellClip(0.0, float(ends[-2]))
    middles = (ends[1:] + ends[:-1]) / 2
    weights = shown / shown.sum()
    centre = part_reached * float(weights @ middles)
    far, near = _distances(ends, centre)
    # Within a cell scores differ by as much as it is wide: where one alone is shown that is all there is.
    width = np.interp(centre, middles, np.gradient(middles))
    variance = part_reached * float(weights @ (middles - centre) ** 2) + float(width) ** 2 / 12
    size = rows / cells
    furthest = max(float(far[shown > 0].max()), 3 * sqrt(variance))
    sizes = np.geomspace(_NEAREST * sqrt(variance), max(furthest, float(ends[-2])), 48)
    held = beyond(counts, sd, np.where(shown == 0, np.abs(middles - centre), 0.0), sizes) / rows
    hidden = HELD * np.minimum(held, score.unseen(variance) / (4 * sizes))
    # Scores of a cell are supposed to fill it evenly.
    over = np.clip(far - sizes[:, None], 0.0, far - near)
    cut = over**2 / (2 * (far - near)) + np.maximum(near - sizes[:, None], 0.0)
    lost = cut @ weights * min(cells, _ONE_OF) * part_reached
    errors = (sizes * unit / size) ** 2 + variance / size + (_CARE * lost) ** 2 + hidden**2
    best = max(float(sizes[np.argmin(errors)]), min(free_clip(variance, extra, size, unit), furthest))
    return CellClip(centre, best, float(np.interp(best, sizes, lost)), float(np.interp(best, sizes, hidden)))


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
    cells = np.arange(len(counts))
    return np.where((cells >= low) & (cells <= high), np.maximum(counts, 0.0), 0.0)
