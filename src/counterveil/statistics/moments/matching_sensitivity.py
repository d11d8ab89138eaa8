"""How far one record can move its released score, and the matched sum that follows from released scores.

Proof: `record_matching.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor

# Proof: record_matching.proof.md

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


# How far one record can move the parts of the score-stratified contrast. Proof: `score_strata.proof.md`.


# Proof: score_strata.proof.md


@dataclass(frozen=True, slots=True)
class ClippedDirection:
    """Sensitivity of a sum of row vectors, each shortened to `length`; `slack` is the relative rounding."""

    length: Fraction
    slack: Fraction

    @property
    def total(self) -> Fraction:
        """Largest Euclidean length of a change of the sum."""
        return 2 * self.length * (1 + self.slack)


@dataclass(frozen=True, slots=True)
class ScoreMoments:
    """Sensitivities of the mean of scores in [-limit, limit] and of their mean distance from a given centre."""

    rows: int
    limit: Fraction

    @property
    def location(self) -> Fraction:
        """Largest change of the mean."""
        return 2 * self.limit / self.rows

    def distance(self, centre: Fraction) -> Fraction:
        """Largest change of the mean distance from `centre`, which lies in [-limit, limit]."""
        return (self.limit + abs(centre)) / self.rows


@dataclass(frozen=True, slots=True)
class StratifiedContrast:
    """Sensitivities of the sums of psi and psi^2; y in [0, width].

    psi is a_k (y - c_1) for a treated row of stratum k and -b_k (y - c_0) for a control row; a, b >= 0 and
    c_1, c_0 in [0, width] are released or follow from released numbers.
    """

    width: Fraction
    treated: tuple[Fraction, ...]
    control: tuple[Fraction, ...]
    centre_treated: Fraction
    centre_control: Fraction

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest value that psi can take."""
        a, b = max(self.treated), max(self.control)
        low = min(-a * self.centre_treated, -b * (self.width - self.centre_control))
        return low, max(a * (self.width - self.centre_treated), b * self.centre_control)

    @property
    def total(self) -> Fraction:
        """Largest change of the sum of psi."""
        low, high = self.ends
        return high - low

    @property
    def squares(self) -> Fraction:
        """Largest change of the sum of psi^2."""
        return max(end**2 for end in self.ends)
