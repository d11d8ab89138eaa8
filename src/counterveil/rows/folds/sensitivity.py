"""How far one record can move the average of effects that were estimated in separate folds.

Proof: `fold_average.proof.md`.
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
