"""Symmetric matrices as short text: the upper triangle in single precision."""

from __future__ import annotations

from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def packed(matrix: Floats) -> str:
    """Return the upper triangle of a symmetric matrix as base64 text of little-endian float32."""
    upper = matrix[np.triu_indices(len(matrix))]
    return b64encode(upper.astype("<f4").tobytes()).decode("ascii")


def unpacked(text: str, size: int) -> Floats:
    """Return the (size, size) symmetric matrix that `packed` wrote."""
    found = np.zeros((size, size))
    found[np.triu_indices(size)] = np.frombuffer(b64decode(text), dtype="<f4")
    return np.asarray(found + np.triu(found, 1).T)
