"""How much sites differ beyond their errors, and an average that allows for it.

Site j estimates its own effect, drawn around a mean with variance tau^2, with an error of variance v_j. The average
has equal weights over the sites that are not drowned in their noise, and Student's t over sites judges its error:
right for every tau^2 and however unequal the v_j are. tau^2, for the choice of sites, is Paule and Mandel's.
Proof: random_effects.proof.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, stdtr, stdtrit

from counterveil.numerics.arrays import Floats

# tau^2 is found to this part of the largest variance.
_PRECISION = 1e-12
_MOST_STEPS = 200
# The level whose interval decides which sites are averaged; what is averaged does not change with the level.
_USUAL_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Cochran's Q with its degrees of freedom and p-value, I^2 (the part of Q beyond chance), and tau^2."""

    q: float
    df: int
    p_value: float
    i_squared: float
    tau_squared: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def heterogeneity(estimates: Floats, variances: Floats) -> Heterogeneity:
    """Return how much estimates (J,) differ beyond what their variances (J,) explain."""
    q, df = _excess(0.0, estimates, variances), len(estimates) - 1
    beyond = max(0.0, 1 - df / q) if q > 0 else 0.0
    return Heterogeneity(q, df, float(chdtrc(df, q)), beyond, paule_mandel(estimates, variances))


def paule_mandel(estimates: Floats, variances: Floats) -> float:
    """Return the tau^2 at which the weighted sum of squares equals its degrees of freedom; 0 at least."""
    df = len(estimates) - 1
    if _excess(0.0, estimates, variances) <= df:
        return 0.0
    # At this value every weight is at most 1/tau^2, so the sum of squares is below its aim.
    low, high = 0.0, float(((estimates - estimates.mean()) ** 2).sum()) / df
    for _ in range(_MOST_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _excess(middle, estimates, variances) > df else (low, middle)
        if high - low <= _PRECISION * (high + float(variances.max())):
            break
    return high


def _excess(tau_squared: float, estimates: Floats, variances: Floats) -> float:
    weights = 1 / (variances + tau_squared)
    centre = float(weights @ estimates / weights.sum())
    return float(weights @ (estimates - centre) ** 2)


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
    """The error of a mean of `sites` estimates with equal weights, judged from how far they lie apart."""

    std_error: float
    sites: int

    @classmethod
    def of(cls, estimates: Floats) -> ErrorBetweenSites:
        """Return it for the estimates (K,) of the sites in the mean, two at least."""
        count = len(estimates)
        return cls(float(np.std(estimates, ddof=1)) / sqrt(count), count)

    def half_width(self, level: float) -> float:
        """Return the half-width of an interval of this level for the mean effect of sites."""
        return float(stdtrit(self.sites - 1, (1 + level) / 2)) * self.std_error

    def reach(self, level: float) -> float:
        """Return the half-width of an interval of this level for the effect at one more site.

        The estimates' variance includes their own errors, so that the interval errs on the long side.
        """
        return self.half_width(level) * sqrt(self.sites + 1)

    def p_value(self, distance: float) -> float:
        """Return the two-sided p-value of a mean this far from the tested value."""
        if self.std_error == 0:
            return float(distance == 0)
        return 2 * float(stdtr(self.sites - 1, -abs(distance) / self.std_error))
