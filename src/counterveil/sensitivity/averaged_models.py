"""How far one record can move a doubly robust mean whose models are averaged over the other folds.

Proof: `averaged_models.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class AveragedModels:
    """Sensitivities of the mean score and of its mean square.

    `width` is that of the outcome's range, `clip` bounds scores away from 0 and 1, `smallest` is the number of
    rows of the smallest fold, `grid` the step on which scores are summed.
    """

    width: Fraction
    clip: Fraction
    rows: int
    folds: int
    smallest: int
    grid: Fraction

    @property
    def bound(self) -> Fraction:
        """Largest size of a score: width / clip."""
        return self.width / self.clip

    @property
    def others(self) -> Fraction:
        """Largest change of another row's score when one of the models that it averages changes."""
        return self.width * (2 / self.clip - 1 / (1 - self.clip)) / (self.folds - 1) + 2 * self.grid

    @property
    def mean(self) -> Fraction:
        """Largest change of the mean score."""
        return 2 * self.bound / self.rows + self._elsewhere * self.others

    @property
    def square(self) -> Fraction:
        """Largest change of the mean square of the score."""
        return self.bound**2 / self.rows + self._elsewhere * 2 * self.bound * self.others

    @property
    def _elsewhere(self) -> Fraction:
        return 1 - Fraction(self.smallest, self.rows)
