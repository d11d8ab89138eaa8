"""How far one record can move its released score, and the matched sum that follows from released scores.

Proof: `record_matching.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor

# Scores are whole multiples of this step.
SCORE_STEPS = 2**24


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """The steps that a score can lie on, released weights being given: `low` to `high`."""

    low: int
    high: int

    @classmethod
    def of_logits(cls, low: float, high: float) -> ScoreRange:
        """Return the steps between the scores of two logits, one step wider at each end."""
        return cls(floor(_logistic(low) * SCORE_STEPS) - 1, ceil(_logistic(high) * SCORE_STEPS) + 1)

    @property
    def step(self) -> Fraction:
        """The width of one step."""
        return Fraction(1, SCORE_STEPS)

    @property
    def width(self) -> Fraction:
        """Largest change of one row's score."""
        return (self.high - self.low) * self.step


def _logistic(x: float) -> float:
    # Written so that neither form overflows.
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


@dataclass(frozen=True, slots=True)
class MatchedSum:
    """Sensitivity of sum c_i y_i, y in [0, width], where c follows from released numbers alone."""

    width: Fraction
    largest: Fraction
    squares: Fraction

    @property
    def estimate(self) -> Fraction:
        """Largest change of the sum under replacement of one record."""
        return self.width * self.largest

    @property
    def variance_cap(self) -> Fraction:
        """Largest variance of the sum for independent outcomes."""
        return self.width**2 * self.squares / 4
