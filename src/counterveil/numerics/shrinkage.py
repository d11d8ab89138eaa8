"""Regression weights from noisy normal equations, with the variance of each group of weights estimated from them.

Observed is y = A theta + e, with e normal of known covariance. The prior of the weights theta is normal around zero.
Its variance is estimated by group, and pooled within blocks of groups (`shrink`, empirical Bayes as of Robbins 1956 and
of Efron and Morris 1973); averaged over several priors by their marginal likelihoods (`averaged_posterior`); or a
mixture of a spike at zero and slabs, for groups of which most may be zero (`spike_and_slab`). Nothing here sees rows:
all of it is post-processing of released numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from counterveil.numerics.arrays import Floats

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
# Priors with less than this part of all marginal likelihood are left out of averages.
_LEAST_POSTERIOR = 1e-3
# A part of the sum of a matrix's eigenvalues that is larger than what rounding takes off the least.
_ROUNDED = 1e-10
_ROUNDS, _POSTERIOR_SETTLED = 80, 1e-5
# Groups that are expected not to be zero, before anything is seen, and the least number that their share counts for.
_EXPECTED, _LEAST_GROUPS = 3.0, 4
# Visits before the share of groups that are not zero is learned.
_FIRST_ROUNDS = 4


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
class RidgePosterior:
    """Posterior means of ridge weights and the parts of their covariance.

    `posterior` is the Bayesian covariance; `total` that of the error when the true weights may be as large as
    upper limits of their scales; `response` maps the weights' truth to the mean estimate.
    """

    weights: Floats
    posterior: Floats
    response: Floats
    scales: Floats


def shrink(normal: Normal, prior: Prior) -> RidgePosterior:
    """Return the weights with every group's scale estimated."""
    count = len(prior.blocks)
    scales = np.full(count, _FIRST_SCALE)
    scaled = prior.groups >= 0
    sizes = np.bincount(prior.groups[scaled], minlength=count).astype(np.float64)
    for _ in range(_ITERATIONS if count else 0):
        mean, covariance = normal.posterior(prior.variances(scales))
        squares = (mean**2 + np.diag(covariance)) / prior.base
        sums = np.bincount(prior.groups[scaled], squares[scaled], minlength=count)
        before = scales.copy()
        for block in np.unique(prior.blocks):
            in_block = prior.blocks == block
            pool = (sums[in_block].sum() + _FIRST_WEIGHT * _FIRST_SCALE) / (
                sizes[in_block].sum() + _FIRST_WEIGHT
            )
            scales[in_block] = (sums[in_block] + _POOL_WEIGHT * pool) / (sizes[in_block] + _POOL_WEIGHT)
        if float(np.abs(np.log(scales / before)).max()) < _SETTLED:
            break
    variances = prior.variances(scales)
    weights, posterior = normal.posterior(variances)
    return RidgePosterior(weights, posterior, posterior @ normal.information, scales)


def upper_variances(normal: Normal, prior: Prior, scales: Floats, block: int) -> Floats:
    """Return prior variances with every scale of a block raised to its upper limit, one group at a time."""
    best = normal.likelihood(prior.variances(scales))
    upper_scales = np.maximum(scales, _LEAST_SCALE)
    in_block = np.flatnonzero(prior.blocks == block)
    fall = _FALL / np.sqrt(max(len(in_block), 1))
    for group in in_block:
        tried = scales.copy()
        limit = max(float(scales[group]), _LEAST_SCALE)
        while limit < _LARGEST_SCALE:
            tried[group] = limit * _RATIO
            if normal.likelihood(prior.variances(tried)) < best - fall:
                break
            limit *= _RATIO
        upper_scales[group] = max(float(scales[group]), min(limit, _LARGEST_SCALE))
    return prior.variances(upper_scales)


def averaged_posterior(
    design: Floats, seen: Floats, noise: Floats, priors: Iterable[Floats]
) -> tuple[Floats, Floats]:
    """Return posterior mean and covariance of b from seen = design b + normal errors of variances `noise`.

    Each prior is a covariance of b around zero; they are averaged by their marginal likelihoods.
    """
    fits = [(*_posterior(design, seen, noise, prior), prior) for prior in priors]
    weights = np.array([fit[0] for fit in fits])
    weights = np.exp(weights - weights.max())
    weights[weights < _LEAST_POSTERIOR * weights.sum()] = 0.0
    weights /= weights.sum()
    size = design.shape[1]
    centre = sum((w * fit[1] for w, fit in zip(weights, fits, strict=True)), np.zeros(size))
    spread = np.zeros((size, size))
    for weight, (_, value, solved, prior) in zip(weights, fits, strict=True):
        if weight > 0:
            spread += weight * (np.outer(value - centre, value - centre) + prior - solved.T @ solved)
    return centre, spread


def _posterior(design: Floats, seen: Floats, noise: Floats, prior: Floats) -> tuple[float, Floats, Floats]:
    """Return the log marginal likelihood, the posterior mean, and H with posterior covariance prior - H'H."""
    spread = design @ prior
    seen_spread = spread @ design.T + np.diag(noise)
    try:
        root = np.linalg.cholesky(seen_spread)
    except np.linalg.LinAlgError:
        # Rounding hides the noise beside the signal: raise the diagonal by more than rounding takes off.
        root = np.linalg.cholesky(seen_spread + _ROUNDED * np.trace(seen_spread) * np.eye(len(noise)))
    solved = solve_triangular(root, np.column_stack([seen, spread]), lower=True)
    z = solved[:, 0]
    h = solved[:, 1:]
    return -0.5 * float(z @ z) - float(np.log(np.diag(root)).sum()), h.T @ z, h


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Posterior means of the weights, their expected prior variances, and the probability that each is not zero."""

    weights: Floats
    variances: Floats
    included: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """One group: its places, and for every scale the covariance given the others and the evidence's constant."""

    places: NDArray[np.intp]
    covariances: tuple[Floats, ...]
    constants: Floats


def spike_and_slab(
    information: Floats, score: Floats, groups: NDArray[np.intp], base: Floats, scales: tuple[float, ...]
) -> Sparse:
    """Return the weights; those of group 0 are free, all others belong to a group that may be zero."""
    free = np.flatnonzero(groups == 0)
    slabs = [
        _group(information, np.flatnonzero(groups == g), base, scales) for g in np.unique(groups[groups != 0])
    ]
    weights = np.zeros(len(score))
    variances = np.zeros(len(score))
    included = np.zeros(len(score))
    share = min(0.5, _EXPECTED / max(len(slabs), 1))
    for visit in range(_ROUNDS):
        before = weights.copy()
        rest = weights.copy()
        rest[free] = 0.0
        weights[free] = np.linalg.lstsq(
            information[np.ix_(free, free)], (score - information @ rest)[free], rcond=None
        )[0]
        for group in slabs:
            j = group.places
            residual = score[j] - information[j] @ weights + information[np.ix_(j, j)] @ weights[j]
            means = [covariance @ residual for covariance in group.covariances]
            likely = _shares(np.array([mean @ residual / 2 for mean in means]) + group.constants, share)
            weights[j] = sum((p * mean for p, mean in zip(likely, means, strict=True)), np.zeros(len(j)))
            variances[j] = float(likely @ np.array(scales)) * base[j]
            included[j] = likely.sum()
        if visit >= _FIRST_ROUNDS:
            expected = sum(float(included[group.places[0]]) for group in slabs)
            share = (1 + expected) / (2 + max(len(slabs), _LEAST_GROUPS))
        if float(np.abs(weights - before).max()) < _POSTERIOR_SETTLED * (1 + float(np.abs(weights).max())):
            break
    return Sparse(weights, variances, included)


def _group(information: Floats, places: NDArray[np.intp], base: Floats, scales: tuple[float, ...]) -> _Group:
    inner = information[np.ix_(places, places)]
    covariances = []
    constants = []
    for scale in scales:
        prior = scale * base[places]
        root = np.sqrt(prior)
        scaled = np.eye(len(places)) + inner * np.outer(root, root)
        covariances.append(root[:, None] * np.linalg.inv(scaled) * root)
        constants.append(-np.linalg.slogdet(scaled)[1] / 2)
    return _Group(places, tuple(covariances), np.array(constants))


def _shares(evidence: Floats, share: float) -> Floats:
    """Return the posterior probability of each scale; one minus their sum is that of the spike at zero."""
    top = max(float(evidence.max()), 0.0)
    likelihoods = np.exp(evidence - top) * share / len(evidence)
    return np.asarray(likelihoods / (likelihoods.sum() + (1 - share) * exp(-top)))
