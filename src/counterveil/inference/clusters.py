"""Intervals around estimates whose standard error comes from few clusters and, perhaps, carries privacy noise.

Without noise the estimate is compared with Student's t. A standard error that was released with noise xi is enlarged
by the smallest constant kappa such that intervals built from `positive_part(S + xi)` + kappa cover at their level,
averaged over xi and over the sampling distribution of S, whatever the true standard error in [0, cap] is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri, stdtrit

from counterveil.inference.convolution import NoiseDistribution, interquartile_range
from counterveil.inference.p_values import p_value_from
from counterveil.inference.uncertainty import (
    Uncertainty,
    aimed_at,
    half_widths,
    least_inflation,
    level_rule,
    mean_of_logs,
    positive_part,
    tails,
)
from counterveil.numerics.arrays import Floats

# Levels that average over the noise of a standard error and over its own sampling distribution.
_LEVELS, _SHARES = level_rule(40, 20)
_OWN_LEVELS, _OWN_SHARES = level_rule(12, 8)
_TRIED, _KNOWN = 20, 120
# A standard error that is built on exceeds the largest possible one at most by this factor: estimates of it vary, and
# cut at the largest they would be too small on average.
_HEADROOM = 2.0


def t_factor(freedom: float, alpha: float) -> float:
    """Return by how much the quantile of Student's t exceeds the normal one."""
    return float(stdtrit(freedom, 1 - alpha / 2) / -ndtri(alpha / 2))


@dataclass(frozen=True, slots=True)
class ClusterUncertainty(Uncertainty):
    """The same where the standard error comes from clusters: `variance` is its square as released.

    A standard error that came out below 0 is 0. `sd_noise` is the noise of the standard error, None where it has none
    of its own. `freedom` are its degrees of freedom, from public or released numbers.
    """

    sd_noise: NoiseDistribution | None = None
    freedom: float = 1e6

    def likely_variance(self) -> float:
        """Return the sampling variance that the released standard error stands for."""
        if self.sd_noise is None:
            return Uncertainty.likely_variance(self)
        return float(positive_part(np.array([sqrt(self.variance)]), self.sd_noise)[0]) ** 2

    def known_variance(self, alpha: float) -> float:
        """Return the variance of the normal part to build a level 1 - alpha interval on."""
        factor = t_factor(self.freedom, alpha)
        if self.sd_noise is None:
            return factor**2 * Uncertainty.known_variance(self, alpha)
        assert self.noise is not None  # a released standard error goes with a released estimate
        cap = sqrt(self.variance_cap)
        kappa = sd_inflation(self.noise, self.sd_noise, cap, self.freedom, alpha)
        return (factor * min(sqrt(self.likely_variance()) + kappa, _HEADROOM * cap)) ** 2

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part to build a level 1 - alpha interval on."""
        # Noise that the clusters hold was estimated with them: it has their degrees of freedom.
        return sqrt(self.known_variance(alpha) + t_factor(self.freedom, alpha) ** 2 * self.extra)

    def p_value(self, distance: float, level: float) -> float:
        """Return the least alpha whose interval leaves out what lies this far off: tails of t, not normal ones."""
        return p_value_from(self.half_width, distance, level, self.bias)


def sd_inflation(
    noise: NoiseDistribution, sd_noise: NoiseDistribution, cap: float, freedom: float, alpha: float
) -> float:
    """Return the smallest kappa that keeps the level 1 - alpha for every standard error in [0, cap]."""
    return _sd_inflation(cast("Hashable", noise), cast("Hashable", sd_noise), cap, freedom, alpha)


@lru_cache(maxsize=256)
def _sd_inflation(
    noise: NoiseDistribution, sd_noise: NoiseDistribution, cap: float, freedom: float, alpha: float
) -> float:
    unit, factor = interquartile_range(sd_noise), t_factor(freedom, alpha)
    top = min(cap, 200.0 * unit)
    errors = np.concatenate([[0.0], np.geomspace(min(unit / 50, top / 2), top, _TRIED - 1)])
    # Grids are finer where the t factor is large, and reach beyond everything that can be built on.
    highest = factor * (4 * top + 24 * unit)
    known = np.concatenate([[0.0], np.geomspace(min(unit, top) / 100, highest, _KNOWN - 1)])
    widths = half_widths(known, noise, alpha)
    misses = tails(errors, np.tile(widths, (len(errors), 1)), noise)
    table = np.log(np.maximum(misses, 1e-300))
    xi = sd_noise.quantile(_LEVELS)
    own = np.sqrt(chdtri(freedom, 1 - _OWN_LEVELS) / freedom)
    shares = np.outer(_OWN_SHARES, _SHARES).ravel()
    ends = _HEADROOM * cap
    parts = positive_part(errors[:, None, None] * own[:, None] + xi, sd_noise)

    def missed(kappa: float, rows: NDArray[np.intp]) -> Floats:
        built = factor * np.minimum(parts[rows] + kappa, ends)
        return mean_of_logs(table[rows], known, built.reshape(len(rows), -1), shares)

    return least_inflation(missed, len(errors), aimed_at(alpha), unit, ends)
