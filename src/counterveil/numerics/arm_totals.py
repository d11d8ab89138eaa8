"""Counts, sums and sums of squares of an integer outcome in the two arms of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

# Outcomes are below 2**25, so a block's sum of squares stays below 2**64 / 2: exact in int64.
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True)
class Arm:
    """Exact integer totals of one arm: number of rows, sum and sum of squares of the outcome."""

    count: int
    total: int
    squares: int

    def mean(self) -> Fraction:
        """Return the arm's mean."""
        return Fraction(self.total, self.count)

    def sum_of_squares(self) -> Fraction:
        """Return the sum of squared deviations from the arm's mean."""
        return self.squares - Fraction(self.total**2, self.count)

    def variance(self) -> Fraction:
        """Return the unbiased variance; the arm has at least two rows."""
        return self.sum_of_squares() / (self.count - 1)

    def centred_total(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre)."""
        return self.total - self.count * centre

    def centred_squares(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre) squared."""
        return self.squares - 2 * centre * self.total + self.count * centre**2


@dataclass(frozen=True, slots=True)
class Arms:
    """The totals of both arms."""

    treated: Arm
    control: Arm

    @property
    def count(self) -> int:
        """Number of rows in both arms."""
        return self.treated.count + self.control.count


def arm_totals(treated: NDArray[np.bool_], outcome: NDArray[np.int64]) -> Arms:
    """Return the exact totals of both arms; one pass, integers only, so every order of rows agrees."""
    sums = [0, 0, 0, 0, 0, 0]
    for start in range(0, len(outcome), _BLOCK):
        y = outcome[start : start + _BLOCK]
        arm = treated[start : start + _BLOCK]
        in_treated = np.where(arm, y, 0)
        count = int(np.count_nonzero(arm))
        total, total_treated = int(y.sum()), int(in_treated.sum())
        squares, squares_treated = int(y @ y), int(in_treated @ in_treated)
        parts = (count, total_treated, squares_treated, len(y) - count, total - total_treated)
        for place, part in enumerate((*parts, squares - squares_treated)):
            sums[place] += part
    return Arms(Arm(*sums[:3]), Arm(*sums[3:]))
