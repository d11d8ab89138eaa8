"""How far one record can move the matrix of second moments of bounded rows. Proof: `free_gram.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.penalised_fit import sqrt_up

# Entries above the diagonal are weighted with this, just below the root of two.
OFF_DIAGONAL = Fraction(141_421_356, 100_000_000)
# Squared lengths that were computed in double precision are wrong by less than this part of them.
LENGTH_SLACK = Fraction(1, 2**30)


@dataclass(frozen=True, slots=True)
class FreeGram:
    """l2 sensitivity of (diagonal, OFF_DIAGONAL * upper triangle) of the mean of w w', |w|^2 <= squared_reach."""

    rows: int
    squared_reach: Fraction

    @property
    def entries(self) -> Fraction:
        """Largest Euclidean length of a change of the weighted entries."""
        return sqrt_up(Fraction(2)) * self.squared_reach * (1 + LENGTH_SLACK) / self.rows


@dataclass(frozen=True, slots=True)
class CrossMoments:
    """l2 sensitivity of the means of u x (a t, b y), k t y and k y^2; |u|^2 <= squared_reach, t, y in [-1, 1].

    `squared_weights` is a^2 + b^2, `squared_pair` is k^2.
    """

    rows: int
    squared_reach: Fraction
    squared_weights: Fraction
    squared_pair: Fraction

    @property
    def entries(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        vector = 4 * self.squared_reach * self.squared_weights * (1 + LENGTH_SLACK)
        return sqrt_up(vector + 5 * self.squared_pair) / self.rows
