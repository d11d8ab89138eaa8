"""How far one record can move the centred contrast, its second moment, and the totals it is built on.

Proof: `centred_contrast.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

# Proof: centred_contrast.proof.md


@dataclass(frozen=True, slots=True)
class Totals:
    """Sensitivities, under replacement of one record, of the share treated and the pooled mean outcome."""

    width: Fraction
    rows: int

    @property
    def share(self) -> Fraction:
        """Largest change of (number treated) / n."""
        return Fraction(1, self.rows)

    @property
    def mean(self) -> Fraction:
        """Largest change of the mean outcome over everyone."""
        return self.width / self.rows


@dataclass(frozen=True, slots=True)
class CentredContrast:
    """Sensitivities of the means of psi = t (y-c)/q - (1-t) (y-c)/(1-q) and psi^2; y, c in [0, width]."""

    width: Fraction
    rows: int
    share: Fraction
    centre: Fraction

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest value that psi can take."""
        below, above = -self.centre, self.width - self.centre
        other = 1 - self.share
        return min(below / self.share, -above / other), max(above / self.share, -below / other)

    @property
    def mean(self) -> Fraction:
        """Largest change of the mean of psi."""
        low, high = self.ends
        return (high - low) / self.rows

    @property
    def largest_square(self) -> Fraction:
        """Largest value of psi^2."""
        return max(end**2 for end in self.ends)

    @property
    def second_moment(self) -> Fraction:
        """Largest change of the mean of psi^2."""
        return self.largest_square / self.rows

    @property
    def variance_cap(self) -> Fraction:
        """Largest variance of psi over the rows (a quarter of the squared range)."""
        low, high = self.ends
        return (high - low) ** 2 / 4


# How far one record can move the two sums of centred outcomes, one for each arm.


# Proof: arm_sums.proof.md


@dataclass(frozen=True, slots=True)
class ArmSums:
    """Sensitivity of (sum of t (y - B/2), sum of (1-t) (y - B/2)) under replacement of one record, y in [0, B]."""

    width: Fraction

    @property
    def total(self) -> Fraction:
        """Largest sum of the two changes."""
        return self.width
