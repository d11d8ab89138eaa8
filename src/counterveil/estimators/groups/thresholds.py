"""Where a model's score is cut: public thresholds, or quantiles of a bought histogram on a public grid."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate
from counterveil.data import Study, columns_as_written, public_points
from counterveil.errors import ParameterError, shown
from counterveil.estimators.groups.rowwise import EffectModel, effects_at
from counterveil.kernels.cell_sums import counts_between
from counterveil.sensitivity.group_scores import SPREAD_L1, SPREAD_L2

Floats = NDArray[np.float64]

MOST_BINS = 100
# Cells of the public grid on which quantiles are bought, and points of the public box that its ends come from.
_GRID, _POINTS = 64, 512


def checked_thresholds(thresholds: object) -> tuple[float, ...]:
    """Return public thresholds in ascending order, or refuse them."""
    given = tuple(thresholds) if isinstance(thresholds, Sequence) and not isinstance(thresholds, str) else ()
    usable = all(isinstance(one, int | float) and isfinite(one) for one in given)
    if not given or not usable or len(given) >= MOST_BINS or len(set(given)) < len(given):
        raise ParameterError(
            "CV-P546",
            "the thresholds of the score cannot be used",
            expected=f"1 to {MOST_BINS - 1} different finite numbers",
            got=f"thresholds={shown(thresholds)}",
            fix="pass public thresholds such as (0.0, 0.5, 1.0), or leave them out and pass bins=10",
        )
    return tuple(sorted(float(one) for one in given))


def checked_bins(bins: object) -> int:
    """Return how many parts people are ranked into, or refuse it."""
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= MOST_BINS:
        raise ParameterError(
            "CV-P547",
            "the number of bins of the score is out of range",
            expected=f"a whole number from 2 to {MOST_BINS}",
            got=f"bins={shown(bins)}",
            fix="leave bins out, which takes 10",
        )
    return bins


def public_grid(model: EffectModel, study: Study) -> Floats:
    """Return the edges of equal cells between the least and the largest score over the public box."""
    scores = effects_at(model, columns_as_written(public_points(study, _POINTS), study))
    low, high = float(scores.min()), float(scores.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _GRID + 1)[1:-1]


def bought_thresholds(gate: Gate, edges: Floats, scores: Sequence[Floats], bins: int, pure: bool) -> Floats:
    """Return edges of the grid nearest to the quantiles of the scores, from a noisy histogram."""
    counts = counts_between(edges, scores)
    values = [Fraction(int(count)) for count in counts]
    if pure:
        released = gate.release_cells("ranks", values, SPREAD_L1)
    else:
        released = gate.release_vector("ranks", values, SPREAD_L2)
    running = np.maximum.accumulate(np.cumsum(np.maximum(released.floats(), 0.0)))
    wanted = np.arange(1, bins) / bins * max(float(running[-1]), 1.0)
    return np.unique(edges[np.minimum(np.searchsorted(running, wanted), len(edges) - 1)])
