"""How far one outcome can move the stratified effect, the mean of an arm over strata, and their variances.

    effect:  B w / H,    variance:  (B w / H)^2,    w = max over arms of strata of h / m,    H = sum h,

with B the width of the outcome's range, public weights h of strata and m the rows of an arm in a stratum; in
units of the outcome and in squared ones. For one arm's mean w is the maximum over that arm alone.

In: public counts and weights. Out: bounds, as exact fractions, to which noise is calibrated.

Why it is right: everything but outcomes is public, and one outcome has the coefficient h / (m H) in the
effect, of which the largest decides; only its own arm's part of the variance moves. Sums are computed in
doubles, and the bounds are raised by twice what rounding may add (`_ROUNDING`, derived in `statistics.py`).

Proof: `rows/strata/strata_outcome.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

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
        return cls.of_arm(width, weights, counts=np.minimum(treated, control), total=total, rows=rows)

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
