"""How far one row moves both arms' sums of outcomes around the middle of their range.

With y in [0, B] in units of the outcome and t who was treated, (sum t (y - B/2), sum (1 - t) (y - B/2)) moves
by at most B in the sum of absolute changes: a row is within B/2 of the middle, in one of the sums before and
in one after.
"""

# Proof: arm_sums.proof.md

from __future__ import annotations

from fractions import Fraction


def both_sums(width: Fraction) -> Fraction:
    """Return the largest sum of the changes of sum t (y - B/2) and sum (1-t) (y - B/2), y in [0, B]."""
    return width
