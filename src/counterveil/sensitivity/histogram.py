"""How far one record can move a histogram on public cells. Proof: `histogram.proof.md`."""

from __future__ import annotations

from fractions import Fraction

# One record leaves a cell and enters another; a sum of absolute changes, in rows.
HISTOGRAM = Fraction(2)
