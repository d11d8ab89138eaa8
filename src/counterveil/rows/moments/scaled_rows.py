"""Records in released units: the rows (u, arm, v) that every release by arm sums over.

A private record (x, arm, y), x features in [-1, 1] and y the outcome in half ranges around the middle of its
declared range, becomes

    u = (1, z),    z = (x - mean) / scale, clipped and shortened to |z|^2 <= L,    v = (y - centre) / unit,

so that |u|^2 <= 1 + L (`longest` is its root). mean and scale are of the features, centre and unit of the
outcome, in half ranges; z is in standard deviations and v in released units of the outcome. `constant` and
`outcome` are a and b of `arm_grams`, the squared lengths that the constant and the outcome get there.

All these numbers were released before, so that a row's u and v depend on its own record alone, as the proofs
of the sums require (`rows/moments/arm_grams.proof.md`, `rows/moments/orthogonal_score.proof.md`). This module
releases nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.products import Standard
from counterveil.rows.moments.scores import Block
from counterveil.rows.records import Kernel, TableRecords


@dataclass(frozen=True, slots=True)
class ScaledRows:
    """How a record (x, arm, y) becomes (u, arm, v), as the module says; all numbers are public or were released.

    Attributes
    ----------
    standard : Standard
        Means and scales of features, where coordinates are clipped and |z|^2 ends.
    centre : float
        Centre of the outcomes; they are in [-1, 1], half their range being one.
    unit : float
        Outcomes less the centre are divided by this.
    constant, outcome : float
        Squared lengths of the constant and of the outcome beside |z|^2 in `arm_grams`.
    """

    standard: Standard
    centre: float
    unit: float
    constant: float
    outcome: float

    @property
    def longest(self) -> float:
        """Bound of |u|."""
        return sqrt(1.0 + self.standard.squared_length)

    def blocks(self, records: TableRecords) -> Iterator[Block]:
        """Yield u, the number of the arm and v of all rows, a block at a time."""
        for block in records.parts():
            arm = block.batch.arm[block.rows].astype(np.float64)
            yield block.u(self.standard), arm, (block.y - self.centre) / self.unit


def over_scaled(records: TableRecords, kernel: Kernel, rows: ScaledRows, *arguments: Any) -> Sums:
    """Return the kernel's sums over (u, arm, v) of a table's records."""
    return kernel(rows.blocks(records), *arguments)
