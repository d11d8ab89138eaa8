"""How the error of several looks is divided among them: alpha spending (Lan and DeMets 1983).

The interval of a look misses with at most the part of alpha that its look spends. These parts add up to alpha, so that
all intervals cover together, at whatever look a study stops and however its looks depend on each other; noise that is
drawn afresh at each look makes that dependence unlike the one that sharper boundaries assume.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import e, log, sqrt

from scipy.special import ndtr, ndtri


def _late(share: float, alpha: float) -> float:
    """Return what is spent by a share of the information in the manner of O'Brien and Fleming: little at first."""
    return float(2 * ndtr(ndtri(alpha / 2) / sqrt(share)))


def _even(share: float, alpha: float) -> float:
    """Return the same in the manner of Pocock: about equally at each look."""
    return alpha * log(1 + (e - 1) * share)


SPENDING: dict[str, Callable[[float, float], float]] = {"obrien_fleming": _late, "pocock": _even}
# No interval is asked for beyond the level that intervals are computed to.
LEAST_ALPHA = Fraction(1, 10**6)


def alphas(rows: Sequence[int], alpha: Fraction, spending: str) -> tuple[Fraction, ...]:
    """Return the chance of a miss that each look spends, exact numbers of sum alpha."""
    spent = [Fraction(0)]
    for number in rows[:-1]:
        by_now = Fraction(round(SPENDING[spending](number / rows[-1], float(alpha)) * 10**9), 10**9)
        spent.append(max(by_now, spent[-1] + LEAST_ALPHA))
    spent.append(alpha)
    return tuple(later - earlier for earlier, later in itertools.pairwise(spent))
