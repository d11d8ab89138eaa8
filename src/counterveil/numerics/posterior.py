"""Normal priors averaged by how well they explain what was seen (Robbins 1956; Efron and Morris 1973)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
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
