"""Regression weights from noisy normal equations, with the spread of each group of weights learned from them.

Observed is y = A theta + e, e normal with covariance `noise` * I + `residual` * gram. Weights are normal around
zero, with variances `base` times a scale a group. Scales are found by expectation and maximisation, each drawn
towards the scale of its block of groups. Nothing here sees rows: all of it is post-processing of released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# Steps of the scales, and the relative change at which they stop.
_ITERATIONS, _SETTLED = 60, 0.01
# Scale of a group before anything is seen, in units of half the outcome's range, and what it weighs.
_FIRST_SCALE, _FIRST_WEIGHT, _POOL_WEIGHT = 0.03, 1.0, 1.0
# No function is expected to vary by more than half the outcome's range.
_LARGEST_SCALE, _LEAST_SCALE = 1.0, 1e-4
# Fall of the log-likelihood at an upper limit of 95 per cent, and the ratio of the scales that are tried. Of many
# groups not all are at their limits at once: the fall is divided by the root of their number.
_FALL, _RATIO = 1.353, 1.6


@dataclass(frozen=True, slots=True)
class Prior:
    """Variances of the weights up to a scale a group; group -1 is not scaled. `blocks` names each group's block."""

    base: Floats
    groups: Places
    blocks: Places

    def variances(self, scales: Floats) -> Floats:
        """Return the prior variance of every weight."""
        padded = np.append(scales, 1.0)
        return np.asarray(self.base * padded[self.groups])


@dataclass(frozen=True, slots=True)
class Normal:
    """What the normal equations say: information (q, q) and its product with the weights (q,)."""

    information: Floats
    score: Floats

    @classmethod
    def of(cls, design: Floats, y: Floats, covariance: Floats) -> Normal:
        """Return the information of y = design theta + e about theta, e having this covariance."""
        factor = cho_factor(covariance, lower=True)
        solved = cho_solve(factor, design)
        information = design.T @ solved
        return cls((information + information.T) / 2, solved.T @ y)

    def posterior(self, variances: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance of the weights under these prior variances."""
        root = np.sqrt(variances)
        inner = np.eye(len(root)) + self.information * np.outer(root, root)
        covariance = root[:, None] * np.linalg.inv(inner) * root
        return covariance @ self.score, covariance

    def likelihood(self, variances: Floats) -> float:
        """Return the logarithm of the likelihood of these prior variances, but for a constant."""
        root = np.sqrt(variances)
        factor = np.linalg.cholesky(np.eye(len(root)) + self.information * np.outer(root, root))
        z = np.linalg.solve(factor, root * self.score)
        return float(z @ z) / 2 - float(np.log(np.diag(factor)).sum())


@dataclass(frozen=True, slots=True)
class Shrunken:
    """Weights drawn towards zero as far as their noise goes, and their parts of covariance.

    `posterior` is the Bayesian covariance; `total` that of the error when the true weights may be as large as
    upper limits of their scales; `response` maps the weights' truth to the mean estimate.
    """

    weights: Floats
    posterior: Floats
    response: Floats
    scales: Floats


def shrink(normal: Normal, prior: Prior) -> Shrunken:
    """Return the weights with every group's scale estimated."""
    count = len(prior.blocks)
    scales = np.full(count, _FIRST_SCALE)
    sizes = np.bincount(prior.groups[prior.groups >= 0], minlength=count).astype(np.float64)
    own = prior.groups >= 0
    for _ in range(_ITERATIONS if count else 0):
        mean, covariance = normal.posterior(prior.variances(scales))
        squares = (mean**2 + np.diag(covariance)) / prior.base
        sums = np.bincount(prior.groups[own], squares[own], minlength=count)
        before = scales.copy()
        for block in np.unique(prior.blocks):
            mine = prior.blocks == block
            pool = (sums[mine].sum() + _FIRST_WEIGHT * _FIRST_SCALE) / (sizes[mine].sum() + _FIRST_WEIGHT)
            scales[mine] = (sums[mine] + _POOL_WEIGHT * pool) / (sizes[mine] + _POOL_WEIGHT)
        if float(np.abs(np.log(scales / before)).max()) < _SETTLED:
            break
    variances = prior.variances(scales)
    weights, posterior = normal.posterior(variances)
    return Shrunken(weights, posterior, posterior @ normal.information, scales)


def upper_variances(normal: Normal, prior: Prior, scales: Floats, block: int) -> Floats:
    """Return prior variances with every scale of a block raised to its upper limit, one group at a time."""
    best = normal.likelihood(prior.variances(scales))
    found = np.maximum(scales, _LEAST_SCALE)
    mine = np.flatnonzero(prior.blocks == block)
    fall = _FALL / np.sqrt(max(len(mine), 1))
    for group in mine:
        tried = scales.copy()
        limit = max(float(scales[group]), _LEAST_SCALE)
        while limit < _LARGEST_SCALE:
            tried[group] = limit * _RATIO
            if normal.likelihood(prior.variances(tried)) < best - fall:
                break
            limit *= _RATIO
        found[group] = max(float(scales[group]), min(limit, _LARGEST_SCALE))
    return prior.variances(found)
