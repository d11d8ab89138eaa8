"""Inversely weighted outcomes on a grid: every row's contribution is bounded, and sums are exact.

Outcomes are whole steps in [0, STEPS]. A contribution is +-h (y - c)/scale, h the row's weight and c the
centre of its arm, clipped to [-1, 1] and truncated towards zero to whole parts of 2**-GRID_BITS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers

STEPS = 1 << 24  # of the outcome's range, as tables hold it
GRID_BITS = 24
_GRID = 1 << GRID_BITS
# Rows a pass: the squares, below 2**48 each, then sum to less than 2**63.
_PASS = 1 << 14


@dataclass(frozen=True, slots=True)
class Weighing:
    """What turns rows into contributions; all of it is public or released.

    Scores are clipped to [low, high]. `centres`: of the treated and of the controls, in steps. `estimand`:
    "ATE", "ATT" or "ATC".
    """

    estimand: str
    low: float
    high: float
    centres: tuple[float, float]

    @property
    def largest(self) -> tuple[float, float]:
        """The largest weight a treated row, and a control, can have."""
        if self.estimand == "ATE":
            return 1 / self.low, 1 / (1 - self.high)
        if self.estimand == "ATT":
            return 1.0, self.high / (1 - self.high)
        return (1 - self.low) / self.low, 1.0

    @property
    def scale(self) -> float:
        """The largest possible size of h (y - c), in steps."""
        reach = [max(c, STEPS - c) for c in self.centres]
        return max(h * r for h, r in zip(self.largest, reach, strict=True))

    def weights(self, scores: Floats, treated: NDArray[np.bool_]) -> Floats:
        """Return every row's weight h."""
        p = np.clip(scores, self.low, self.high)
        if self.estimand == "ATE":
            return np.where(treated, 1 / p, 1 / (1 - p))
        if self.estimand == "ATT":
            return np.where(treated, 1.0, p / (1 - p))
        return np.where(treated, (1 - p) / p, 1.0)

    def contributions(self, scores: Floats, treated: NDArray[np.bool_], outcome: Integers) -> Integers:
        """Return every row's contribution, in whole parts of 2**-GRID_BITS of the scale."""
        first, second = self.centres
        off = np.where(treated, outcome - first, second - outcome)
        part = self.weights(scores, treated) * off / self.scale
        # A NaN, from scores of huge weights, counts as 0: processors disagree on the integer of one.
        return np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _GRID).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Moments:
    """Exact sums of contributions (in 2**-GRID_BITS) and of their squares, and the number treated."""

    total: int
    squares: int
    treated: int
    rows: int


def moments(contributions: Integers, treated: NDArray[np.bool_]) -> Moments:
    """Return the exact sums over rows."""
    total = squares = 0
    for start in range(0, len(contributions), _PASS):
        part = contributions[start : start + _PASS]
        total += int(part.sum())
        squares += int((part * part).sum())
    return Moments(total, squares, int(np.count_nonzero(treated)), len(contributions))
