"""Sums of public weights by cell of an outcome: counts in which rows count with weights from 0 to 1.

    N_aj = sum over rows i of arm a with an outcome in cell j of w_i / max w,    max over the arm.

In: the public weights w_i of an arm's rows (whole units, any scale), and every row's private cell. Out: the
exact numbers N_aj, in parts of the largest weight; noise is added by whoever releases them.

Why it is right: a row whose outcome changes leaves one cell and enters another with its weight, at most 1.
So the bounds of plain counts hold: 2 as a sum of absolute changes, sqrt 2 in Euclidean length.

Proof: `rows/distribution.proof.md`; for tables of event times `rows/time_tables.proof.md`.
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
