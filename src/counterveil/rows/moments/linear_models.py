"""Linear predictions of records: of treatment and outcome from u = (1, z), for everyone or arm by arm.

All coefficients were released before; outcomes are in units of a released scale, around a released centre. A
row's prediction depends on that row alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import projected

# A fitted propensity below the first or above the second is noise, and is taken for it.
LOWEST = -1.0
_HIGHEST = 2.0
# Lines that all rows are put through: looking each row's weights up takes as long as so many.
_FEW = 2


@dataclass(frozen=True, slots=True)
class LinearModels:
    """Two linear models on u = (1, z), around the share treated and the mean outcome.

    Attributes
    ----------
    share, mean : float
        Share treated and mean outcome.
    treatment, shrunk : ndarray of shape (m,)
        Coefficients for t - share, unshrunk and shrunk.
    outcome : ndarray of shape (m,)
        Coefficients for y - mean - effect (t - share).
    effect : float
        Of the treatment.
    """

    share: float
    mean: float
    treatment: Floats
    shrunk: Floats
    outcome: Floats
    effect: float

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return y - effect t less its model, for every row."""
        return np.asarray(y - self.mean - self.effect * (t - self.share) - projected(u, self.outcome))

    def treatment_residual(self, u: Floats, t: Floats) -> Floats:
        """Return t less its unshrunk model, for every row."""
        return np.asarray(t - np.clip(self.share + projected(u, self.treatment), LOWEST, _HIGHEST))

    def score(self, u: Floats) -> Floats:
        """Return the shrunk propensity of every row, unclipped."""
        return np.asarray(self.share + projected(u, self.shrunk))


@dataclass(frozen=True, slots=True)
class ArmLines:
    """Lines on u = (1, z) that predict the outcome in each arm.

    Attributes
    ----------
    values : ndarray of shape (arms, m)
        Coefficients, the reference first.
    """

    values: Floats

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return every row's outcome less the prediction for its own arm."""
        return np.asarray(y - of_own_arm(u, t.astype(np.intp), self.values))


def of_own_arm(u: Floats, arm: NDArray[np.intp], lines: Floats) -> Floats:
    """Return for every row the value of its own arm's line, added up as `projected` does."""
    if len(lines) <= _FEW:
        values = [projected(u, line) for line in lines]
        return np.asarray(np.choose(arm, values) if len(values) > 1 else values[0])
    values_of_rows = np.zeros(len(u))
    for column, weights in zip(u.T, np.ascontiguousarray(lines.T), strict=True):
        values_of_rows += column * weights.take(arm)
    return values_of_rows
