"""Sums of public weights by cell of an outcome: counts in which rows count with weights from 0 to 1.

    sum over rows of one arm with an outcome in the cell of w_i / max w.

A row whose outcome changes leaves one cell and enters another with its weight, at most 1: bounds of counts
hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class ArmWeights:
    """The rows of one arm and their public weights, in whole units.

    Attributes
    ----------
    rows : ndarray of int
        Places of the rows.
    units : ndarray of int
        Their weights, in units of which the largest weight has at least one.
    """

    rows: NDArray[np.intp]
    units: NDArray[np.int64]

    def sums(self, cell: NDArray[np.int64], cells: int) -> list[Fraction]:
        """Return the sums of weights by cell, the largest weight being 1, exactly; `cell` is that of every row."""
        sums = np.zeros(cells, dtype=np.int64)
        np.add.at(sums, cell[self.rows], self.units)
        largest = int(self.units.max())
        return [Fraction(int(total), largest) for total in sums]
