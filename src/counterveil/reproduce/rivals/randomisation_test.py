"""A randomisation test of no effect on a yes-or-no outcome of a trial, from noisy counts of yes in both arms.

After the private Fisher test of Sun (dp_frt): counts with geometric noise, and Fisher's p-value averaged over what
the counts may have been (a uniform prior on each). Treatments are public: one outcome moves one count by one.
"""

from __future__ import annotations

from math import ceil, exp

import numpy as np
from numpy.typing import NDArray

from counterveil.reproduce.rivals.protocol import Budget, Records

# Counts that are further from the released one than this many times 1 / epsilon have no weight.
_REACH = 12


def noisy_counts(records: Records, budget: Budget, seed: int) -> tuple[int, int]:
    """Return the counts of yes among treated and others, each with two-sided geometric noise of epsilon."""
    rng = np.random.default_rng(seed)
    yes = records.outcomes > sum(records.outcome_range) / 2
    stop = 1 - exp(-budget.epsilon)
    noise = rng.geometric(stop, 2) - rng.geometric(stop, 2)
    return int(yes[records.treated].sum() + noise[0]), int(yes[~records.treated].sum() + noise[1])


def fisher(
    first: NDArray[np.int64], second: NDArray[np.int64], sizes: tuple[int, int]
) -> NDArray[np.float64]:
    """Return two-sided p-values of Fisher's test, by how far the first count is from its mean."""
    from scipy.stats import hypergeom  # loaded by those who need it: it takes half a second and 40 MB

    total = first + second
    mean = total * sizes[0] / sum(sizes)
    away = np.abs(first - mean)
    law = hypergeom(sum(sizes), total, sizes[0])
    lower = law.cdf(np.floor(mean - away + 1e-9))
    upper = law.sf(np.ceil(mean + away - 1e-9) - 1)
    return np.asarray(np.clip(lower + upper, 0, 1))


def p_value(records: Records, budget: Budget, seed: int) -> float:
    """Return the private p-value: the mean of Fisher's over the posterior of the counts."""
    sizes = int(records.treated.sum()), int((~records.treated).sum())
    reach = ceil(_REACH / budget.epsilon)
    axes, weights = [], []
    for noisy, size in zip(noisy_counts(records, budget, seed), sizes, strict=True):
        low, high = max(0, min(noisy - reach, size)), min(size, max(noisy + reach, 0))
        counts = np.arange(low, high + 1)
        axes.append(counts)
        weights.append(np.exp(-budget.epsilon * (np.abs(counts - noisy) - np.abs(counts - noisy).min())))
    first, second = np.meshgrid(*axes, indexing="ij")
    weight = np.outer(*weights)
    return float((fisher(first, second, sizes) * weight).sum() / weight.sum())
