"""Normal and uniform numbers that anybody can compute again: a fixed sequence, for public choices and quadrature.

They protect nothing and must never serve as noise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def public_uniforms(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) numbers in (0, 1) from a fixed integer mixing of their place and the seed."""
    with np.errstate(over="ignore"):
        place = np.arange(1, rows * columns + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(
            0xD1342543DE82EF95
        )
        z = place * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        z = z ^ (z >> np.uint64(31))
    return np.asarray(((z >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53).reshape(rows, columns)


def public_normals(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) standard normal numbers made of `public_uniforms`."""
    return np.asarray(ndtri(public_uniforms(rows, columns, seed)))
