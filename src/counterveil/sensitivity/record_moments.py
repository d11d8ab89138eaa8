"""How far one record can move means of features, treatment and outcome and of their squares, together.

Proof: `record_moments.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.penalised_fit import sqrt_up

# The weight at which the mean of x^2 comes free with the mean of x, for x in [-1, 1]: its square is below
# (4-s)/(s(2-s)^2) for every s in (0, 2], whose least value is 2.7725...
SQUARE_WEIGHT = Fraction(1665, 1000)


@dataclass(frozen=True, slots=True)
class RecordMoments:
    """Joint l2 sensitivity of the means of (x_j, 1.665 x_j^2), weight * t and weight * (y, 1.665 y^2).

    All of x_j, t and y lie in [-1, 1]. `features` counts the features, a group of flags of which at most
    one is up counting as at most two.
    """

    rows: int
    features: int
    weight: Fraction

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return sqrt_up(4 * self.features + 8 * self.weight**2) / self.rows
