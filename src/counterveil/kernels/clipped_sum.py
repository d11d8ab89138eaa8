"""Sums of row vectors that are shortened to a length and taken on a grid, and projections on a grid: exact integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK = 4096  # rows that are worked on at once
# A row's computed length is wrong by less than this part of it, for up to 8000 columns.
LENGTH_ERROR = 2.0**-40


def clipped_sum(z: Floats, factors: Floats, length: float, bits: int) -> list[int]:
    """Return the sum over rows of (factor * row), each shortened to `length`, in steps of 2**-bits.

    Every coordinate is truncated towards zero, so that a row of the sum is no longer than
    length (1 + LENGTH_ERROR), whatever was rounded on the way.
    """
    total = np.zeros(z.shape[1], dtype=np.int64)
    for start in range(0, len(z), _BLOCK):
        rows = z[start : start + _BLOCK] * factors[start : start + _BLOCK, None]
        size = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows *= np.minimum(1.0, length / np.maximum(size, 1e-300))[:, None]
        total += np.trunc(np.ldexp(rows, bits)).astype(np.int64).sum(axis=0)
    return [int(value) for value in total]


def projected_steps(z: Floats, direction: Floats, limit: float, bits: int) -> NDArray[np.int64]:
    """Return every row's projection, clipped to [-limit, limit], in whole steps of 2**-bits, rounded down."""
    steps = np.empty(len(z), dtype=np.int64)
    for start in range(0, len(z), _BLOCK):
        index = np.clip(np.nan_to_num(z[start : start + _BLOCK] @ direction), -limit, limit)
        steps[start : start + _BLOCK] = np.floor(np.ldexp(index, bits))
    return steps
