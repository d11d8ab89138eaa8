"""The adaptive limit on how often a unit may be used in matching (PrivATE, equations 9 to 12).

The error of a sum is modelled as noise of variance 2 k^2 B^2/epsilon^2 plus a squared bias
(c B n_1 M_1/k)^2, n_1 being the size of the larger arm and M_1 the largest number of uses under
unlimited matching divided by the number of neighbours. The paper states k* = sqrt(epsilon c n_1 M_1 / 2);
the minimum of its own model has sqrt(2) in place of 2, which is 19 % larger. The paper's value is used.
"""

from __future__ import annotations

import math


def adaptive_limit(epsilon: float, c: float, n_larger: int, M1: float, *, capped: bool = True) -> int:
    """Return k_f, the limit in units of neighbours of the smaller arm.

    Equation 9 rounded (halves up) to at least 1 and, if `capped` (equation 10), to at most the whole
    part of M1, which again is taken as at least 1; equation 12 has no cap.
    """
    k = max(1, math.floor(math.sqrt(epsilon * c * n_larger * M1 / 2) + 0.5))
    return min(k, max(1, math.floor(M1))) if capped else k


def arm_limits(limit: int, n_treated: int, n_control: int) -> tuple[int, int]:
    """Return (k_1, k_2), the limits of treated and control donors in units of neighbours.

    The smaller arm, whose units are used more often, has the limit itself; the larger one that limit
    times the ratio of sizes, rounded (halves up) to at least 1. Capacities are k_1 N and k_2 N.
    """
    small, large = sorted((n_treated, n_control))
    other = max(1, math.floor(limit * small / large + 0.5)) if large else limit
    return (limit, other) if n_treated <= n_control else (other, limit)
