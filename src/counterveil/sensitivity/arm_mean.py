"""How far one outcome can move the mean of its own arm and that mean's variance, arms being public.

Proof: `arm_mean.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class ArmMean:
    """Sensitivities under a change of one of the arm's outcomes in [0, width]; it has at least two rows."""

    width: Fraction
    rows: int

    @property
    def squares(self) -> Fraction:
        """Sum of the squared coefficients of the outcomes."""
        return Fraction(1, self.rows)

    @property
    def estimate(self) -> Fraction:
        """Largest change of the mean."""
        return self.width / self.rows

    @property
    def variance(self) -> Fraction:
        """Largest change of s^2/n with unbiased s^2."""
        return (self.width / self.rows) ** 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible s^2/n over all outcomes in [0, width]: half of them at either end."""
        n = self.rows
        return self.width**2 * Fraction((n // 2) * (n - n // 2), n * n * (n - 1))
