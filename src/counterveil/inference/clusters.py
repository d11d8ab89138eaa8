"""Errors whose standard error comes from few clusters: intervals are Student's t, with or without privacy noise.

Without noise the estimate is compared with Student's t. A standard error S that was released with noise xi is
enlarged by the smallest constant kappa such that intervals built from

    t / z min(positive_part(S + xi) + kappa, 2 cap)

cover at their level, averaged over xi and over the sampling distribution of S, whatever the true standard error in
[0, cap] is; t and z are the quantiles of Student's t and of the normal. All numbers are in units of the estimate.
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

from counterveil.inference.miss_rates import HIGHEST_OCTAVE, MissRates, level_rule
from counterveil.inference.noise_distribution import (
    NoiseBatch,
    NoiseDistribution,
    interquartile_range,
    standardised,
)
from counterveil.inference.p_values import p_value_from
from counterveil.inference.searches import in_step
from counterveil.inference.uncertainty import Uncertainty
from counterveil.inference.variance_inflation import MOST_TRIED, aimed_at, least_inflation, positive_part
from counterveil.numerics.arrays import Floats

# Levels that average over the noise of a standard error and over its own sampling distribution.
_NOISE_LEVELS, _NOISE_SHARES = level_rule(40, 20)
_SAMPLING_LEVELS, _SAMPLING_SHARES = level_rule(12, 8)
# Standard errors that intervals are calibrated at.
_ERRORS_TRIED = 20
# A standard error that is built on exceeds the largest possible one at most by this factor: estimates of it vary, and
# cut at the largest they would be too small on average.
_HEADROOM = 2.0


def t_factor(freedom: float, alpha: float) -> float:
    """Return by how much the quantile of Student's t exceeds the normal one."""
    return float(stdtrit(freedom, 1 - alpha / 2) / -ndtri(alpha / 2))


@dataclass(frozen=True, slots=True)
class ClusterUncertainty(Uncertainty):
    """What is known about an error whose standard error comes from clusters.

    Attributes
    ----------
    noise : NoiseDistribution or None
        Distribution of the privacy noise; None for no noise.
    variance : float
        Square of the standard error as released; 0 where that came out below 0.
    variance_cap : float
        Largest sampling variance that is possible.
    variance_noise : NoiseDistribution or None
        Noise of `variance`, where that was released instead of its root.
    extra : float
        Variance of small noise terms that are carried as if they were normal.
    bias : float
        Bound of an error that no averaging removes.
    ball_variance : float
        Variance of one coordinate of l2-ball noise.
    ball_dimensions : {0, 2, 3}
        Dimensions of that noise; 0 for none.
    sd_noise : NoiseDistribution or None
        Noise of the standard error; None where it has none of its own.
    freedom : float
        Its degrees of freedom, from public or released numbers: intervals are Student's t.
    """

    sd_noise: NoiseDistribution | None = None
    freedom: float = 1e6

    @property
    def _normal(self) -> bool:
        return False  # tails are those of t: an interval is longer by the whole bias

    def likely_variance(self) -> float:
        """Return the sampling variance that the released standard error stands for.

        Returns
        -------
        float
            At least 0, in squared units of the estimate.
        """
        if self.sd_noise is None:
            return Uncertainty.likely_variance(self)
        return float(positive_part(np.array([sqrt(self.variance)]), self.sd_noise)[0]) ** 2

    def known_variance(self, alpha: float) -> float:
        """Return the variance of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Variance, in squared units of the estimate.
        """
        factor = t_factor(self.freedom, alpha)
        if self.sd_noise is None:
            return factor**2 * Uncertainty.known_variance(self, alpha)
        assert self.noise is not None  # a released standard error goes with a released estimate
        cap = sqrt(self.variance_cap)
        noises = cast("Hashable", self.noise), cast("Hashable", self.sd_noise)
        kappa = sd_inflation(*noises, cap, self.freedom, alpha)
        return (factor * min(sqrt(self.likely_variance()) + kappa, _HEADROOM * cap)) ** 2

    def known_sd(self, alpha: float) -> float:
        """Return the standard deviation of the normal part that an interval is built on.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, in (0, 1).

        Returns
        -------
        float
            Standard deviation, in units of the estimate.
        """
        # Noise that the clusters hold was estimated with them: it has their degrees of freedom.
        return sqrt(self.known_variance(alpha) + t_factor(self.freedom, alpha) ** 2 * self.extra)

    def p_value(self, distance: float, level: float) -> float:
        """Return the least alpha whose interval leaves out what lies this far off, by tails of t.

        Parameters
        ----------
        distance : float
            Distance of the estimate from the tested value, of either sign.
        level : float
            Noisy variances are enlarged as for an interval of this level, in (0, 1).

        Returns
        -------
        float
            Two-sided p-value, privacy noise included.
        """
        return p_value_from(self.half_width, distance, level, self.bias)


@lru_cache(maxsize=4096)
def sd_inflation(
    noise: NoiseDistribution, sd_noise: NoiseDistribution, cap: float, freedom: float, alpha: float
) -> float:
    """Return the smallest kappa that keeps the level 1 - alpha for every standard error in [0, cap]."""
    unit = interquartile_range(sd_noise)
    factor = t_factor(freedom, alpha)
    top = min(cap, MOST_TRIED * unit)
    ends = _HEADROOM * cap
    errors = np.append(0.0, np.geomspace(min(unit / 50, top / 2), top, _ERRORS_TRIED - 1))
    width = max(interquartile_range(noise), factor * (top + MOST_TRIED * unit) / 2.0 ** (HIGHEST_OCTAVE - 1))
    misses = MissRates(
        NoiseBatch([standardised(cast("Hashable", noise))[0]]),
        np.array([alpha]),
        np.zeros(_ERRORS_TRIED, np.intp),
        errors / width,
    )
    xi = sd_noise.quantile(_NOISE_LEVELS)
    levels_of_sd = np.sqrt(chdtri(freedom, 1 - _SAMPLING_LEVELS) / freedom)
    shares = np.outer(_SAMPLING_SHARES, _NOISE_SHARES).ravel()
    inflated = positive_part(errors[:, None, None] * levels_of_sd[:, None] + xi, sd_noise).reshape(
        _ERRORS_TRIED, -1
    )

    def built(row: NDArray[np.intp], kappa: Floats) -> Floats:
        return np.asarray((factor / width * np.minimum(inflated[row] + kappa[:, None], ends)) ** 2)

    search = least_inflation(np.arange(_ERRORS_TRIED), aimed_at(alpha), unit, ends)
    return in_step([search], misses.asked(built, shares))[0]
