"""Matching towards one arm: everybody outside it borrows the outcomes of its nearest units on the score.

With arm k of n_k rows and P(j) the N units of the arm nearest to unit j on the score of the arm, the mean is
(1/n)(sum over the arm of Y_i + sum over the others of the mean of Y over P(j)): a weighted sum of the arm's
own outcomes with public coefficients c_i = (1 + K_i)/n, K_i = sum over j with i in P(j) of 1/|P(j)|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.arms.settings import ArmsSettings
from counterveil.kernels.matching import matching_coefficients

Floats = NDArray[np.float64]

# How much of the supposed spread of the mean outcome follows the score.
_SCORE_SHARE = 0.3
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-6
_TRIES, _FEW_TRIES, _MANY_ROWS = 12, 6, 50_000


@dataclass(frozen=True, slots=True)
class MatchedArm:
    """The arm's rows (m,) and the coefficients (m,) of their outcomes.

    `limit`: how often a row may be used. `unmatched`: units of other arms that found none left.
    """

    rows: NDArray[np.intp]
    coefficients: Floats
    limit: int
    unmatched: int


def matched_coefficients(
    inside: NDArray[np.bool_],
    score: Floats,
    features: Floats,
    settings: ArmsSettings,
    spreads: tuple[float, float],
    noise_variance: float,
) -> MatchedArm:
    """Return the coefficients of an arm's outcomes under the limit of least supposed error.

    `inside` (n,) marks the arm, `score` (n,) is its probability, `features` (n, p) have mean zero, `spreads` are
    those supposed of the mean outcome over the features and of outcomes around it,
    `noise_variance` is that of the noise at sensitivity one.
    """
    clipped = np.clip(score, _LEAST_SCORE, 1 - _LEAST_SCORE)
    logit = np.log(clipped / (1 - clipped))
    tried = [_match(inside, logit, settings, limit) for limit in _limits(inside, logit, settings)]
    goal = np.column_stack([features, logit - logit.mean()])
    spread = np.sqrt((goal**2).mean(axis=0))
    goal /= np.where(spread > 0, spread, 1.0)
    share = np.append(np.full(features.shape[1], (1 - _SCORE_SHARE) / features.shape[1]), _SCORE_SHARE)

    signal, residual = spreads

    def expected(found: MatchedArm) -> float:
        c = found.coefficients
        gap = c @ goal[found.rows]  # everybody's mean is zero
        bias = signal**2 * float(share @ gap**2)
        return bias + residual**2 * float(c @ c) + noise_variance * float(c.max()) ** 2

    return min(tried, key=expected)


def _match(inside: NDArray[np.bool_], logit: Floats, settings: ArmsSettings, limit: int) -> MatchedArm:
    found = matching_coefficients(inside, logit, settings.neighbours, capacity_treated=limit, estimand="ATC")
    rows = np.flatnonzero(inside)
    # The kernel's coefficients are K_i over the number of units that found a match.
    borrowed = found.coefficients[rows] * found.kept
    return MatchedArm(rows, (1.0 + borrowed) / (len(rows) + found.kept), limit, found.unmatched)


def _limits(inside: NDArray[np.bool_], logit: Floats, settings: ArmsSettings) -> list[int]:
    """Return the limits to compare: from the least that can serve everybody to the most that is ever used."""
    if settings.limit is not None:
        return [settings.limit]
    own = int(np.count_nonzero(inside))
    least = max(1, math.ceil(settings.neighbours * (len(inside) - own) / own))
    free = matching_coefficients(inside, logit, settings.neighbours, estimand="ATC")
    most = max(least, int(free.uses.max()))
    steps = np.geomspace(least, most, _TRIES if len(inside) <= _MANY_ROWS else _FEW_TRIES).round()
    return sorted({int(step) for step in steps})
