"""How far one replaced row can move the counts and the centred sums of outcomes by cluster and arm.

    counts:  2 rows,        centred sums:  B units of the outcome,

as sums of absolute changes over all cells, with B the width of the outcome's range. Noise of these scales
over epsilon on every cell is epsilon-differentially private.

Why it is right: a row leaves one cell and enters another, so counts change by 1 in both. Centred at the
middle of their range, outcomes are at most B / 2 in size, so that sums change by B altogether.

Proof: `rows/strata/cluster_cells.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


# Proof: cluster_cells.proof.md
@dataclass(frozen=True, slots=True)
class ClusterCells:
    """Sensitivities of counts and centred sums by cell, in l1, under replacement of one row; outcomes in [0, width]."""

    width: Fraction

    @property
    def counts(self) -> Fraction:
        """Largest total change of the numbers of rows."""
        return Fraction(2)

    @property
    def sums(self) -> Fraction:
        """Largest total change of the sums of y - width / 2."""
        return self.width
