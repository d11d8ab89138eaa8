"""Sums of bounded contributions of rows and of their squares, with one Gaussian noise or noises of their own.

With u_i in [-1, 1] the contribution of row i to a weighted average (one of it being `unit` in units of the
outcome), t_i in {0, 1} its treatment and k = 1.665, released are

    (sum u, k sum u^2[, sum t / 2])    as one vector with Gaussian noise, or each with pure noise of its own,

the number treated where an estimand asks for a mean over one arm. Out come means over all rows of u and u^2
(no unit), the size in people that the sum is divided by, and the noise of the effect in units of the outcome.

Why it is right: under replacement of one row (u, k u^2) moves by at most 2 in Euclidean length, as u alone
does: squares come free; the number treated adds a quarter to the squared length, hence sqrt(4 + 1/4). Apart
they move by 2, 1 and 1. `WeightedMoments` has these bounds.
Proof: `rows/moments/inverse_weighting.proof.md`. `COUNT_FACTOR` divides precision between sum and count, and
privacy does not depend on it, since the bound is computed from it.
"""

# Proof: inverse_weighting.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers, sqrt_up
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.session import Gate, KnownSensitivityMechanism, Plan

# The number treated rides with them at this factor, for a little more noise.
COUNT_FACTOR = Fraction(1, 2)
# The number treated rides with two arms' sums for nothing up to the root of two.
ARM_COUNT_FACTOR = Fraction(7, 5)
# Largest Euclidean length of a change of (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t) for y in [-1, 1].
ARM_TOTALS = Fraction(2)
# Contributions of rows are truncated to whole parts of 2**-GRID_BITS.
GRID_BITS = 24
# Rows a pass: the squares, below 2**48 each, then sum to less than 2**63.
_PASS = 1 << 14


@dataclass(frozen=True, slots=True)
class RowSums:
    """Exact sums of contributions (in 2**-GRID_BITS) and of their squares, and the number treated."""

    total: int
    squares: int
    treated: int
    rows: int


def contribution_sums(contributions: Integers, treated: NDArray[np.bool_]) -> RowSums:
    """Return the exact sums over rows."""
    total = squares = 0
    for start in range(0, len(contributions), _PASS):
        block = contributions[start : start + _PASS]
        total += int(block.sum())
        squares += int((block * block).sum())
    return RowSums(total, squares, int(np.count_nonzero(treated)), len(contributions))


@dataclass(frozen=True, slots=True)
class WeightedMoments:
    """Sensitivities of sums over rows of u, u^2 and t, for u in [-1, 1] and t in {0, 1} that are a row's own.

    `counted` says whether the number treated is released with them.
    """

    counted: bool

    @property
    def joint(self) -> Fraction:
        """Largest Euclidean length of a change of (sum u, SQUARE_WEIGHT sum u^2[, COUNT_FACTOR sum t])."""
        return sqrt_up(4 + COUNT_FACTOR**2) if self.counted else Fraction(2)

    @property
    def total(self) -> Fraction:
        """Largest change of sum u."""
        return Fraction(2)

    @property
    def squares(self) -> Fraction:
        """Largest change of sum u^2."""
        return Fraction(1)

    @property
    def count(self) -> Fraction:
        """Largest change of sum t."""
        return Fraction(1)


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """Released means of contributions u and of u^2, the denominator, and the noise distributions.

    Attributes
    ----------
    mean, square : float
        Means over all rows.
    rows : int
        Number of rows.
    size : float
        What the sum is divided by for the effect: all rows, or the released size of an arm.
    count_variance : float
        Of the noise of that size; 0 where it is public.
    effect_noise, variance_noise : KnownSensitivityMechanism
        Noise of the effect and of its sampling variance, in units of the outcome and its square.
    """

    mean: float
    square: float
    rows: int
    size: float
    count_variance: float
    effect_noise: KnownSensitivityMechanism
    variance_noise: KnownSensitivityMechanism


def release_moments(
    gate: Gate, plan: Plan, row_sums: RowSums, unit: Fraction, averaged_over: float | Estimand
) -> WeightedMeans:
    """Return the released moments.

    Parameters
    ----------
    gate, plan : Gate, Plan
        Where they are let through, and what pays for them.
    row_sums : RowSums
        Exact sums over the rows.
    unit : Fraction
        What one of a contribution is in units of the outcome.
    averaged_over : float or Estimand
        The part of the rows that the sum is divided by; an estimand where it has to be released.
    """
    counted = isinstance(averaged_over, Estimand)
    sums = (Fraction(row_sums.total, 1 << GRID_BITS), Fraction(row_sums.squares, 1 << 2 * GRID_BITS))
    sensitivity = WeightedMoments(counted)
    if plan.mechanism == "gaussian":
        total, squares, count, count_variance = _together(gate, sums, row_sums.treated, sensitivity)
    else:
        total, squares, count, count_variance = _apart(gate, sums, row_sums.treated, sensitivity)
    if isinstance(averaged_over, Estimand):
        size = _clamped(count, averaged_over, row_sums.rows)
    else:
        size = averaged_over * row_sums.rows
    factor = unit / Fraction(size)
    if plan.mechanism == "gaussian":
        noise = plan.coordinate_noise("moments", sensitivity.joint * factor)
        square_noise = plan.coordinate_noise("moments", sensitivity.joint / SQUARE_WEIGHT * factor**2)
    else:
        noise = plan.noise("effect", sensitivity.total * factor)
        square_noise = plan.noise("squares", sensitivity.squares * factor**2)
    mean = float(total) / row_sums.rows
    square = float(squares) / row_sums.rows
    return WeightedMeans(
        mean=mean,
        square=square,
        rows=row_sums.rows,
        size=size,
        count_variance=count_variance,
        effect_noise=noise,
        variance_noise=square_noise,
    )


def _together(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return sum, squares and count from one Gaussian vector, and the variance of the count's noise."""
    values = [sums[0], SQUARE_WEIGHT * sums[1]]
    if not sensitivity.counted:
        noisy = gate.release_vector("moments", values, sensitivity.joint).values
        return noisy[0], noisy[1] / SQUARE_WEIGHT, Fraction(0), 0.0
    released = gate.release_vector("moments", [*values, COUNT_FACTOR * treated], sensitivity.joint)
    total, squares, count = released.values
    return (
        total,
        squares / SQUARE_WEIGHT,
        count / COUNT_FACTOR,
        released.variance / float(COUNT_FACTOR) ** 2,
    )


def _apart(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return the same from releases with noise of their own."""
    total = gate.release("effect", sums[0], sensitivity.total).value
    squares = gate.release("squares", sums[1], sensitivity.squares).value
    if not sensitivity.counted:
        return total, squares, Fraction(0), 0.0
    count = gate.release("count", Fraction(treated), sensitivity.count)
    return total, squares, count.value, count.noise.variance


def _clamped(treated: Fraction, estimand: Estimand, rows: int) -> float:
    """Return the size of the arm that is averaged over, not below a small part of the rows."""
    size = float(treated) if estimand is Estimand.ATT else rows - float(treated)
    return min(max(size, float(LEAST_SHARE) * rows, 1.0), float(rows))
