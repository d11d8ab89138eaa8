"""Weights that balance an arm against the people asked about, and what errors of weights and lines leave together.

Weights are lines in the covariates, alpha(z) = 1/p + (z - mean)' (C + ridge)^-1 (target - mean)/p, p being the arm's
share: the balancing form of an inverse propensity (Chernozhukov, Newey and Singh 2022; Hirshberg and Wager 2021).
Post-processing of released numbers throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.statistics.moments.arm_models import ArmMoments, Fit
from counterveil.statistics.moments.kernels.arm_scores import ArmScore

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/NOTES.md`.
_RIDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
# Least alignment of what weights and lines leave out: this many times what chance would give.
_ALIGNMENT = 3.0
# What the bound of the bias of shrinkage is multiplied by.
_BIAS = 1.5
_MOST_BIAS = 2.0


@dataclass(frozen=True, slots=True)
class Guard:
    """What intervals are guarded with, from public numbers.

    `inflation` multiplies the variance of the product of both errors; `shared` is the least part of the shared error
    that residuals leave.
    """

    inflation: float
    shared: float


@dataclass(frozen=True, slots=True)
class Weighted:
    """The score of every row, and what its models leave: a variance and a bound of a bias.

    `sampling` is the part of the effect's sampling variance that scores with ridged weights do not show.
    `shared` is the expected error of the effect from noise of the Grams that weights and lines share; `bends` is the
    part of the bias that bends along an index may leave, `hidden` what bends that noise hides could cause, which is in
    `product`, and `undetected` what a second interval allows for them in its place; `known` is the expected squared
    correlation of that index with the line that it stands for, `doubt` the product of what noise may hide of both
    curves along it, in standard deviations of residuals and in log odds.
    """

    score: ArmScore
    product: float
    bias: float
    shared: float
    sampling: float
    bends: float = 0.0
    hidden: float = 0.0
    undetected: float = 0.0
    known: float = 1.0
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class _Side:
    """One arm's slope of the weights, before it is divided by the arm's share, and what it leaves."""

    slope: Floats
    product: float
    bias: float
    shared: float
    sampling: float


def weighted(moments: ArmMoments, fit: Fit, estimand: Estimand, rows: int, guard: Guard) -> Weighted:
    """Return the score for an estimand, with the ridge of least expected error in each arm."""
    p = moments.shares
    target = {Estimand.ATE: moments.overall, Estimand.ATT: moments.means[1], Estimand.ATC: moments.means[0]}
    people = {Estimand.ATE: (1.0, 1.0), Estimand.ATT: (0.0, 1 / p[1]), Estimand.ATC: (1 / p[0], 0.0)}
    own = {Estimand.ATT: 1, Estimand.ATC: 0}.get(estimand)
    weights = np.zeros((2, len(moments.overall) + 1))
    product = bias = shared = sampling = 0.0
    for arm in (0, 1):
        weights[arm, 0] = 1 / p[arm]
        if arm == own:
            continue
        found = _side(moments, fit, arm, target[estimand], estimand, rows)
        weights[arm, 0] -= moments.means[arm] @ found.slope / p[arm]
        weights[arm, 1:] = found.slope / p[arm]
        product, bias = product + guard.inflation * found.product, bias + found.bias
        sampling += found.sampling
        shared += (1 - 2 * arm) * max(float(fit.first[arm]), guard.shared) * found.shared
    slopes, off = fit.slopes.values, target[estimand] - moments.means
    levels = fit.levels + (off * slopes).sum(axis=1)
    effect = float(levels[1] - levels[0])
    return Weighted(
        ArmScore(fit.lines(moments), weights, people[estimand], effect), product, bias, shared, sampling
    )


def _side(moments: ArmMoments, fit: Fit, arm: int, target: Floats, estimand: Estimand, rows: int) -> _Side:
    """Return the slope of one arm's weights, with what a ridge leaves of imbalance and noise."""
    p, d = moments.shares, len(target)
    noise = moments.mean_sd**2 * (
        (1 - 1 / p[arm]) ** 2 + 1 if estimand is Estimand.ATE else float((1 / p**2).sum())
    )
    values, vectors = np.linalg.eigh(moments.covariances[arm])
    gap = vectors.T @ (target - moments.means[arm])
    doubt = vectors.T @ fit.slopes.covariances[arm] @ vectors
    slopes = vectors.T @ fit.slopes.values[arm]
    error, size = float(np.trace(doubt)), float(slopes @ slopes)
    # Lines fitted to the same rows have the sampling error that weights without a ridge show.
    truly = np.maximum(gap**2 - noise, 0.0)
    best: tuple[float, _Side] | None = None
    for ridge in _RIDGES:
        kept = values / (values + ridge)
        left, turned = (1 - kept) * gap, gap / (values + ridge)
        chance = float(((1 - kept) ** 2 * truly).sum())
        product = max(float(left @ doubt @ left), _ALIGNMENT / d * chance * error)
        product += noise * float(kept**2 @ np.diag(doubt))
        product += float(moments.errors[arm]) * float(turned @ turned) * error
        sampling = fit.residual * float(values @ turned**2) / (p[arm] * rows)
        bias = _BIAS * abs(float(left @ slopes)) * min(error / max(size, 1e-9), _MOST_BIAS)
        expected = product + sampling + bias**2
        if best is None or expected < best[0]:
            aligned = _shared(moments, arm, values, float(turned @ slopes))
            missed = fit.residual * float(truly @ (1 / values - values / (values + ridge) ** 2))
            missed /= float(p[arm]) * rows
            best = expected, _Side(vectors @ turned, product, bias, aligned, missed)
    assert best is not None
    return best[1]


def _shared(moments: ArmMoments, arm: int, values: Floats, aligned: float) -> float:
    """Return the expected product of errors that the noise of the covariance gives to weights and lines alike.

    With an error E of the covariance C, weights leave E v of imbalance, v = C^-1 (target - mean), and lines that were
    made with C alone miss C^-1 E b of the slopes b; the mean of E C^-1 E is about its entries' variance times tr C^-1.
    Lines that were refined on residuals miss a part of it.
    """
    return float(moments.errors[arm] * (1 / values).sum()) * aligned
