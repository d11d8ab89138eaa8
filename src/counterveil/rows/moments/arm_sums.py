"""How far one row moves both arms' sums of outcomes around the middle of their range."""

# Proof: arm_sums.proof.md

from __future__ import annotations

from fractions import Fraction


def both_sums(width: Fraction) -> Fraction:
    """Return the largest sum of the changes of sum t (y - B/2) and sum (1-t) (y - B/2), y in [0, B]."""
    return width
