"""How far one record can move a penalised regression of residuals. Proof: `penalised_effect.proof.md`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.free_gram import LENGTH_SLACK
from counterveil.sensitivity.penalised_fit import sqrt_up


@dataclass(frozen=True, slots=True)
class PenalisedEffect:
    """Sensitivity of the minimiser of (1/n) sum (v - u.w)^2 + penalty |w|^2 under replacement of one record.

    |u| <= reach and v lies in [-1, 1]; `tolerance` bounds the norm of the gradient at the weights that are returned.
    """

    rows: int
    reach: Fraction
    penalty: Fraction
    tolerance: Fraction

    @property
    def weights(self) -> Fraction:
        """Largest Euclidean length of a change of the weights."""
        reach = self.reach * (1 + LENGTH_SLACK)
        # 1 / sqrt(penalty), rounded up.
        largest = sqrt_up(1 / self.penalty)
        exact = 2 * reach * (1 + reach * largest / 2) / (self.penalty * self.rows)
        return exact + self.tolerance / self.penalty
