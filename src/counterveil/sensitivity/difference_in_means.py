"""How far one outcome can move the difference in means and its variance, arms being public.

Proof: `difference_in_means.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class DifferenceInMeans:
    """Sensitivities under a change of one outcome in [0, width]; both arms have at least two rows."""

    width: Fraction
    treated: int
    control: int

    @property
    def smallest_arm(self) -> int:
        """Number of rows in the smaller arm."""
        return min(self.treated, self.control)

    @property
    def estimate(self) -> Fraction:
        """Largest change of mean(treated) - mean(control)."""
        return self.width / self.smallest_arm

    @property
    def variance(self) -> Fraction:
        """Largest change of s1^2/n1 + s0^2/n0 with unbiased s^2."""
        return (self.width / self.smallest_arm) ** 2

    @property
    def variance_cap(self) -> Fraction:
        """Largest possible s1^2/n1 + s0^2/n0 over all outcomes in [0, width]."""
        return sum(
            (self.width**2 * _largest_variance(n) / n for n in (self.treated, self.control)), Fraction(0)
        )


def _largest_variance(n: int) -> Fraction:
    """Return the largest unbiased variance of n values in [0, 1]: as many at one end as at the other."""
    return Fraction((n // 2) * (n - n // 2), n * (n - 1))
