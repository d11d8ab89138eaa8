"""Normal priors averaged by how well they explain what was seen (Robbins 1956; Efron and Morris 1973), and mixtures of
a spike and slabs for groups of weights of which most may be zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from counterveil.numerics.arrays import Floats

_LEAST_POSTERIOR = 1e-3


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
    root = np.linalg.cholesky(spread @ design.T + np.diag(noise))
    solved = solve_triangular(root, np.column_stack([seen, spread]), lower=True)
    own, h = solved[:, 0], solved[:, 1:]
    return -0.5 * float(own @ own) - float(np.log(np.diag(root)).sum()), h.T @ own, h


_ROUNDS, _SETTLED = 80, 1e-5
# Groups that are expected not to be zero, before anything is seen, and the least number that their share counts for.
_EXPECTED, _LEAST_GROUPS = 3.0, 4
# Visits before the share of groups that are not zero is learned.
_FIRST_ROUNDS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Means of the weights, the expected variance of each before it was seen, and how likely each is not zero."""

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
    parts = [
        _group(information, np.flatnonzero(groups == g), base, scales) for g in np.unique(groups[groups != 0])
    ]
    weights, variances = np.zeros(len(score)), np.zeros(len(score))
    included = np.zeros(len(score))
    share = min(0.5, _EXPECTED / max(len(parts), 1))
    for visit in range(_ROUNDS):
        before = weights.copy()
        rest = weights.copy()
        rest[free] = 0.0
        weights[free] = np.linalg.lstsq(
            information[np.ix_(free, free)], (score - information @ rest)[free], rcond=None
        )[0]
        for part in parts:
            own = part.places
            left = score[own] - information[own] @ weights + information[np.ix_(own, own)] @ weights[own]
            means = [covariance @ left for covariance in part.covariances]
            likely = _shares(np.array([mean @ left / 2 for mean in means]) + part.constants, share)
            weights[own] = sum((p * mean for p, mean in zip(likely, means, strict=True)), np.zeros(len(own)))
            variances[own] = float(likely @ np.array(scales)) * base[own]
            included[own] = likely.sum()
        if visit >= _FIRST_ROUNDS:
            found = sum(float(included[part.places[0]]) for part in parts)
            share = (1 + found) / (2 + max(len(parts), _LEAST_GROUPS))
        if float(np.abs(weights - before).max()) < _SETTLED * (1 + float(np.abs(weights).max())):
            break
    return Sparse(weights, variances, included)


def _group(information: Floats, places: NDArray[np.intp], base: Floats, scales: tuple[float, ...]) -> _Group:
    inner, covariances, constants = information[np.ix_(places, places)], [], []
    for scale in scales:
        prior = scale * base[places]
        root = np.sqrt(prior)
        scaled = np.eye(len(places)) + inner * np.outer(root, root)
        covariances.append(root[:, None] * np.linalg.inv(scaled) * root)
        constants.append(-np.linalg.slogdet(scaled)[1] / 2)
    return _Group(places, tuple(covariances), np.array(constants))


def _shares(evidence: Floats, share: float) -> Floats:
    """Return how likely each scale is; what is missing from one is the spike's."""
    top = max(float(evidence.max()), 0.0)
    found = np.exp(evidence - top) * share / len(evidence)
    return np.asarray(found / (found.sum() + (1 - share) * exp(-top)))
