"""Linear predictions of records from u = (1, z): of treatment and outcome for everyone, or of outcomes arm by
arm.

For a row with standardised features z, treatment t in {0, 1} (or its arm's number) and outcome y in units of
a released scale around a released centre,

    `LinearModels`   residual  y - m - theta (t - p) - u'g,    treatment residual  t - clip(p + u'd, -1, 2),
    `ArmLines`       residual  y - u'beta_a for a row of arm a,

with p the share treated, m the mean outcome, theta the effect (units of y), and d, g and beta_a coefficients.
All of these were released before. In come blocks of rows, out come their residuals, which stay inside the
process.

Why it matters that nothing else enters: a row's residual depends on that row and on released numbers alone,
so that functions that clip residuals and sum them can bound how far one record moves the sum. This module
releases nothing itself; proofs are those of the sums, for example `rows/moments/orthogonal_score.proof.md`.
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
