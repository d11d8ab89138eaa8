"""How far one row moves both arms' sums of outcomes around the middle of their range.

With y in [0, B] in units of the outcome and t = 1 for a treated row, 0 for another, both private,

    (sum t (y - B/2), sum (1 - t) (y - B/2))

moves by at most B, in the sum of absolute changes, where one row is replaced. In comes the width B, out comes
that sensitivity, which scales Laplace noise on both sums.

Why: a row is at most B/2 away from the middle. Within one arm its sum moves by at most B; a row that changes
arm leaves one sum and enters the other, with at most B/2 each.
Proof: `rows/moments/arm_sums.proof.md`.
"""

# Proof: arm_sums.proof.md

from __future__ import annotations

from fractions import Fraction


def both_sums(width: Fraction) -> Fraction:
    """Return the largest sum of the changes of sum t (y - B/2) and sum (1-t) (y - B/2), y in [0, B]."""
    return width
