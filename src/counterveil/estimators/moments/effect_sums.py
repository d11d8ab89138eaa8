"""Sums of (effect - cost) over cells of private records, for what rules of treatment gain.

With psi a row's score, n the rows of all and cost c, the mean over everyone of (psi - c) times a flag of
cells is a sum of released numbers, whatever the weights of cells are: gains, areas under curves and their
errors follow without cost.

In: noisy counts, sums and squares of scores by cell. Out: `EffectSums`, in units of the outcome. Why sums of
cells are enough: the gain of a rule is the sum of the means of the cells that it treats. Privacy of the
released sums: `rows/moments/group_scores.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.estimators.moments.cell_tallies import Tallies, model_errors
from counterveil.estimators.moments.group_score import Score
from counterveil.estimators.moments.scoring import Scoring
from counterveil.inference.noisy_ratio import NoisyRatio
from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.placing import Placing
from counterveil.session import Gate

# Standard deviations of its noise that are added to a mean square: one that noise makes too small must not shorten an
# interval.
_RAISED_SDS = 0.7


@dataclass(frozen=True, slots=True)
class EffectSums:
    """For every cell its number of people, and mean, mean square and noise of (effect - cost) times its flag.

    All means are over all rows, so that they add up over cells. In units of the outcome.

    Attributes
    ----------
    rows : int
        Number of everybody.
    sizes, means, squares : ndarray of float64, (cells,)
        Numbers of people, means and mean squares.
    noise_sd, size_sd, square_sd : float
        Standard deviations of the noise of a cell's mean, of what that of its size adds, and of its mean square.
    extra : ndarray of float64, (cells,)
        Variance of errors of the models, in a cell's mean.
    bias, lost : float
        Bound of the models' bias in a mean over people, and what clipping may take off the mean of everybody.
    heavy : bool
        Whether noise is Laplace's.
    """

    rows: int
    sizes: Floats
    means: Floats
    squares: Floats
    noise_sd: float
    size_sd: float
    square_sd: float
    extra: Floats
    bias: float
    lost: float
    heavy: bool

    def sum(self, weights: Floats) -> NoisyRatio:
        """Return what is known about the sum over cells of weight times mean."""
        value = float(weights @ self.means)
        squares = float(weights**2 @ self.squares) + _RAISED_SDS * self.square_sd * float(
            np.linalg.norm(weights**2)
        )
        row_variance = max(squares - value**2, 0.0)
        noise = sqrt(float(weights @ weights)) * np.hypot(self.noise_sd, self.size_sd)
        # Errors of the models may go together in all cells.
        extra = float(np.abs(weights) @ np.sqrt(self.extra)) ** 2
        shares = self.sizes / self.rows
        # What was clipped may all lie in the cell of the largest weight.
        bias = self.bias * float(np.abs(weights) @ np.clip(shares, 0.0, 1.0))
        bias += self.lost * float(np.abs(weights).max())
        return NoisyRatio(
            total=value * self.rows,
            size=float(self.rows),
            row_variance=row_variance,
            total_sd=noise * self.rows,
            size_sd=0.0,
            extra=extra,
            bias=bias,
            heavy=self.heavy,
        )


def release_effect_sums(
    gate: Gate, form: Scoring, placing: Placing, *, cells: int, cost: float
) -> EffectSums:
    """Return the sums of (effect - cost) over cells of everybody, released through the gate."""
    low, high = form.study.outcome_range
    released, score = form.release(gate, placing, cells, one_mean=True)
    return effect_sums(released, score, form.rows, unit=float(high - low) / 2, cost=cost)


def effect_sums(cells: Tallies, score: Score, rows: int, unit: float, cost: float) -> EffectSums:
    """Return the sums of (effect - cost) over released cells; `unit` is half the outcome's range."""
    shift, extra = model_errors(cells, score)
    # Sizes add up to the public number of rows: what is missing is shared by all cells.
    sizes = cells.sizes + (rows - cells.sizes.sum()) / len(cells.sizes)
    size_sd = sqrt(1 - 1 / len(cells.sizes)) * cells.size_sd
    worth = (cells.centre + score.offset) * unit - cost
    totals = (cells.totals - shift) * unit
    squares = cells.squares * unit**2 + 2 * worth * totals + worth**2 * sizes
    return EffectSums(
        rows,
        sizes,
        means=(totals + worth * sizes) / rows,
        squares=np.maximum(squares, 0.0) / rows,
        noise_sd=cells.total_sd * unit / rows,
        size_sd=abs(worth) * size_sd / rows,
        square_sd=cells.square_sd * unit**2 / rows,
        # What was taken off a total belongs to a cell that is not smaller than its noise, and so does its variance.
        extra=extra * unit**2 * (np.clip(np.maximum(sizes, cells.safe_sizes), 0.0, rows) / rows) ** 2,
        bias=score.bias * unit,
        lost=cells.lost * unit,
        heavy=cells.heavy,
    )
