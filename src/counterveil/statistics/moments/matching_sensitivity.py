"""How far one record can move the parts of the score-stratified contrast. Proof: `score_strata.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

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
