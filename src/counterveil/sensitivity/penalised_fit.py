"""How far one record can move the weights of a penalised logistic regression that is solved inexactly.

Proof: `penalised_fit.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

# Square roots are rounded up to this many binary places.
_PLACES = 64


@dataclass(frozen=True, slots=True)
class PenalisedFit:
    """Sensitivity of the minimiser of (1/n) sum log-loss + (penalty/2)|w|^2 under replacement of one record.

    `squared_reach` bounds |x|^2 for every row, the constant column included; `tolerance` bounds the
    norm of the objective's gradient at the weights that are returned.
    """

    rows: int
    squared_reach: Fraction
    penalty: Fraction
    tolerance: Fraction

    @property
    def weights(self) -> Fraction:
        """Largest Euclidean length of a change of the weights, 2R/(n penalty) + 2 tolerance/penalty."""
        return 2 * (sqrt_up(self.squared_reach) / self.rows + self.tolerance) / self.penalty


def sqrt_up(value: Fraction) -> Fraction:
    """Return a rational that is at least the square root of `value`, and hardly more."""
    scaled = value * 4**_PLACES
    whole = -(-scaled.numerator // scaled.denominator)
    root = isqrt(whole)
    return Fraction(root if root * root == whole else root + 1, 2**_PLACES)
