"""Where scores are clipped: chosen from a bought histogram on public geometric cells, by released numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate
from counterveil.estimators.groups.scores import Score
from counterveil.kernels.cell_sums import counts_between
from counterveil.sensitivity.group_scores import SPREAD_L1, SPREAD_L2

Floats = NDArray[np.float64]

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


def release_spread(gate: Gate, score: Score, pure: bool) -> tuple[Floats, Floats, float]:
    """Return a typical score of every cell, how many rows it holds (noisy), and the noise's standard deviation."""
    edges = edges_of(score.reach)
    counts = counts_between(edges, (values for _, values in score.values()))
    values = [Fraction(int(count)) for count in counts]
    if pure:
        released = gate.release_cells("spread", values, SPREAD_L1)
    else:
        released = gate.release_vector("spread", values, SPREAD_L2)
    ends = np.concatenate([[edges[0] / _RATIO], edges, [edges[-1] / _RATIO]])
    return (ends[1:] + ends[:-1]) / 2, released.floats(), sqrt(released.variance)


def worth_a_histogram(rows: int, sd: float) -> bool:
    """Return whether a histogram with this noise would show where the scores end; public numbers only."""
    return sd <= _RESOLVED * rows


def clip_without_histogram(score: Score) -> Clip:
    """Return a clip a fixed number of standard deviations from the middle, from moments released before."""
    return Clip(0.0, min(_BLIND * sqrt(score.spread), score.reach))


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
    spread = float(part @ away**2) + float(width) ** 2 / 12
    size = rows / cells
    furthest = max(float(away[seen > 0].max()), 3 * sqrt(spread))
    sizes = np.geomspace(_NEAREST * sqrt(spread), furthest, 32)
    part = part + _unseen(seen, sd) / rows
    beyond = np.array([float(part @ np.maximum(away - at, 0.0)) for at in sizes]) * min(cells, _ONE_OF)
    errors = (sizes * unit / size) ** 2 + spread / size + (_CARE * beyond) ** 2
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
