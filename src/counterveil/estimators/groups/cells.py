"""The one release behind groups, policies and curves: counts, sums and squares of clipped scores in public cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate
from counterveil.estimators.ate.doubly_robust_releases import Part
from counterveil.estimators.groups.clip import Clip
from counterveil.estimators.groups.scores import AdjustedScore, Score
from counterveil.kernels.cell_sums import Block, cell_sums
from counterveil.kernels.orthogonal_score import TERM_BITS
from counterveil.sensitivity.group_scores import (
    ABSOLUTE,
    ABSOLUTE_MODELS,
    EUCLIDEAN,
    EUCLIDEAN_MODELS,
    CellWeights,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Released numbers of every cell, in the units of the scores, and the standard deviations of their noise.

    `totals` are sums of (psi - centre) over the cell's rows. `surprise` and `residual` are sums of what the
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
    surprise: Floats | None = None
    residual: Floats | None = None
    surprise_sd: float = 0.0
    residual_sd: float = 0.0


def cell_weights(models: bool, pure: bool) -> CellWeights:
    """Return the weights of the numbers of a cell."""
    if models:
        return ABSOLUTE_MODELS if pure else EUCLIDEAN_MODELS
    return ABSOLUTE if pure else EUCLIDEAN


def release_cells(
    gate: Gate, score: Score, placing: Callable[[Part], Codes], cells: int, clip: Clip, pure: bool
) -> Cells:
    """Return the released cells; `placing` says which cell every row of a block is in, by a public rule."""

    models = score.models_leave

    def rows() -> Iterator[Block]:
        for part, values in score.values():
            left = () if models is None else models(part)
            yield placing(part), (values - clip.centre) / clip.size, left

    weights = cell_weights(models is not None, pure)
    found = cell_sums(rows(), cells, len(weights.further))
    one = Fraction(1, 1 << TERM_BITS)
    values = [weights.size * count for count in found.counts]
    values += [one * total for total in found.scores]
    values += [weights.square * one * one * total for total in found.squares]
    for weight, totals in zip(weights.further, found.further, strict=True):
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
        surprise=noisy[3] * units[0],
        residual=noisy[4] * units[1],
        surprise_sd=sd * units[0],
        residual_sd=sd * units[1],
    )


def spreads(cells: Cells) -> Floats:
    """Return the variance of the scores in every cell, drawn towards that of all where the cell's own is noise."""
    whole = max(float(cells.sizes.sum()), 1.0)
    shared = _variance(cells.squares.sum() / whole, cells.totals.sum() / whole)
    sizes = np.maximum(cells.sizes, 3 * cells.size_sd)
    means = cells.totals / sizes
    own = np.maximum(cells.squares / sizes - means**2, 0.0)
    # Spreads of cells are supposed to differ by about a half of what they have in common.
    doubt = (cells.square_sd / sizes) ** 2
    part = (shared / 2) ** 2 / ((shared / 2) ** 2 + doubt)
    return np.asarray(part * own + (1 - part) * max(shared, 1e-12))


def _variance(square: float, mean: float) -> float:
    return max(float(square) - float(mean) ** 2, 0.0)


def model_errors(cells: Cells, score: Score) -> tuple[Floats, Floats]:
    """Return what errors of the models add to every cell's total, as far as it shows, and the variance left.

    The mean score of a cell is wrong by weight times (error of the propensity) times (error of the outcome's
    model), both averaged over the cell; the released sums of what the models leave estimate the two.
    """
    none = np.zeros(len(cells.sizes))
    if not isinstance(score, AdjustedScore) or cells.surprise is None or cells.residual is None:
        return none, none + score.extra
    sizes = np.maximum(cells.sizes, 3 * cells.size_sd)
    treatment, outcome = cells.surprise / sizes, cells.residual / sizes
    # Who was treated, and outcomes, vary by chance as well.
    treatment_doubt = (cells.surprise_sd / sizes) ** 2 + 0.25 / sizes
    outcome_doubt = (cells.residual_sd / sizes) ** 2 + score.residual_bound**2 / 9 / sizes
    supposed = np.maximum(score.doubt, treatment**2 - treatment_doubt)
    part = supposed / (supposed + treatment_doubt)
    shift = score.weight * part * treatment * outcome
    left = score.weight**2 * (part * treatment_doubt * outcome**2 + outcome_doubt * (part * treatment) ** 2)
    return shift * sizes, left + score.extra
