"""How far one record can move the average of effects that were estimated in separate folds.

Proof: `fold_average.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.statistics.moments.sensitivity import LENGTH_SLACK

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


# How far one record can move the average of functions that were learned in separate folds.


# Proof: fold_functions.proof.md


@dataclass(frozen=True, slots=True)
class FoldFunctions:
    """l2 sensitivity of the means over `folds` of (v, 1.665 |v|^2), v being a fold's coefficients, |v| <= 1."""

    folds: int

    @property
    def means(self) -> Fraction:
        """Largest Euclidean length of a change of the means."""
        return 2 * (1 + LENGTH_SLACK) / self.folds


# How far one record can move a doubly robust mean whose models are averaged over other folds.


# Proof: averaged_models.proof.md


@dataclass(frozen=True, slots=True)
class AveragedModels:
    """Sensitivities of the mean score and of its mean square.

    `width` is that of the outcome's range, `clip` bounds scores away from 0 and 1, `smallest` and `largest` are the
    rows of the smallest and of the largest fold, `models` is the number of other folds whose models a row's score
    averages, `grid` the step on which scores are summed.
    """

    width: Fraction
    clip: Fraction
    rows: int
    smallest: int
    largest: int
    models: int
    grid: Fraction

    @property
    def bound(self) -> Fraction:
        """Largest size of a score: width / clip."""
        return self.width / self.clip

    @property
    def others(self) -> Fraction:
        """Largest change of another row's score when one of the models that it averages changes."""
        return self.width * (2 / self.clip - 1 / (1 - self.clip)) / self.models + 2 * self.grid

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
        """Largest part of the rows that use one fold's models."""
        return Fraction(min(self.rows - self.smallest, self.models * self.largest), self.rows)
