"""How far one replaced row can move the number of people in strata that lack an arm, as the counts stand.

Everything here is in rows. Proof: `unmatched.proof.md`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterveil.privacy import Estimand
from counterveil.sensitivity.stratum_counts import Integers, StratumCounts, smooth_bound, two_fronts


def local_unmatched_change(counts: StratumCounts, estimand: str) -> int:
    """Return a bound on the change from these very data; a private number."""
    own, opp = _cells(counts, estimand)
    return _change(own, opp, counts.rows, 0)


def smooth_unmatched_change(counts: StratumCounts, smoothness: Fraction, estimand: str) -> Fraction:
    """Return a smooth bound on the change under replacement of one row."""
    own, opp = _cells(counts, estimand)
    places = two_fronts(own, opp)
    own, opp = own[places], opp[places]

    def change(k: int, floor: float) -> float:
        del floor
        return float(_change(own, opp, counts.rows, k))

    return smooth_bound(change, float(max(counts.rows, 1)), counts.rows, smoothness)


def _cells(counts: StratumCounts, estimand: str) -> tuple[Integers, Integers]:
    """Return the counts of the arm whose lack unmatches people, and of the arm of those people."""
    wanted = Estimand.parse(estimand)
    if wanted is Estimand.ATT:
        return counts.control, counts.treated
    if wanted is Estimand.ATC:
        return counts.treated, counts.control
    return np.append(counts.treated, counts.control), np.append(counts.control, counts.treated)


def _change(own: Integers, opp: Integers, rows: int, k: int) -> int:
    """Return the bound on one replacement over all data sets that k replacements reach."""
    lone = own <= k + 1
    return min(int(opp[lone].max(initial=-k)) + k + 1, max(rows, 1))
