"""Exact integer totals of outcomes, by arm and by cell."""

from __future__ import annotations

from dataclasses import dataclass, fields
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

    def variance(self) -> Fraction:
        """Return the unbiased variance; the arm has at least two rows."""
        return (self.squares - Fraction(self.total**2, self.count)) / (self.count - 1)

    def centred_total(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre)."""
        return self.total - self.count * centre

    def centred_squares(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre) squared."""
        return self.squares - 2 * centre * self.total + self.count * centre**2


@dataclass(frozen=True, slots=True)
class TwoArms:
    """The totals of both arms; `people` is the number of rows where the totals are those of a part of them."""

    treated: Arm
    control: Arm
    people: int | None = None

    @property
    def count(self) -> int:
        """Number of rows in both arms, those of other parts with them."""
        return self.treated.count + self.control.count if self.people is None else self.people

    @property
    def sums(self) -> NDArray[np.object_]:
        """The six totals, which add up over parts of the rows."""
        return np.array(
            [getattr(arm, field.name) for arm in (self.treated, self.control) for field in fields(arm)],
            object,
        )

    @classmethod
    def of(cls, sums: NDArray[np.object_], people: int | None = None) -> TwoArms:
        """Return the totals whose `sums` these are."""
        return cls(Arm(*sums[:3]), Arm(*sums[3:]), people)


def arm_totals(treated: NDArray[np.bool_], outcome: NDArray[np.int64]) -> TwoArms:
    """Return the exact totals of both arms; one pass, integers only, so every order of rows agrees."""
    sums = [0, 0, 0, 0, 0, 0]
    for start in range(0, len(outcome), _BLOCK):
        y = outcome[start : start + _BLOCK]
        arm = treated[start : start + _BLOCK]
        in_treated = np.where(arm, y, 0)
        count = int(np.count_nonzero(arm))
        total, total_treated = int(y.sum()), int(in_treated.sum())
        squares, squares_treated = int(y @ y), int(in_treated @ in_treated)
        terms = (count, total_treated, squares_treated, len(y) - count, total - total_treated)
        for index, term in enumerate((*terms, squares - squares_treated)):
            sums[index] += term
    return TwoArms(Arm(*sums[:3]), Arm(*sums[3:]))


# Steps are taken apart into two of these many bits: products of parts then add up exactly in doubles, 2**29 at a time.
_PART_BITS = 12


def cell_totals(cells: NDArray[np.integer], count: int, outcome: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return (count, 3): number of rows, sum and sum of squares of outcomes in [0, 2**24] in every cell; exact."""
    high = outcome >> _PART_BITS
    low = outcome & ((1 << _PART_BITS) - 1)

    def added(terms: NDArray[np.int64] | None) -> NDArray[np.object_]:
        return np.bincount(cells, terms, minlength=count).astype(np.int64).astype(object)

    squares = (added(high * high) << 2 * _PART_BITS) + (added(high * low) << _PART_BITS + 1)
    return np.stack([added(None), added(outcome), squares + added(low * low)], axis=1)
