"""The outcomes that are estimated together: their names, ranges and weights."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a study: names, ranges, and weights that one over their noise is in proportion to."""

    names: tuple[str, ...]
    ranges: tuple[tuple[Fraction, Fraction], ...]
    weights: tuple[Fraction, ...]

    @property
    def widths(self) -> list[Fraction]:
        """The widths of the ranges."""
        return [high - low for low, high in self.ranges]

    def numbers(self, table: Table) -> list[NDArray[np.int64]]:
        """Return everyone's outcomes in steps of their ranges."""
        return [table.outcome, *table.measures[: len(self.names) - 1]]

    @property
    def _even(self) -> bool:
        return len(set(self.weights)) == 1

    def drawn(self, mechanism: str) -> str:
        """Return the noise that is drawn for a question's mechanism."""
        return "gaussian" if mechanism == "gaussian" else "box" if self._even else "staircase"

    def noise_factor(self, mechanism: str) -> float:
        """Return about how much more noise the first outcome has than it would have alone."""
        sizes = [float(weight / self.weights[0]) for weight in self.weights]
        if mechanism == "gaussian":
            return sqrt(sum(size**2 for size in sizes))
        count = len(sizes)
        return sqrt((count + 1) * (count + 2) / 6) if self._even else sum(sizes)
