"""How far one record can move the average of effects that were estimated in separate folds.

A record lies in one of K folds and moves that fold's effect, clipped to [-c, c], by 2 c at most: the mean of all by
2 c / K, and the mean square by c^2 / K, in units of the outcome and in squared ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


# Proof: fold_average.proof.md
@dataclass(frozen=True, slots=True)
class FoldAverage:
    """Sensitivities of the mean of `folds` effects, each clipped to [-bound, bound], and of their mean square."""

    folds: int
    bound: Fraction

    @property
    def mean(self) -> Fraction:
        """Largest change of the mean, 2 bound / folds."""
        return 2 * self.bound / self.folds

    @property
    def square(self) -> Fraction:
        """Largest change of the mean square, bound^2 / folds."""
        return self.bound**2 / self.folds
