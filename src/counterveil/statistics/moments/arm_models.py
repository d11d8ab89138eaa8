"""Lines of both arms made of released second moments: post-processing throughout.

Index 0 is the untreated, 1 the treated. Outcomes are in units of a released scale, covariates standardised.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from counterveil.numerics.arrays import Floats
from counterveil.numerics.posterior import averaged_posterior
from counterveil.numerics.shrinkage import low_rank, second_moments
from counterveil.statistics.moments.arm_releases import ArmResiduals, Scale
from counterveil.statistics.moments.kernels.arm_scores import ArmLines

# Numbers of this module that are choices, and not derived, were set on the tuning designs of
# `experiments/record_effect/NOTES.md`.
_SHARES = (0.03, 0.97)
# Eigenvalues of the covariance are raised to at most the first of these and at least the second.
_FLOOR, _LEAST_FLOOR = 0.1, 0.02
# An arm's variance in any direction, beside that of everyone.
_BESIDE = (0.3, 3.0)
# The estimated squared error of an entry of a covariance, beside an upper bound of it.
_ERROR = 0.8
# Least standard deviation of the outcome, in its units.
_LEAST_SD = 0.1
# Prior standard deviations of slopes, in units of 1.5 sd(y) / sqrt(features): of what both arms share, and of an arm's
# own part (all but the last).
_PRIORS = (1e-3, 0.08, 0.25, 0.8, 2.0)
_PRIOR_SD = 1.5
# Prior variance along the directions of confounding, as a part of the outcome's variance, and the ridge parameters that
# these directions are taken with.
_ALONG, _RIDGES = (0.0, 0.1), (0.3, 30.0)
# Clip of residuals in standard deviations.
RESIDUAL_REACH = 3.0


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """What the Grams say about both arms; noise is a variance of one entry.

    `shares` (2,), `means` (2, d), `covariances` (2, d, d), `errors` (2,) of their entries, `levels` (2,) of outcomes,
    with `level_noise` (2,), which is infinite where outcomes were clipped, so that residuals measure levels anew,
    `products` (2, d) of features and outcome around their means, with `noise` (2,). `overall` is the mean of z over
    everyone, `mean_sd` the noise of such a mean before it is divided by a share.
    """

    shares: Floats
    overall: Floats
    mean_sd: float
    means: Floats
    covariances: Floats
    errors: Floats
    levels: Floats
    level_noise: Floats
    products: Floats
    noise: Floats
    outcome_sd: float
    left: float  # variance of the outcome within arms
    directions: Floats  # of confounding


def arm_moments(grams: Floats, sd: float, scale: Scale, share: float, share_sd: float) -> ArmMoments:
    """Return the moments of both arms from their Grams (2, m + 1, m + 1) and a share treated released before."""
    a, b, m = sqrt(scale.constant), sqrt(scale.outcome), grams.shape[1] - 1
    d = m - 1
    shares = _shares(grams[:, 0, 0], sqrt(2) * sd / scale.constant, share, share_sd)
    pooled = grams[0] + grams[1]
    common, common_error = second_moments(pooled[1:m, 1:m], sqrt(2) * sd)
    own = grams / shares[:, None, None]
    means, levels = own[:, 0, 1:m], own[:, 0, m]
    mean_noise, outcome_noise = (sd / a / shares) ** 2, (sd / b / shares) ** 2
    covariances, errors = np.empty((2, d, d)), np.empty(2)
    overall = pooled[0, 1:m]
    floor = max(min(_FLOOR, 2.8 * sqrt(d) * sd), _LEAST_FLOOR)
    whole = _floored(common - np.outer(overall, overall), floor)
    for arm in (0, 1):
        gap, gap_error = low_rank(own[arm, 1:m, 1:m] - common, sd / shares[arm])
        within = common + gap - np.outer(means[arm], means[arm]) + mean_noise[arm] * np.eye(d)
        covariances[arm], errors[arm] = _beside(within, whole), common_error + gap_error
    products = own[:, 1:m, m] - means * levels[:, None]
    noise = outcome_noise + mean_noise * levels**2 + (means**2).sum(axis=1) * outcome_noise / a**2 / d
    second = float(pooled[m, m])
    spread = max(sqrt(max(second - float(shares @ levels) ** 2, 0.01)), _LEAST_SD)
    left = max(second - float(shares @ levels**2), 0.02 * spread**2)
    return ArmMoments(
        shares,
        overall,
        sd / a,
        means,
        covariances,
        _ERROR * errors,
        levels,
        outcome_noise / a**2 if scale.place.whole else np.full(2, np.inf),
        products,
        noise,
        spread,
        left,
        _directions(means, shares, covariances, spread),
    )


def _shares(corners: Floats, sd: float, share: float, share_sd: float) -> Floats:
    """Return both arms' shares: those of the Grams and the one released before, by their noise."""
    seen, variance = (float(corners[1]) + 1 - float(corners[0])) / 2, sd**2 / 2
    treated = (seen / variance + share / share_sd**2) / (1 / variance + 1 / share_sd**2)
    treated = float(np.clip(treated, *_SHARES))
    return np.array([1 - treated, treated])


def _floored(matrix: Floats, floor: float) -> Floats:
    """Return a symmetric matrix with eigenvalues below the floor raised to it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def _beside(matrix: Floats, whole: Floats) -> Floats:
    """Return an arm's covariance, in no direction much smaller or larger than that of everyone.

    With propensities that keep away from 0 and 1 an arm's spread cannot be; what is beyond is noise.
    """
    root = np.linalg.cholesky(whole)
    turned = solve_triangular(root, solve_triangular(root, matrix, lower=True).T, lower=True)
    values, vectors = np.linalg.eigh((turned + turned.T) / 2)
    found = root @ ((vectors * np.clip(values, *_BESIDE)) @ vectors.T) @ root.T
    return np.asarray((found + found.T) / 2)


def _directions(means: Floats, shares: Floats, covariances: Floats, spread: float) -> Floats:
    """Return slopes along which an outcome would be most confounded, of the outcome's spread."""
    pooled = shares[0] * covariances[0] + shares[1] * covariances[1]
    values, vectors = np.linalg.eigh(pooled)
    along = vectors.T @ (means[1] - means[0])
    found = np.array([vectors @ (along / (values + ridge)) for ridge in _RIDGES])
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", found, pooled, found))
    return np.asarray(found * spread / np.maximum(lengths, 1e-12)[:, None])


@dataclass(frozen=True, slots=True)
class ArmSlopes:
    """Slopes of both arms, (2, d), and their posterior covariances, (2, d, d)."""

    values: Floats
    covariances: Floats

    @property
    def errors(self) -> Floats:
        """Expected squared lengths of the slopes' errors, (2,)."""
        return np.asarray(np.einsum("aii->a", self.covariances))

    @property
    def squares(self) -> Floats:
        """Expected squared lengths of the slopes, (2,)."""
        return np.asarray((self.values**2).sum(axis=1) + self.errors)


def fitted_slopes(moments: ArmMoments, products: Floats, noise: Floats) -> ArmSlopes:
    """Return the posterior of both arms' slopes b from products C b + noise, by empirical Bayes.

    Slopes are a part that both arms share and a part of their own, each normal around zero, with variances of a grid.
    """
    d = products.shape[1]
    grid = _PRIOR_SD * moments.outcome_sd / sqrt(d) * np.array(_PRIORS)
    design = np.zeros((2 * d, 2 * d))
    design[:d, :d], design[d:, d:] = moments.covariances
    seen, variances = products.ravel(), np.repeat(noise, d)
    along = moments.directions.T @ moments.directions
    priors = [_prior(common, own, part * along) for part in _ALONG for common in grid for own in grid[:-1]]
    centre, spread = averaged_posterior(design, seen, variances, priors)
    return ArmSlopes(centre.reshape(2, d), np.stack([spread[:d, :d], spread[d:, d:]]))


def _prior(common: float, own: float, along: Floats) -> Floats:
    """Return the prior covariance of the slopes of both arms together."""
    shared = common**2 * np.eye(len(along)) + (1 - min(0.5, (own / (common + own)) ** 2)) * along
    whole = (common**2 + own**2) * np.eye(len(along)) + along
    return np.block([[whole, shared], [shared, whole]])


@dataclass(frozen=True, slots=True)
class Fit:
    """Lines of both arms and what is known about them.

    `products` (2, d) and their `noise` (2,) are all that was released about slopes so far; `residual` is an upper
    estimate of the residual variance, `square` and `square_sd` the last released one. `level_noise` is that of
    `levels`.
    """

    levels: Floats
    slopes: ArmSlopes
    products: Floats
    noise: Floats
    residual: float
    level_noise: Floats
    square: float = 0.0
    square_sd: float = 0.0
    step: float = 0.0  # explained by the last correction
    first: Floats = field(default_factory=lambda: np.ones(2))  # part of `products` that comes from the Grams

    def lines(self, moments: ArmMoments) -> ArmLines:
        """Return the lines on (1, z)."""
        constants = self.levels - (moments.means * self.slopes.values).sum(axis=1)
        return ArmLines(np.column_stack([constants, self.slopes.values]))


def first_fit(moments: ArmMoments, square_sd: float) -> Fit:
    """Return the lines from the Grams alone; `square_sd` is the noise of the outcome's mean square."""
    noise = moments.noise + 0.1 * moments.errors * moments.outcome_sd**2
    slopes = fitted_slopes(moments, moments.products, noise)
    noise = moments.noise + moments.errors * slopes.squares
    slopes = fitted_slopes(moments, moments.products, noise)
    explained = explained_by(moments, slopes.values)
    left = max(moments.left - explained, 0.02 * moments.outcome_sd**2)
    left += float(moments.shares @ slopes.errors) + square_sd
    left = min(left, 1.5 * moments.outcome_sd**2)
    return Fit(moments.levels, slopes, moments.products, noise, left, moments.level_noise)


def explained_by(moments: ArmMoments, slopes: Floats) -> float:
    """Return the variance that slopes (2, d) explain within the arms."""
    own = np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes)
    return float(moments.shares @ own)


def refined(moments: ArmMoments, fit: Fit, residuals: ArmResiduals) -> Fit:
    """Return the lines moved by what the residuals still hold, both sources weighted by their noise."""
    seen = residuals.products / moments.shares[:, None]
    level_noise = (residuals.sd / moments.shares) ** 2
    part = 1 / (1 + level_noise / fit.level_noise)
    levels = fit.levels + part * seen[:, 0]
    bent = np.einsum("aij,aj->ai", moments.covariances, fit.slopes.values)
    products = seen[:, 1:] - moments.means * seen[:, :1] + bent
    noise = (residuals.sd / moments.shares) ** 2 + moments.errors * fit.slopes.errors
    together = 1 / (1 / fit.noise + 1 / noise)
    products = together[:, None] * (fit.products / fit.noise[:, None] + products / noise[:, None])
    slopes = fitted_slopes(moments, products, together)
    found = replace(
        fit,
        levels=levels,
        slopes=slopes,
        products=products,
        noise=together,
        level_noise=part * level_noise + np.where(np.isinf(fit.level_noise), np.inf, 0.0),
        square=max(residuals.square, 1e-6),
        square_sd=residuals.square_sd,
        step=explained_by(moments, slopes.values - fit.slopes.values),
        first=fit.first * together / fit.noise,
    )
    return replace(found, residual=min(_left(moments, found), fit.residual))


def _left(moments: ArmMoments, fit: Fit) -> float:
    """Return an upper estimate of the residual variance: a quarter of the measured one at least, plus doubt."""
    left = max(fit.square - max(fit.step, 0.0), fit.square / 4)
    return left + float(moments.shares @ fit.slopes.errors) + fit.square_sd / 2


def residual_clip(fit: Fit) -> float:
    """Return where residuals are clipped when their moments are released."""
    return RESIDUAL_REACH * sqrt(fit.residual)
