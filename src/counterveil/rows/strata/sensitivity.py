"""How far one replaced row can move the stratified effect and its parts, with weights up to a limit w.

    F = sum h (mean_1 - mean_0):  2 w B,    H = sum h:  w people,    V = sum h^2 (v_1/t + v_0/c):  C(w) B^2,

over strata with t treated and c control rows, n = t + c, means and unbiased variances v_a of outcomes in
arm a, and B the width of the outcome's range. A stratum's effect speaks for h = min(n, w t, w c) people
(ATE), min(t, w c) (ATT) or min(c, w t) (ATC). C(w) is `largest_gain` + `largest_loss`, and every bound is
raised by what rounding in doubles may add.

In: the public limit w, number of rows and estimand. Out: the bounds to which noise is calibrated.

Why it is right: a person's outcome counts at most w times, by the minimum in h, so that bounds are constants
whatever the counts are. A replaced row is one removed and one inserted; C adds the most that an inserted row
can add to V and the most that it can take from it.

Proof: `rows/strata/bounded_strata.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.errors import refusal
from counterveil.privacy import Estimand
from counterveil.rows.strata.statistics import ROUNDING

# Proof: bounded_strata.proof.md

# One person and one match; for the treated alone (or the untreated) one match.
_LEAST = {Estimand.ATE: Fraction(2), Estimand.ATT: Fraction(1), Estimand.ATC: Fraction(1)}


@dataclass(frozen=True, slots=True)
class BoundedStrata:
    """Sensitivities under replacement of one row, for `rows` rows in all and weights up to `limit`."""

    rows: int
    limit: Fraction
    estimand: Estimand

    def __post_init__(self) -> None:
        if self.limit < _LEAST[self.estimand]:
            raise refusal("CV-P330", least=_LEAST[self.estimand], estimand=self.estimand, limit=self.limit)

    @property
    def effect(self) -> Fraction:
        """Largest change of the sum of h (mean of treated - mean of controls), in units of B."""
        return 2 * self.limit + 2 * ROUNDING * self.rows

    @property
    def weight(self) -> Fraction:
        """Largest change of the sum of h, in people."""
        return self.limit + 2 * ROUNDING * self.rows

    @property
    def variance(self) -> Fraction:
        """Largest change of the sum of h^2 (v_1/t + v_0/c), in units of B^2."""
        return self.largest_gain + self.largest_loss + 2 * ROUNDING * self.limit**2 * self.rows

    @property
    def largest_gain(self) -> Fraction:
        """The most that one inserted row can add to that sum, in units of B^2."""
        w = self.limit
        if self.estimand is Estimand.ATE:
            return w**2 * (1 + _share(w - 1))
        return max(w + Fraction(3, 4), w**2 * (1 + _share(w)))

    @property
    def largest_loss(self) -> Fraction:
        """The most that one inserted row can take from that sum, in units of B^2."""
        w = self.limit
        if self.estimand is Estimand.ATE:
            return max((8 * w**2 - 4 * w - 1) / 12, 4 - w**2 / 3)
        return 2 * w**2 / 3


def _share(v: Fraction) -> Fraction:
    """Return the other arm's part of a gain, beside the own arm's; v rows stand opposite each own row."""
    return max(Fraction(5, 4) / (3 * v - 1), 1 / (2 * v))
