"""Memory that is taken at once and handed out in parts.

The pages of a fresh array cost more than most of what is done with it. An allocator keeps one large block for the
next time where it gives many smaller ones back to the system.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Bytes up to which it is worth it, and to a multiple of which parts begin.
_MOST, _LINE = 1 << 25, 64


class Room:
    """A block of memory of so many bytes; parts of it are never handed out twice."""

    def __init__(self, size: int) -> None:
        self._block = np.empty(size if size <= _MOST else 0, np.uint8)
        self._used = 0

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array that was not filled: a part of the block, or a fresh one where no room is left."""
        size, start = math.prod(shape) * np.dtype(dtype).itemsize, self._used
        if start + size > len(self._block):
            return np.empty(shape, dtype)
        self._used = -(-(start + size) // _LINE) * _LINE
        return self._block[start : start + size].view(dtype).reshape(shape)
