"""The loop behind `balance`: sums of columns and of their squares, for both arms and two weights in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled

Floats = NDArray[np.float64]


@compiled
def add_moments(
    values: Floats,
    treated: NDArray[np.bool_],
    one: Floats,
    other: Floats,
    centre: Floats,
    sums: Floats,
    squares: Floats,
) -> None:
    """Add both weighted sums of values - centre, and of its squares, to those of each row's arm.

    `sums` and `squares` are (4, d): the treated under weights `one`, the others, and both again under `other`.
    """
    for i in range(len(values)):
        arm = 0 if treated[i] else 1
        row = values[i]
        first, second = sums[arm], sums[arm + 2]
        first_squares, second_squares = squares[arm], squares[arm + 2]
        a, b = one[i], other[i]
        for j in range(len(row)):
            x = row[j] - centre[j]
            first[j] += a * x
            second[j] += b * x
            first_squares[j] += a * x * x
            second_squares[j] += b * x * x
