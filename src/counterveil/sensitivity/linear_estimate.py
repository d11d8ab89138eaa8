"""How far one outcome can move a weighted sum with public weights, and its paired variance.

Proof: `linear_estimate.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """Sensitivities of sum c_i y_i under a change of one outcome in [0, width], c public.

    `largest`: max |c_i|. `squares`: sum of c_i^2. `largest_row`: the largest sum of pair weights at one row.
    """

    width: Fraction
    largest: Fraction
    squares: Fraction
    largest_row: Fraction

    @property
    def estimate(self) -> Fraction:
        """Largest change of the weighted sum."""
        return self.width * self.largest

    @property
    def variance(self) -> Fraction:
        """Largest change of the paired variance."""
        return self.width**2 * self.largest_row / 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible variance of the weighted sum of independent outcomes in [0, width]."""
        return self.width**2 * self.squares / 4
