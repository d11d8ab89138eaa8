"""The subset of sites whose pooled estimate varies least. Proof: subset_pooling.proof.md."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def best_subset(sizes: Floats, variances: Floats) -> NDArray[np.bool_]:
    """Return which sites to pool, with weights in proportion to their sizes, for the least variance.

    sizes (J,) are positive, variances (J,) are not negative. The variance of a subset I is
    sum N_j^2 v_j / (sum N_j)^2; the least one is that of some sites with the smallest N_j v_j.
    """
    order = np.argsort(sizes * variances, kind="stable")
    people = np.cumsum(sizes[order])
    spread = np.cumsum(sizes[order] ** 2 * variances[order])
    count = int(np.argmin(spread / people**2)) + 1
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[order[:count]] = True
    return chosen
