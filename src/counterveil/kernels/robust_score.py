"""The doubly robust (AIPW) score of a row under given models, and its exact sums.

All parameters are public or were released before; a row's score depends on that row alone. Outcomes and predictions
are in units of half the outcome's range, in [-1, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from counterveil.kernels.inverse_weights import GRID_BITS

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreModels:
    """A linear outcome model on u = (1, z) with one effect, and a logistic propensity or a known one.

    The outcome of arm t is predicted as mean + u.outcome + effect (t - share), kept inside [-1, 1]. `slopes` are
    the logit's on z, `intercept` its constant; where `known` is a number, it is everyone's propensity.
    Propensities are kept `least` away from 0 and 1.
    """

    mean: float
    share: float
    outcome: Floats
    effect: float
    slopes: Floats
    intercept: float
    known: float | None
    least: float

    def predictions(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the predicted outcomes with and without treatment, (rows,) each."""
        line = self.mean + u @ self.outcome
        treated = np.clip(line + self.effect * (1 - self.share), -1.0, 1.0)
        return treated, np.clip(line - self.effect * self.share, -1.0, 1.0)

    def propensity(self, u: Floats) -> Floats:
        """Return the propensity of every row, inside [least, 1 - least]; a known one as it is."""
        if self.known is not None:
            return np.full(len(u), self.known)
        e: Floats = expit(u[:, 1:] @ self.slopes + self.intercept)
        return np.clip(e, self.least, 1 - self.least)

    def score(self, estimand: str, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return every row's score; for ATT and ATC it is to be divided by the part of rows in that arm."""
        first, second = self.predictions(u)
        e = self.propensity(u)
        if estimand == "ATE":
            return np.asarray(first - second + t * (y - first) / e - (1 - t) * (y - second) / (1 - e))
        if estimand == "ATT":
            return np.asarray((y - second) * np.where(t == 1, 1.0, -e / (1 - e)))
        return np.asarray((y - first) * np.where(t == 1, (1 - e) / e, -1.0))

    def centred(self, estimand: str, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return the score less the model's own effect, where the row counts for it."""
        counts = np.ones_like(t) if estimand == "ATE" else t if estimand == "ATT" else 1 - t
        return np.asarray(self.score(estimand, u, t, y) - self.effect * counts)


def whole_parts(values: Floats, bound: float) -> NDArray[np.int64]:
    """Return values in whole parts of 2**-GRID_BITS of a bound, clipped to it and truncated towards zero.

    A NaN, which models with noise of 1e300 can give, counts as 0: processors disagree on the integer of one.
    """
    part: Floats = np.clip(np.nan_to_num(values / bound), -1.0, 1.0)
    return np.trunc(np.ldexp(part, GRID_BITS)).astype(np.int64)
