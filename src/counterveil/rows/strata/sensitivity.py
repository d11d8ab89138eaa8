"""How far one replaced row can move the stratified effect and its parts when no weight exceeds a public limit.

With t treated and c control rows in a stratum, n = t + c, its effect speaks for h = min(n, w t, w c) people
(ATE), min(t, w c) (ATT) or min(c, w t) (ATC): a person's outcome counts at most w times. Proof:
`bounded_strata.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil.numerics.strata import ROUNDING
from counterveil.privacy import Estimand

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


# How far one outcome can move the stratified effect and its variance. Proof: `strata_outcome.proof.md`.


# Proof: strata_outcome.proof.md

# The largest weight is found in doubles: it is off by less than this, relatively.
_ROUNDING = Fraction(1, 2**48)


@dataclass(frozen=True, slots=True)
class StrataOutcome:
    """Sensitivities where everything but outcomes is public; y in [0, width].

    `weight` is the largest h/m over the arms of all strata, m being the rows of the arm, and `total` the sum
    of h; `rows` bounds the rounding of the sums.
    """

    width: Fraction
    weight: Fraction
    total: Fraction
    rows: int

    @classmethod
    def of(
        cls,
        width: Fraction,
        weights: NDArray[np.float64],
        treated: NDArray[np.int64],
        control: NDArray[np.int64],
        total: Fraction,
    ) -> StrataOutcome:
        """Return the sensitivities for strata of these weights h and counts."""
        rows = int(treated.sum()) + int(control.sum())
        return cls.of_arm(width, weights, np.minimum(treated, control), total, rows)

    @classmethod
    def of_arm(
        cls,
        width: Fraction,
        weights: NDArray[np.float64],
        counts: NDArray[np.int64],
        total: Fraction,
        rows: int,
    ) -> StrataOutcome:
        """Return the sensitivities of one arm's mean over strata and of its variance; `counts` are its rows."""
        both = weights > 0
        largest = float((weights[both] / counts[both]).max(initial=0.0))
        return cls(width, Fraction(largest) * (1 + _ROUNDING), total, rows)

    @property
    def effect(self) -> Fraction:
        """Largest change of the sum of h (mean difference), divided by the sum of h."""
        return self.width * (self.weight + 2 * self.rows * _ROUNDING) / self.total

    @property
    def variance(self) -> Fraction:
        """Largest change of the sum of (h/m)^2 m/(m-1) SS, divided by the squared sum of h."""
        return (self.width * self.weight / self.total) ** 2 * (1 + 2 * self.rows * _ROUNDING)


# Proof: cluster_cells.proof.md
@dataclass(frozen=True, slots=True)
class ClusterCells:
    """Sensitivities of counts and centred sums by cell, in l1, under replacement of one row; outcomes in [0, width]."""

    width: Fraction

    @property
    def counts(self) -> Fraction:
        """Largest total change of the numbers of rows."""
        return Fraction(2)

    @property
    def sums(self) -> Fraction:
        """Largest total change of the sums of y - width / 2."""
        return self.width
