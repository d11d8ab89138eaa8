"""The error of an average of sites, judged from how far their estimates lie apart.

    M = mean of K estimates,    standard error = s / sqrt(K),    interval M -+ t_{K-1} s / sqrt(K),

s being their standard deviation (divisor K - 1) and t the quantile of Student's t, all in units of the
estimate. Weights are equal, over the sites that are not drowned in their noise: those that make the shortest
interval, judged from released variances and the variance tau^2 between sites.

Right for every tau^2 and however unequal the errors of sites are: for independent normals of any variances,
and mixtures of such, Student's t errs on the long side at levels of 91.7 % and more (Bakirov and Szekely
2006; Ibragimov and Muller 2010). Proof, and what is approximate (the choice of sites reads tau^2):
`inference/random_effects.proof.md`. All of it is arithmetic on released numbers; privacy does not depend on
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from counterveil.numerics.arrays import Floats

# The level whose interval decides which sites are averaged; what is averaged does not change with the level.
_USUAL_LEVEL = 0.95


# Proof: random_effects.proof.md
def quiet_sites(variances: Floats, tau_squared: float) -> NDArray[np.bool_]:
    """Return which sites (J,) make the shortest interval: those of least variance, two at least.

    Expected lengths are compared at the usual level with effects that vary by `tau_squared` between sites.
    """
    order = np.argsort(variances, kind="stable")
    count = np.arange(2, len(variances) + 1)
    total = np.cumsum(variances[order] + tau_squared)[1:]
    best = int(np.argmin(stdtrit(count - 1, (1 + _USUAL_LEVEL) / 2) * np.sqrt(total) / count)) + 2
    chosen = np.zeros(len(variances), dtype=np.bool_)
    chosen[order[:best]] = True
    return chosen


@dataclass(frozen=True, slots=True)
class ErrorBetweenSites:
    """The error of a mean of estimates with equal weights, judged from how far they lie apart.

    Attributes
    ----------
    std_error : float
        Standard error of the mean, in units of the effect.
    sites : int
        Number of sites.
    """

    std_error: float
    sites: int

    @classmethod
    def of(cls, estimates: Floats) -> ErrorBetweenSites:
        """Return the error of the mean of these estimates.

        Parameters
        ----------
        estimates : ndarray of float, shape (k,)
            Estimates of the sites in the mean, two at least.

        Returns
        -------
        ErrorBetweenSites
            Their standard deviation over the root of k.
        """
        count = len(estimates)
        return cls(float(np.std(estimates, ddof=1)) / sqrt(count), count)

    def half_width(self, level: float) -> float:
        """Return the half-width of an interval for the mean effect of sites.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            Student's t of k - 1 degrees of freedom times the standard error.
        """
        return float(stdtrit(self.sites - 1, (1 + level) / 2)) * self.std_error

    def prediction_half_width(self, level: float) -> float:
        """Return the half-width of an interval for the effect at one more site.

        Parameters
        ----------
        level : float
            Confidence level, in (0, 1).

        Returns
        -------
        float
            It errs on the long side: the variance of the estimates includes their own errors.
        """
        return self.half_width(level) * sqrt(self.sites + 1)

    def p_value(self, distance: float) -> float:
        """Return the two-sided p-value of a mean this far from the tested value.

        Parameters
        ----------
        distance : float
            Distance, of either sign.

        Returns
        -------
        float
            P-value by Student's t.
        """
        if self.std_error == 0:
            return float(distance == 0)
        return 2 * float(stdtr(self.sites - 1, -abs(distance) / self.std_error))
