"""How far one record can move sums of doubly robust scores. Proof: `robust_score.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class RobustScore:
    """The largest size of a row's score; sums of scores that are clipped move as those of any weighted row do.

    `width` is that of the outcome's range, `clip` the distance that propensities keep from 0 and 1.
    """

    width: Fraction
    clip: Fraction

    def largest(self, estimand: str) -> Fraction:
        """Return the largest size of a score: width/clip for ATE, width (1-clip)/clip for ATT and ATC."""
        return self.width / self.clip * (1 if estimand == "ATE" else 1 - self.clip)
