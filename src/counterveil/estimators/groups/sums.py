"""Sums of effects over cells of everybody, as means over all n rows: what policies and curves are made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate
from counterveil.estimators.groups.cells import Cells, model_errors
from counterveil.estimators.groups.scores import Score
from counterveil.estimators.groups.scoring import Placing, Scoring
from counterveil.inference.ratio import NoisyRatio

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EffectSums:
    """For every cell its number of people, and mean, mean square and noise of (effect - cost) times its flag.

    All means are over all rows, so that they add up over cells. In units of the outcome.
    """

    rows: int
    sizes: Floats
    means: Floats
    squares: Floats
    noise_sd: float  # of a cell's mean
    size_sd: float  # of a cell's mean, by the noise of its size, beside `noise_sd`
    extra: Floats  # variance of errors of the models, in a cell's mean
    bias: float
    heavy: bool

    def sum(self, weights: Floats) -> NoisyRatio:
        """Return what is known about the sum over cells of weight times mean."""
        value = float(weights @ self.means)
        spread = max(float(weights**2 @ self.squares) - value**2, 0.0)
        noise = sqrt(float(weights @ weights)) * np.hypot(self.noise_sd, self.size_sd)
        # Errors of the models may go together in all cells.
        extra = float(np.abs(weights) @ np.sqrt(self.extra)) ** 2
        parts = self.sizes / self.rows
        bias = self.bias * float(np.abs(weights) @ np.clip(parts, 0.0, 1.0))
        return NoisyRatio(
            total=value * self.rows,
            size=float(self.rows),
            spread=spread,
            total_sd=noise * self.rows,
            size_sd=0.0,
            extra=extra,
            bias=bias,
            heavy=self.heavy,
        )


def released_sums(found: Scoring, gate: Gate, placing: Placing, cells: int, cost: float) -> EffectSums:
    """Return the sums of (effect - cost) over cells of everybody, released through the gate."""
    low, high = found.study.outcome_range
    released, score = found.run(gate, placing, cells, one_mean=True)
    return effect_sums(released, score, found.source.rows, float(high - low) / 2, cost)


def effect_sums(cells: Cells, score: Score, rows: int, unit: float, cost: float) -> EffectSums:
    """Return the sums of (effect - cost) over released cells; `unit` is half the outcome's range."""
    shift, extra = model_errors(cells, score)
    # Sizes add up to the public number of rows: what is missing is shared by all cells.
    sizes = cells.sizes + (rows - cells.sizes.sum()) / len(cells.sizes)
    left = sqrt(1 - 1 / len(cells.sizes)) * cells.size_sd
    worth = (cells.centre + score.offset) * unit - cost
    totals = (cells.totals - shift) * unit
    squares = cells.squares * unit**2 + 2 * worth * totals + worth**2 * sizes
    return EffectSums(
        rows,
        sizes,
        (totals + worth * sizes) / rows,
        np.maximum(squares, 0.0) / rows,
        cells.total_sd * unit / rows,
        abs(worth) * left / rows,
        extra * unit**2 * (np.clip(sizes, 0.0, rows) / rows) ** 2,
        score.bias * unit,
        cells.heavy,
    )
