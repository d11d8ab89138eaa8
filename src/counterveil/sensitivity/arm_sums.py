"""How far one record can move the two sums of centred outcomes, one for each arm.

Proof: `arm_sums.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class ArmSums:
    """Sensitivity of (sum of t (y - B/2), sum of (1-t) (y - B/2)) under replacement of one record, y in [0, B]."""

    width: Fraction

    @property
    def total(self) -> Fraction:
        """Largest sum of the two changes."""
        return self.width
