"""Which propensity scores leave enough overlap: fixed limits, or those of least variance (Crump et al. 2009)."""

from __future__ import annotations

from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats


def crump_limit(score: Floats) -> float:
    """Return a in [0, 1/2) such that the effect on those with scores in [a, 1 - a] has the least variance.

    Crump, Hotz, Imbens and Mitnik (2009), for outcomes of one variance: with g = 1 / (e (1 - e)), those are kept
    whose g is at most twice the mean g of those kept; 0 where that is everybody.
    """
    inside = np.clip(score, 1e-9, 1 - 1e-9)
    g = np.sort(1 / (inside * (1 - inside)))
    twice = 2 * np.cumsum(g) / np.arange(1, len(g) + 1)
    kept = int(np.flatnonzero(g <= twice)[-1])
    if kept == len(g) - 1:
        return 0.0
    return 0.5 - sqrt(max(0.25 - 1 / float(twice[kept]), 0.0))
