"""Weights of one arm's rows that estimate the mean outcome everybody would have in that arm.

The estimate is sum_i w_i Y_i over the arm's rows, w_i >= 0 with total one. Its supposed error is that of
`balancing_weights`, for one arm alone: squared imbalance towards the features' mean over everybody, variance,
and noise whose scale is proportional to the arm's own largest weight. So each of several arms has its own
cap, as it must where their means are released with noise of their own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.balancing_weights import WeightSettings, exactly_summing
from counterveil.kernels.weight_arms import Arm, ArmRows, Rows, Vector
from counterveil.kernels.weight_dual import DualProblem, solve


def arm_weights(
    features: NDArray[np.floating], rows: Rows, *, noise_variance: float, settings: WeightSettings
) -> Vector:
    """Return the weights (m,) of the rows (m,), increasing, of a (n, p) feature matrix, of least supposed error.

    `noise_variance` is the variance of the noise added when (range of outcomes) * max w is one.
    """
    n, width = features.shape
    mean = features.mean(axis=0, dtype=np.float64)
    squares = sum(float((features[:, j].astype(np.float64) ** 2).sum()) for j in range(width)) / n
    spread = squares - float(mean @ mean)
    spread = spread if spread > 0.0 else 1.0
    variance = settings.residual**2
    problem = DualProblem(
        (Arm(ArmRows.of(features, rows), np.zeros(len(rows)), mean),),
        kappa=settings.signal**2 / spread / variance,
        gamma=noise_variance / variance,
        floor=1.0 / len(rows),
    )
    solution = solve(
        problem,
        unit=math.sqrt(spread / max(width, 1)),
        tolerance=settings.tolerance,
        max_iterations=settings.max_iterations,
    )
    return exactly_summing(solution.weights[0], solution.cap)
