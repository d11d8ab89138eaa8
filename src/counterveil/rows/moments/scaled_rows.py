"""Records in released units: what every release by arm sums over, and how long a row and its outcome can
be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.rows.moments.scores import Block
from counterveil.rows.records import Kernel, TableRecords


@dataclass(frozen=True, slots=True)
class ScaledRows:
    """How a record (x, arm, y) becomes (u, arm, v):

        u = (1, z),    z = (x - mean) / scale, clipped and shortened,    v = (y - centre) / unit.

    All numbers are public or were released, so that a row's u and v depend on that row alone.

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

    @property
    def farthest_outcome(self) -> float:
        """Bound of |v|: y is in [-1, 1]."""
        return (1.0 + abs(self.centre)) / self.unit

    def farthest_line(self, line: Floats) -> float:
        """Return a bound of |line'u|: of all rows, each coordinate and the length of z are limited."""
        by_length = sqrt(self.standard.squared_length) * float(np.linalg.norm(line[1:]))
        by_coordinate = self.standard.limit * float(np.abs(line[1:]).sum())
        return abs(float(line[0])) + min(by_length, by_coordinate)

    def blocks(self, records: TableRecords) -> Iterator[Block]:
        """Yield u, the place of the arm and v of all rows, a block at a time."""
        for block in records.parts():
            arm = block.batch.arm[block.rows].astype(np.float64)
            y = block.y
            yield block.u(self.standard), arm, (y - self.centre) / self.unit


def over_scaled(records: TableRecords, kernel: Kernel, rows: ScaledRows, *arguments: Any) -> Sums:
    """Return the kernel's sums over (u, arm, v) of a table's records."""
    return kernel(rows.blocks(records), *arguments)
