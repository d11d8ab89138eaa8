"""How much sites differ beyond their errors, and an average that allows for it.

Site j estimates its own effect, drawn around a mean with variance tau^2, with an error of variance v_j.
tau^2 is Paule and Mandel's; the interval is Hartung and Knapp's, never shorter than the one that takes
tau^2 as known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, stdtr, stdtrit

Floats = NDArray[np.float64]

# tau^2 is found to this part of the largest variance.
_PRECISION = 1e-12
_MOST_STEPS = 200


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


@dataclass(frozen=True, slots=True)
class HartungKnapp:
    """An average whose error is judged from how far the sites lie apart; t with `df` degrees of freedom."""

    std_error: float
    df: int

    @classmethod
    def of(cls, estimates: Floats, weights: Floats) -> HartungKnapp:
        """Return it for estimates (J,) and weights (J,) that add up to one."""
        centre, df = float(weights @ estimates), len(estimates) - 1
        return cls(sqrt(float(weights @ (estimates - centre) ** 2) / df), df)

    def half_width(self, level: float) -> float:
        """Return the half-width of an interval of this level."""
        return float(stdtrit(self.df, (1 + level) / 2)) * self.std_error

    def p_value(self, distance: float) -> float:
        """Return the two-sided p-value of an average this far from the tested value."""
        if self.std_error == 0:
            return float(distance == 0)
        return 2 * float(stdtr(self.df, -abs(distance) / self.std_error))
