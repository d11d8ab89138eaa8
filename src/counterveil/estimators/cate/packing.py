"""Symmetric matrices as short text: the upper triangle in single precision."""

from __future__ import annotations

from base64 import b64decode, b64encode
from math import frexp

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Largest entries of a binary exponent within this are written as they are. Others are scaled by a power of two, which
# is written before them: single precision ends at exponents of about 126.
_PLAIN = 60


def packed(matrix: Floats) -> str:
    """Return the upper triangle of a symmetric matrix as base64 text of little-endian float32."""
    upper = matrix[np.triu_indices(len(matrix))]
    exponent = frexp(float(np.abs(upper).max(initial=0.0)))[1]
    power = exponent if abs(exponent) > _PLAIN else 0
    text = b64encode(np.ldexp(upper, -power).astype("<f4").tobytes()).decode("ascii")
    return f"{power}:{text}" if power else text


def unpacked(text: str, size: int) -> Floats:
    """Return the (size, size) symmetric matrix that `packed` wrote."""
    power, _, body = text.rpartition(":")
    found = np.zeros((size, size))
    upper = np.frombuffer(b64decode(body), dtype="<f4").astype(np.float64)
    found[np.triu_indices(size)] = np.ldexp(upper, int(power or 0))
    return np.asarray(found + np.triu(found, 1).T)
