"""How far one outcome can move the stratified effect and its variance. Proof: `strata_outcome.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

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
        both = weights > 0
        smaller = np.minimum(treated, control)[both]
        largest = float((weights[both] / smaller).max(initial=0.0))
        rows = int(treated.sum()) + int(control.sum())
        return cls(width, Fraction(largest) * (1 + _ROUNDING), total, rows)

    @property
    def effect(self) -> Fraction:
        """Largest change of the sum of h (mean difference), divided by the sum of h."""
        return self.width * (self.weight + 2 * self.rows * _ROUNDING) / self.total

    @property
    def variance(self) -> Fraction:
        """Largest change of the sum of (h/m)^2 m/(m-1) SS, divided by the squared sum of h."""
        return (self.width * self.weight / self.total) ** 2 * (1 + 2 * self.rows * _ROUNDING)
