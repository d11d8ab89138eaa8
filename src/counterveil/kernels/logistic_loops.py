"""The gradient of logistic regression in one reading of columns kept as lines, (d, n)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.column_loops import add_scores, add_totals
from counterveil.kernels.compilation import compiled_any_order

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

# Rows that are read at once: with a hundred columns or so they stay in a core's cache for the second use.
_TOGETHER = 1024


@compiled_any_order
def add_gradient(
    columns: Singles, treated: NDArray[np.bool_], weights: Singles, chances: Singles, total: Floats
) -> None:
    """Write the probabilities (n,) of treatment, and add the sum of (probability - treated) x to `total` (d+1,).

    `weights` (d+1,) has the constant last.
    """
    width, one = len(columns), columns.dtype.type(1)
    residual = np.empty(_TOGETHER, columns.dtype)
    for first in range(0, len(treated), _TOGETHER):
        end = min(first + _TOGETHER, len(treated))
        own, arm = chances[first:end], treated[first:end]
        own[:] = weights[width]
        add_scores(columns, first, end, weights[:width], own)
        rest = residual[: end - first]
        for i in range(end - first):
            own[i] = one / (one + np.exp(-own[i]))
            rest[i] = own[i] - one if arm[i] else own[i]
            total[width] += rest[i]
        add_totals(columns, first, end, rest, total)
