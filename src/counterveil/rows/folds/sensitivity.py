"""How far one record can move the average of effects that were estimated in separate folds.

    mean of e_1, ..., e_K:  2 c / K,    mean of e_1^2, ..., e_K^2:  c^2 / K,

with e_k the effect of fold k less a centre, clipped to [-c, c], in units of the outcome (squares in squared
units), and K the number of folds.

In: the public numbers K and c. Out: the bounds, as exact fractions, to which noise is calibrated.

Why it is right: a record lies in one fold and moves that fold's effect from one number in [-c, c] to another;
the others stay.

Proof: `rows/folds/fold_average.proof.md`.
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
