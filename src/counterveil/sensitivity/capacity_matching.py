"""What the published noise of limited matching hides, against what one outcome can move.

Proof: `capacity_matching.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class CapacityMatching:
    """Two draws, calibrated to (k+1) width / rows in each arm, on sum c_i y_i with public c.

    `limits`: k of the treated and of the control units, in units of neighbours. `largest`: max |c_i|.
    """

    width: Fraction
    rows: int
    limits: tuple[int, int]
    largest: Fraction

    @property
    def estimate(self) -> Fraction:
        """Largest change of the estimate."""
        return self.width * self.largest

    def scales(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Return the published scales of the wider and of the narrower draw."""
        wide, narrow = max(self.limits) + 1, min(self.limits) + 1
        unit = self.width / (self.rows * epsilon)
        return wide * unit, narrow * unit

    def loss(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon that the two draws really give; at most `epsilon` where the claim is true."""
        return self.estimate / self.scales(epsilon)[0]
