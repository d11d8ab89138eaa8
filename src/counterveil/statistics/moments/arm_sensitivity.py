"""How far one record can move second moments of its arm, and moments of features.

Proof: `arm_grams.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up
from counterveil.statistics.moments.sensitivity import ArmStatistics, FreeGram

# Proof: arm_grams.proof.md


@dataclass(frozen=True, slots=True)
class ArmGrams:
    """l2 sensitivity of (diagonal, OFF_DIAGONAL * upper triangle) of the means of w w' in two arms, all together.

    Every row is in one arm and has |w|^2 <= squared_reach.
    """

    rows: int
    squared_reach: Fraction

    @property
    def entries(self) -> Fraction:
        """Largest Euclidean length of a change of the weighted entries: what it is for one arm."""
        return FreeGram(self.rows, self.squared_reach).entries


# Proof: arm_grams.proof.md


@dataclass(frozen=True, slots=True)
class FeatureMoments:
    """Joint l2 sensitivity of the means of (x_j, 1.665 x_j^2) and of weight * (2t - 1), x_j in [-1, 1].

    `features` counts the features as `RecordMoments` does.
    """

    rows: int
    features: int
    weight: Fraction

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return sqrt_up(4 * self.features + 4 * self.weight**2) / self.rows


# Proof: arm_grams.proof.md

# Weights of both products beside second moments: just below the root of one half.
PRODUCT = Fraction(70_710_678, 100_000_000)


@dataclass(frozen=True, slots=True)
class BendMoments:
    """l2 sensitivity of (DIAGONAL diag, upper triangle of h h', PRODUCT h g, PRODUCT h rho) in both arms, as means.

    Every row is in one arm, |h| <= 1, and g and rho lie in [-1, 1].
    """

    rows: int

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means: what it is for one product."""
        return ArmStatistics(self.rows).means
