"""How far one record can move sums of doubly robust scores. Proof: `robust_score.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.inverse_weighting import WeightedMoments


@dataclass(frozen=True, slots=True)
class RobustScore:
    """Bounds of a row's score, and sensitivities of sums of scores that are clipped to [-1, 1] after division.

    `width` is that of the outcome's range, `clip` the distance that propensities keep from 0 and 1.
    """

    width: Fraction
    clip: Fraction

    def largest(self, estimand: str) -> Fraction:
        """Return the largest size of a score: width/clip for ATE, width (1-clip)/clip for ATT and ATC."""
        return self.width / self.clip * (1 if estimand == "ATE" else 1 - self.clip)

    @staticmethod
    def sums(counted: bool) -> WeightedMoments:
        """Return the sensitivities of the sums of u, u^2 and, if `counted`, of t; u in [-1, 1] is a row's own."""
        return WeightedMoments(counted)
