"""Variance of a weighted sum of outcomes, from their variance around ridge regressions in public features.

    Q = least over (c, b) of sum_i (y_i - c - f_i . b)^2 + (n/s) sum_j b_j^2 / shape_j,
    V = sum over groups of S Q / (degrees of freedom),

with groups of rows (an arm or a part of one), outcomes y_i in parts of their range, a group's n rows, their
features f_i less the group's means, the strength s of the fit, public shapes by which some features are
fitted more closely, and S the group's sum of squared coefficients. Without features (s = 0) Q is the sum of
squares around the mean; as s grows, it becomes that of the residuals of a regression.

In: private outcomes in whole steps; all else is public. Out: V in units of the range squared, without noise,
which is added where it is released; and `largest_row`, twice the most that one outcome can move V.

Why it is right: S times a group's residual variance estimates the variance of its part of the sum, and is
too large rather than too small where outcomes of one variance are not on a line. An outcome is in one group
alone. Predictions outside the range of outcomes cost more than their square (`ranged_fit.py`), so that one
outcome moves Q by little more than the range squared, however many features there are.

Proof: `rows/linear/residual_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.rows.linear.ranged_fit import RangedFit, Rows
from counterveil.rows.linear.weighted_sum import exact_dot


@dataclass(frozen=True, slots=True)
class GroupSquares:
    """`factor` times the squares of a group's outcomes around their mean; exact."""

    rows: Rows
    factor: Fraction

    @property
    def first_row(self) -> int:
        """The place of one of its rows."""
        return int(self.rows[0])

    @property
    def largest_move(self) -> Fraction:
        """What one outcome of the group can move, in units of the range squared."""
        return self.factor * Fraction(len(self.rows) - 1, len(self.rows))

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return the part for each of some integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        of_group = (outcome[self.rows] for outcome in outcomes)
        squares = (Fraction(exact_dot(y, y)) - Fraction(int(y.sum()) ** 2, len(y)) for y in of_group)
        return [self.factor * total / Fraction(4) ** steps_bits for total in squares]


@dataclass(frozen=True, slots=True)
class GroupResidual:
    """`factor` times the least cost of a line through a group's outcomes."""

    fit: RangedFit
    factor: Fraction

    @property
    def first_row(self) -> int:
        """The place of one of its rows."""
        return int(self.fit.rows[0])

    @property
    def largest_move(self) -> Fraction:
        """A bound on what one outcome of the group can move, in units of the range squared."""
        return self.factor * self.fit.sensitivity

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return the part for each of some integer outcomes in [0, 2**steps_bits], in units of the range squared."""
        of_group = (np.ldexp(outcome[self.fit.rows].astype(np.float64), -steps_bits) for outcome in outcomes)
        return [self.factor * Fraction(total) for total in self.fit.least(*of_group)]


@dataclass(frozen=True, slots=True)
class ResidualVariance:
    """V: the sum of all groups' parts. `loading` is what V holds of a mean outcome of variance one.

    With S the sum of squared weights, E V = S (variance around the mean) + loading (variance of the mean)
    when the mean outcome is linear in the features in a random direction.
    """

    groups: tuple[GroupSquares | GroupResidual, ...]
    loading: float

    def largest_row(self, rows: int) -> Fraction:  # noqa: ARG002 - other forms of variance need it
        """Return twice the bound on what one outcome can move; an outcome is in one group."""
        return 2 * max(group.largest_move for group in self.groups)

    def among(self, inside: NDArray[np.bool_]) -> ResidualVariance:
        """Return the part of V of the groups whose rows are `inside`; a group lies inside or outside whole."""
        return replace(self, groups=tuple(group for group in self.groups if inside[group.first_row]))

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared."""
        return self.values([outcome], steps_bits)[0]

    def values(self, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
        """Return V for each of some outcomes."""
        by_group = zip(*(group.values(outcomes, steps_bits) for group in self.groups), strict=True)
        return [sum(by_outcome, Fraction(0)) for by_outcome in by_group] or [Fraction(0)] * len(outcomes)
