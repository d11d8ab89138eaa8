"""Matching towards one arm: everybody outside it borrows outcomes of its nearest units on the arm's score.

With arm k of n_k rows, n rows in all, and P(j) the N units of the arm nearest to unit j, the mean of the arm
over everybody is

    (1/n) (sum over the arm of y_i + sum over the others of the mean of y over P(j)) = sum of c_i y_i,
    c_i = (1 + K_i) / n,    K_i = sum over j with i in P(j) of 1 / |P(j)|,

a weighted sum of the arm's own outcomes, in units of the outcome, with public coefficients. One outcome in a
range of width B moves it by at most B max c_i, to which its noise is scaled. Proofs:
`rows/linear/arm_mean.proof.md` and `rows/linear/linear_estimate.proof.md`. So how often a unit may serve is
chosen for the least supposed squared error, in parts of B^2,

    sd^2 (0.7 mean over features of gap^2 + 0.3 gap_score^2) + sd^2 sum c_i^2 + noise max c_i^2,

squared bias, sampling variance and noise: gaps are weighted means less everybody's, in standard deviations,
sd is that supposed of the mean outcome and of outcomes around it in parts of B, and noise the variance of the
noise at sensitivity one. In: public covariates and arms. Out: coefficients. The constants steer that choice;
privacy does not depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.matching import SortedArms
from counterveil.privacy import Estimand

# How much of the assumed variance of the mean outcome follows the score.
_SCORE_SHARE = 0.3
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-6
# How many limits are compared: fewer from so many rows on, where each takes long.
_TRIES = 12
_FEW_TRIES = 6
_MANY_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class MatchedArm:
    """The arm's rows (m,) and the coefficients (m,) of their outcomes.

    `limit`: how often a row may be used, often enough that everybody outside the arm is served.
    """

    rows: NDArray[np.intp]
    coefficients: Floats
    limit: int


def matched_coefficients(
    inside: NDArray[np.bool_],
    score: Floats,
    features: Floats,
    neighbours: int,
    sd: float,
    noise_variance: float,
) -> MatchedArm:
    """Return the coefficients of an arm's outcomes under the limit of least supposed error.

    `inside` (n,) marks the arm, `score` (n,) is its probability, `features` (n, p) have mean zero, `sd` is
    that supposed of the mean outcome over the features and of outcomes around it,
    `noise_variance` is that of the noise at sensitivity one.
    """
    clipped = np.clip(score, _LEAST_SCORE, 1 - _LEAST_SCORE)
    logit = np.log(clipped / (1 - clipped))
    arms = SortedArms(inside, logit)
    tried = [_match(arms, neighbours, limit) for limit in _limits(arms, neighbours)]
    del arms
    logit -= logit.mean()
    spread = np.sqrt([float((column**2).mean()) for column in (*features.T, logit)])
    spread[spread == 0] = 1.0
    share = np.append(np.full(features.shape[1], (1 - _SCORE_SHARE) / features.shape[1]), _SCORE_SHARE)

    def expected(matching: MatchedArm) -> float:
        c = matching.coefficients
        gap = (
            np.append(c @ features[matching.rows], c @ logit[matching.rows]) / spread
        )  # everybody's mean is zero
        bias = sd**2 * float(share @ gap**2)
        return bias + sd**2 * float(c @ c) + noise_variance * float(c.max()) ** 2

    return min(tried, key=expected)


def _match(arms: SortedArms, neighbours: int, limit: int) -> MatchedArm:
    matching = arms.match(neighbours, capacity_treated=limit, estimand=Estimand.ATC.value)
    rows = np.flatnonzero(arms.treated)
    # The kernel's coefficients are K_i over the number of units that found a match.
    borrowed = matching.coefficients[rows] * matching.kept
    return MatchedArm(rows, (1.0 + borrowed) / (len(rows) + matching.kept), limit)


def _limits(arms: SortedArms, neighbours: int) -> list[int]:
    """Return the limits to compare: from the least that can serve everybody to the most that is ever used."""
    counts = arms.arms[True].count
    others = arms.arms[False].count
    least = max(1, math.ceil(neighbours * others / counts))
    most = max(least, arms.most_uses(neighbours, Estimand.ATC.value))
    steps = np.geomspace(least, most, _TRIES if counts + others <= _MANY_ROWS else _FEW_TRIES).round()
    return sorted({int(step) for step in steps})
