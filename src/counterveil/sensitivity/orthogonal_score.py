"""How far one record can move the orthogonal score, its square and its denominator, or moments of residuals.

Proof: `orthogonal_score.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.free_gram import LENGTH_SLACK
from counterveil.sensitivity.penalised_fit import sqrt_up


@dataclass(frozen=True, slots=True)
class OrthogonalScore:
    """l2 sensitivity of the means of (r, 1.665 r^2, a q, b w), r in [-1, 1], q and w in [0, 1]."""

    rows: int
    information: Fraction  # a
    weight: Fraction  # b, zero where all weights are one

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return sqrt_up(4 + self.information**2 + self.weight**2) / self.rows


@dataclass(frozen=True, slots=True)
class ResidualMoments:
    """l2 sensitivity of the means of (u rho, 1.665 rho^2), |u| <= 1, rho in [-1, 1]."""

    rows: int

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return 2 * (1 + LENGTH_SLACK) / self.rows
