"""How far one record can move the counts and sums that show how alike two private arms are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.numerics.arrays import sqrt_up

# Proof: arm_balance.proof.md

# Weights of the squares beside the numbers, and of the flags of labels.
SQUARES, FLAGS = Fraction(1665, 1000), Fraction(2)


@dataclass(frozen=True, slots=True)
class ArmBalance:
    """l2 sensitivity of the sums by arm of (1, u_j, k (u_j^2 - 1/2)) for numbers, u_j = +-1 for truth values, and 2
    times a flag for every label; k = 1.665, u_j in [-1, 1].
    """

    numbers: int
    binaries: int
    labelled: int  # covariates with labels, however many labels they have

    @property
    def sums(self) -> Fraction:
        """Largest Euclidean length of a change of all sums."""
        within = 4 * (self.numbers + self.binaries) + 2 * FLAGS**2 * self.labelled
        across = 2 + self.numbers * (2 + SQUARES**2 / 2) + 2 * self.binaries + 2 * FLAGS**2 * self.labelled
        return sqrt_up(max(within, across))
