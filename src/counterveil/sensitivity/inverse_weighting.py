"""How far one record can move sums of inversely weighted outcomes and their squares.

Proof: `inverse_weighting.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.penalised_fit import sqrt_up

# The sum of squares rides with the sum for nothing up to this factor: 1.665^2 is below the minimum
# over u of (3+u)/((1+u)^2 (1-u)), which is 2.7725.
SQUARE_FACTOR = Fraction(333, 200)
# The number treated rides with them at this factor, for a little more noise.
COUNT_FACTOR = Fraction(1, 2)
# The number treated rides with two arms' sums for nothing up to the root of two.
ARM_COUNT_FACTOR = Fraction(7, 5)


@dataclass(frozen=True, slots=True)
class WeightedMoments:
    """Sensitivities of sums over rows of u, u^2 and t, for u in [-1, 1] and t in {0, 1} that are a row's own.

    `counted` says whether the number treated is released with them.
    """

    counted: bool

    @property
    def joint(self) -> Fraction:
        """Largest Euclidean length of a change of (sum u, SQUARE_FACTOR sum u^2[, COUNT_FACTOR sum t])."""
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
class ArmTotals:
    """Sensitivity of (sum t y, sum (1-t) y, ARM_COUNT_FACTOR sum t) for y in [-1, 1]."""

    @property
    def joint(self) -> Fraction:
        """Largest Euclidean length of a change of the three."""
        return Fraction(2)
