"""Numbers, sums and squares of scores by cell as they were released, and the errors of the means they make.

With L, M and H the released terms of a cell, each with noise of standard deviation s, and scores clipped to
C,

    N = L + M + H,    S = (H - L) C,    Q = (L - M + H) C^2

have noise of standard deviations sqrt(3) s, sqrt(2) s C and sqrt(3) s C^2. Scores of models are divided by
their mean information, by which they move where effects do. Everything is post-processing of released
numbers.

L, M and H are sums over a cell's rows of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4, r in [-1, 1] being the score
around its centre, clipped to C and divided by C; N counts rows, S and Q are the sums of scores and of their
squares. The three terms of a row are not negative and add up to one: that is why counts and squares come with
the sums for one sensitivity. Proof: `rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.estimators.moments.cell_clip import CellClip
from counterveil.estimators.moments.group_score import AdjustedScore, Score
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Budget
from counterveil.rows.moments.cell_scores import AdjustedRows, CellScores
from counterveil.rows.moments.cell_sums import cell_terms
from counterveil.rows.moments.placing import Placing
from counterveil.rows.records import Records
from counterveil.session import Gate, Plan

# Noise of a cell's sum of scores, and of its number of rows or squares, beside that of one of its terms.
SUM_NOISE = sqrt(2.0)
COUNT_NOISE = sqrt(3.0)
# Information is supposed to lie so far from one, as a standard deviation, and within these ends.
_INFORMATION_SD = 0.2
_INFORMATION = (0.5, 1.5)
# Sizes are divided by where they are so many standard deviations of their noise.
_SAFE_SDS = 3
# The least variance that scores have in common.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Tallies:
    """Released numbers of every cell, in the units of the scores, and the standard deviations of their noise.

    Attributes
    ----------
    sizes : ndarray of float64, (cells,)
        Numbers of rows.
    totals, squares : ndarray of float64, (cells,)
        Sums of (psi - centre) over a cell's rows, and of its square; the noise of totals has no covariance with that of
        sizes.
    centre : float
        Where scores are centred.
    size_sd, total_sd, square_sd : float
        Standard deviations of the noise of each.
    heavy : bool
        Whether noise is Laplace's.
    lost : float
        What clipping may take off a mean.
    noise_variance : ndarray or float
        Variance of what clipping hides and of noisy information, in a mean.
    treatment_residual, residual : ndarray, optional
        Sums of what the models leave of treatment and outcome, where there are models, with their noise.
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
        return np.maximum(self.sizes, _SAFE_SDS * self.size_sd)


def term_noise(budget: Budget, mechanism: str, share: Fraction, models: bool) -> float:
    """Return the noise of one term of a cell for a share of the budget; draws nothing."""
    plan = Plan.split(budget, {"cells": share, "rest": 1 - share}, mechanism)
    terms = cell_terms(models, mechanism != "gaussian")
    amount = float(plan.amount("cells"))
    if mechanism == "gaussian":
        return float(terms.euclidean) / amount
    return sqrt(2.0) * float(terms.absolute) / amount


def release_cells(
    gate: Gate, records: Records, score: Score, placing: Placing, cells: int, clip: CellClip, *, pure: bool
) -> Tallies:
    """Return the released cells; `placing` says which cell every row of a block is in, by a public rule."""
    sums = CellScores(score.rows, placing, cells, centre=clip.centre, size=clip.size, pure=pure)
    released, sd = sums.release(gate, records)
    return _tallies(sums, released, sd, clip)


def _tallies(sums: CellScores, released: Floats, sd: float, clip: CellClip) -> Tallies:
    """Return the released numbers in the units of the scores."""
    low, middle, high = released[:3]
    cells = Tallies(
        sizes=low + middle + high,
        totals=(high - low) * clip.size,
        squares=(low - middle + high) * clip.size**2,
        centre=clip.centre,
        size_sd=sd * COUNT_NOISE,
        total_sd=sd * SUM_NOISE * clip.size,
        square_sd=sd * COUNT_NOISE * clip.size**2,
        heavy=sums.pure,
        lost=clip.lost,
        noise_variance=clip.hidden**2,
    )
    if not isinstance(sums.score, AdjustedRows):
        return cells
    weights = sums.terms.further
    units = [bound / float(weight) for bound, weight in zip(sums.score.residual_bounds, weights, strict=True)]
    return replace(
        _whole_effects(cells, released[5] * units[2], sd * units[2]),
        treatment_residual=released[3] * units[0],
        residual=released[4] * units[1],
        treatment_residual_sd=sd * units[0],
        residual_sd=sd * units[1],
    )


def _whole_effects(cells: Tallies, information: Floats, sd: float) -> Tallies:
    """Return the cells with scores divided by their mean information, so that they move as much as effects do."""
    count = sqrt(len(cells.sizes))
    rows = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    noise = (sd * count / rows) ** 2
    part = _INFORMATION_SD**2 / (_INFORMATION_SD**2 + noise)
    by = float(np.clip(1 + part * (float(information.sum()) / rows - 1), *_INFORMATION))
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
    rows = max(float(cells.sizes.sum()), cells.size_sd * count, 1.0)
    mean = float(cells.totals.sum()) / rows
    noise = float(_squares_noise(cells, np.array(mean))) * count / rows
    shared = max(float(cells.squares.sum()) / rows - mean**2, noise, _LEAST_VARIANCE)
    sizes = cells.safe_sizes
    means = cells.totals / sizes
    of_cells = np.maximum(cells.squares / sizes - means**2, 0.0)
    # Variances of cells are assumed to differ by about a half of what they have in common.
    noise_variance = (_squares_noise(cells, means) / sizes) ** 2
    trusted = (shared / 2) ** 2 / ((shared / 2) ** 2 + noise_variance)
    return np.asarray(trusted * of_cells + (1 - trusted) * shared)


def _squares_noise(cells: Tallies, m: Floats) -> Floats:
    """Return the noise of Q - 2 m S + m^2 N; that of Q and N has a correlation of one third."""
    q = cells.square_sd
    t = cells.total_sd
    n = cells.size_sd
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
    treatment = cells.treatment_residual / sizes
    outcome = cells.residual / sizes
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
