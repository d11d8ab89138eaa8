"""The rows of a matrix followed by their mirror images, which are written a block at a time.

A logistic model fitted to both has no intercept. Written out, they would take three times the memory of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MirroredRows:
    """What np.concatenate([upper, -lower]) holds, for two matrices of the same columns."""

    upper: NDArray[np.floating]
    lower: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.upper) + len(self.lower)

    @property
    def ndim(self) -> int:
        """Two, as of a matrix."""
        return self.upper.ndim

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), int(self.upper.shape[1])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.upper.size + self.lower.size

    def __getitem__(self, rows: slice) -> NDArray[np.floating]:
        """Return consecutive rows, to be read only."""
        first, stop, _ = rows.indices(len(self))
        middle = len(self.upper)
        if stop <= middle:
            return self.upper[first:stop]
        images: NDArray[np.floating] = np.negative(self.lower[max(first - middle, 0) : stop - middle])
        return images if first >= middle else np.concatenate([self.upper[first:], images])

    def thinned(self, stride: int) -> MirroredRows:
        """Return every stride-th row; nothing is copied."""
        return MirroredRows(self.upper[::stride], self.lower[-len(self.upper) % stride :: stride])

    def astype(self, kind: type[np.float32] | type[np.float64]) -> NDArray[np.floating]:
        """Return all rows as an array of numbers of this kind."""
        return self[:].astype(kind)
