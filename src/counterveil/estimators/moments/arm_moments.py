"""Shares, means, covariances and cross moments of every arm, read off its noisy Gram matrix.

For arm a of k, with p_a its share of all n rows and w = (1, z, v), its Gram is the sum of w w' over its rows
divided by n. So p_a is the corner of the matrix, and with everything else divided by p_a

    m_a = E_a[z],    C_a = E_a[z z'] - m_a m_a',    l_a = E_a[v],    c_a = E_a[z v] - m_a l_a.

Covariances of arms are what all have in common plus a difference of low rank, which takes noise out of both.
Everything is post-processing of released numbers; z is standardised, v in units of the released scale.

The constants were set on the tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not
depend on them.

Here z are covariates and v is the outcome of a row, E_a the mean over arm a, u u' an outer product. The
released scale of v is (outcome - centre) / unit, centre and unit being released numbers. Privacy of the noisy
Gram matrices that are read: `rows/moments/arm_grams.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from counterveil.estimators.moments.row_scale import RowScale
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import low_rank, second_moments

# An arm's share is taken for no less than this part of an equal one.
_LEAST_SHARE = 0.06
# Eigenvalues of the covariance are raised to this many times sqrt(d) and the noise of an entry,
_FLOOR_NOISE = 2.8
# but to no more than this,
_MOST_FLOOR = 0.1
# and to no less than this.
_LEAST_FLOOR = 0.02
# An arm's variance in any direction, in variances of everyone: at least and at most.
_BESIDE = (0.3, 3.0)
# Where noise is small it may be less, down to this many times the noise and to `_LEAST_BESIDE`.
_NOISE_BESIDE = 7.0
_LEAST_BESIDE = 0.02
# The estimated squared error of an entry of a covariance, beside an upper bound of it.
_ERROR = 0.8
# Least standard deviation of the outcome, in its units.
_LEAST_SD = 0.1
# Least part of its variance that lies within arms.
_LEAST_WITHIN = 0.02
# Ridge parameters of the directions of confounding, in variances of a feature.
_RIDGES = (0.3, 30.0)
# Parts of the largest variance of a direction below which another one is lost to rounding.
_ROUNDED = 1e-10


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """What the Grams say about k arms with d features.

    Attributes
    ----------
    shares, share_error : ndarray of shape (k,), float
        p_a, and the variance of the noise of each.
    overall, mean_sd : ndarray of shape (d,), float
        Mean of z over everyone, and the noise of an arm's part of an entry.
    means : ndarray of shape (k, d)
        m_a.
    covariances, errors : ndarray of shape (k, d, d), (k,)
        C_a, and the variance of the noise that is left in an entry.
    levels, level_error : ndarray of shape (k,)
        l_a, and the expected square of what it is off.
    products, noise : ndarray of shape (k, d), (k,)
        c_a, and the variance of the noise of an entry.
    outcome_sd : float
        Standard deviation of the outcome.
    within_variance : float
        Variance of the outcome within arms.
    directions : ndarray of shape (2 (k - 1), d)
        Slopes along which an outcome would be most confounded.
    """

    shares: Floats
    share_error: float
    overall: Floats
    mean_sd: float
    means: Floats
    covariances: Floats
    errors: Floats
    levels: Floats
    level_error: Floats
    products: Floats
    noise: Floats
    outcome_sd: float
    within_variance: float
    directions: Floats


def arm_moments(grams: Floats, sd: float, scale: RowScale, share: float, share_sd: float) -> ArmMoments:
    """Return the moments of all arms.

    Parameters
    ----------
    grams : ndarray of shape (k, d + 2, d + 2)
        Released, of (1, z, v).
    sd : float
        Noise of an entry between features.
    scale : RowScale
        Squared lengths of the constant and of the outcome: roots of them divide the noise of their entries.
    share, share_sd : float
        Share treated that was released before, and its noise; used where there are two arms.
    """
    root_a = sqrt(scale.constant)
    root_b = sqrt(scale.outcome)
    arms = len(grams)
    last = grams.shape[1] - 1
    d = last - 1
    shares, share_error = _shares(grams[:, 0, 0], sqrt(2) * sd / scale.constant, share, share_sd)
    pooled = grams.sum(axis=0)
    overall = pooled[0, 1:last]
    common, common_error = second_moments(pooled[1:last, 1:last], sqrt(arms) * sd)
    by_arm = grams / shares[:, None, None]
    means = by_arm[:, 0, 1:last]
    levels = by_arm[:, 0, last]
    mean_noise = (sd / root_a / shares) ** 2
    outcome_noise = (sd / root_b / shares) ** 2
    everyone = _covariance_of_everyone(common - np.outer(overall, overall), sd)
    covariances = np.empty((arms, d, d))
    errors = np.empty(arms)
    for arm in range(arms):
        difference, difference_error = low_rank(by_arm[arm, 1:last, 1:last] - common, sd / shares[arm])
        # The product of noisy means holds the variance of their noise.
        within = common + difference - np.outer(means[arm], means[arm]) + mean_noise[arm] * np.eye(d)
        covariances[arm] = _limited_beside(within, everyone, sd / shares[arm])
        errors[arm] = common_error + difference_error
    mean_square = float(pooled[last, last])
    outcome_sd = max(sqrt(max(mean_square - float(shares @ levels) ** 2, 0.01)), _LEAST_SD)
    return ArmMoments(
        shares=shares,
        share_error=share_error,
        overall=overall,
        mean_sd=sd / root_a,
        means=means,
        covariances=covariances,
        errors=_ERROR * errors,
        levels=levels,
        level_error=outcome_noise / root_a**2 + share_error * (levels / shares) ** 2,
        products=by_arm[:, 1:last, last] - means * levels[:, None],
        noise=outcome_noise + mean_noise * levels**2 + (means**2).sum(axis=1) * outcome_noise / root_a**2 / d,
        outcome_sd=outcome_sd,
        within_variance=max(mean_square - float(shares @ levels**2), _LEAST_WITHIN * outcome_sd**2),
        directions=confounded_directions(means, shares, covariances, outcome_sd),
    )


def _shares(corners: Floats, sd: float, share: float, share_sd: float) -> tuple[Floats, float]:
    """Return the arms' shares and the variance of each.

    Shares of the Grams are moved alike so that they add up to one. Of two arms they are averaged with the
    share treated that was released before, both by their precision.
    """
    arms = len(corners)
    shares = corners + (1 - corners.sum()) / arms
    variance = sd**2 * (1 - 1 / arms)
    if arms == 2:
        precision = 1 / variance + 1 / share_sd**2
        shares = (shares / variance + np.array([1 - share, share]) / share_sd**2) / precision
        variance = 1 / precision
    shares = np.maximum(shares, _LEAST_SHARE / arms)
    return shares / shares.sum(), variance


def _covariance_of_everyone(matrix: Floats, sd: float) -> Floats:
    """Return the covariance of everyone's features with small eigenvalues raised."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    floor = max(min(_MOST_FLOOR, _FLOOR_NOISE * sqrt(len(matrix)) * sd), _LEAST_FLOOR)
    # Whatever was released, none so small beside the largest that rounding makes it negative.
    raised = np.maximum(values, max(floor, _ROUNDED * float(values[-1])))
    return np.asarray(vectors * raised @ vectors.T)


def _limited_beside(matrix: Floats, everyone: Floats, noise: float) -> Floats:
    """Return an arm's covariance, in no direction much smaller or larger than that of everyone.

    With propensities that keep away from 0 and 1 an arm's spread cannot be; what is beyond is taken for
    noise, unless the `noise` of an entry is too small for that.
    """
    root = np.linalg.cholesky(everyone)
    turned = solve_triangular(root, solve_triangular(root, matrix, lower=True).T, lower=True)
    values, vectors = np.linalg.eigh((turned + turned.T) / 2)
    along = (solve_triangular(root.T, vectors) ** 2).sum(axis=0)
    least = np.clip(_NOISE_BESIDE * noise * along, _LEAST_BESIDE, _BESIDE[0])
    limited = root @ ((vectors * np.clip(values, least, _BESIDE[1])) @ vectors.T) @ root.T
    return np.asarray((limited + limited.T) / 2)


def confounded_directions(means: Floats, shares: Floats, covariances: Floats, outcome_sd: float) -> Floats:
    """Return slopes along which an outcome would be most confounded, each explaining the outcome's variance.

    They are ridge regressions of an arm on features, (C + r)^-1 (m_a - m_0) for two ridges r and every arm
    but the first.
    """
    pooled = np.einsum("a,aij->ij", shares, covariances)
    values, vectors = np.linalg.eigh(pooled)
    gaps = (means[1:] - means[0]) @ vectors
    slopes = np.array([vectors @ (gap / (values + ridge)) for gap in gaps for ridge in _RIDGES])
    lengths = np.sqrt(np.einsum("ij,jk,ik->i", slopes, pooled, slopes))
    return np.asarray(slopes * outcome_sd / np.maximum(lengths, 1e-12)[:, None] / sqrt(len(gaps)))
