"""How far one record can move the average of functions that were learned in separate folds.

Proof: `fold_functions.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.sensitivity.free_gram import LENGTH_SLACK


@dataclass(frozen=True, slots=True)
class FoldFunctions:
    """l2 sensitivity of the means over `folds` of (v, 1.665 |v|^2), v being a fold's coefficients, |v| <= 1."""

    folds: int

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return 2 * (1 + LENGTH_SLACK) / self.folds
