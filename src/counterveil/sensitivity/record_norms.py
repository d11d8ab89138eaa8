"""How far one record can move the counts of rows by their length. Proof: `record_norms.proof.md`."""

from __future__ import annotations

from fractions import Fraction

from counterveil.sensitivity.penalised_fit import sqrt_up

# One record leaves a cell and enters another: root of two in Euclidean length, two in the sum of changes.
NORMS_L2 = sqrt_up(Fraction(2))
NORMS_L1 = Fraction(2)
