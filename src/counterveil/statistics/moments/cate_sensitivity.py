"""How far one record can move second moments and products with the outcome, by arm.

Proof: `arm_statistics.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up
from counterveil.statistics.moments.sensitivity import LENGTH_SLACK

# Proof: arm_statistics.proof.md

# Weights of the entries beside the products u v: on the diagonal just below the root of one half, off it one,
# and just below the root of two for the sum of v^2.
DIAGONAL = Fraction(70_710_678, 100_000_000)
SQUARE = Fraction(141_421_356, 100_000_000)


@dataclass(frozen=True, slots=True)
class ArmStatistics:
    """l2 sensitivity of (DIAGONAL diag, upper triangle of u u', u v) in every arm and SQUARE v^2, as means.

    Every row is in one arm, |u| <= 1 and v lies in [-1, 1].
    """

    rows: int

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means: that of the products u v alone."""
        return 2 * (1 + LENGTH_SLACK) ** 2 / self.rows


# How far one record can move a penalised regression of residuals. Proof: `penalised_effect.proof.md`.


# Proof: penalised_effect.proof.md


@dataclass(frozen=True, slots=True)
class PenalisedEffect:
    """Sensitivity of the minimiser of (1/n) sum (v - u.w)^2 + penalty |w|^2 under replacement of one record.

    |u| <= reach and v lies in [-1, 1]; `tolerance` bounds the norm of the gradient at the weights that are returned.
    """

    rows: int
    reach: Fraction
    penalty: Fraction
    tolerance: Fraction

    @property
    def weights(self) -> Fraction:
        """Largest Euclidean length of a change of the weights."""
        reach = self.reach * (1 + LENGTH_SLACK)
        # 1 / sqrt(penalty), rounded up.
        largest = sqrt_up(1 / self.penalty)
        exact = 2 * reach * (1 + reach * largest / 2) / (self.penalty * self.rows)
        return exact + self.tolerance / self.penalty
