"""Loops that factor and invert small matrices, four rows at a time (the last one again if fewer are left)."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled_any_order

Floats = NDArray[np.float64]


@compiled_any_order
def write_root(matrix: Floats, lower: Floats) -> bool:
    """Write L with L L' = matrix to `lower` (w, w); return whether the matrix was positive.

    Of `matrix` the lower triangle of the first w rows and columns is read, of `lower` that alone is written.
    """
    last = len(lower) - 1
    for j in range(last + 1):
        own, rest = lower[j, :j], matrix[j, j]
        for k in range(j):
            rest -= own[k] * own[k]
        if not rest > 0.0:
            return False
        pivot = sqrt(rest)
        lower[j, j] = pivot
        for i in range(j + 1, last + 1, 4):
            p, q = lower[i, :j], lower[min(i + 1, last), :j]
            r, s = lower[min(i + 2, last), :j], lower[min(i + 3, last), :j]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                common = own[k]
                a += common * p[k]
                b += common * q[k]
                c += common * r[k]
                d += common * s[k]
            found = (a, b, c, d)
            for k in range(min(4, last + 1 - i)):
                lower[i + k, j] = (matrix[i + k, j] - found[k]) / pivot
    return True


@compiled_any_order
def solve_root(lower: Floats, side: Floats) -> None:
    """Replace `side` (w,) by (L L')^-1 side, for the lower triangle L."""
    for i in range(len(side)):
        own, rest = lower[i, :i], side[i]
        for k in range(i):
            rest -= own[k] * side[k]
        side[i] = rest / lower[i, i]
    for i in range(len(side) - 1, -1, -1):
        own, found = lower[i, :i], side[i] / lower[i, i]
        side[i] = found
        for k in range(i):
            side[k] -= found * own[k]


@compiled_any_order
def write_inverse(lower: Floats, upper: Floats) -> None:
    """Write the transposed inverse of a lower triangle (w, w) to `upper` (w, w) of zeros."""
    last = len(lower) - 1
    for j in range(0, last + 1, 4):
        for i in range(j, last + 1):
            own, pivot = lower[i, j:i], lower[i, i]
            p, q = upper[j, j:i], upper[min(j + 1, last), j:i]
            r, s = upper[min(j + 2, last), j:i], upper[min(j + 3, last), j:i]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(i - j):
                common = own[k]
                a -= common * p[k]
                b -= common * q[k]
                c -= common * r[k]
                d -= common * s[k]
            found = (a, b, c, d)
            for k in range(min(4, i - j + 1)):
                upper[j + k, i] = (found[k] + (1.0 if i == j + k else 0.0)) / pivot
