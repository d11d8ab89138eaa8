"""Lines of all arms from released moments by arm: an empirical Bayes fit, refined on moments of residuals.

Slopes b_a of the outcome on features satisfy c_a = C_a b_a + noise (`arm_moments`). They are taken to be a
part that all arms share and a part of an arm's own, both normal around zero with variances of a grid, over
which the posterior is averaged. A pass over residuals releases E_a[u (v - l_a - b_a'z)], with less noise
where residuals are smaller than outcomes; both sources of c_a are weighted by their precision.

Everything is post-processing; outcomes are in units of the released scale. The constants were set on the
tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not depend on them.

In: noisy moments by arm (`arm_moments`) and of residuals. Out: one line per arm and the covariance of its
error. Letters: z standardised covariates, u = (1, z), v the outcome, C_a the covariance of z in arm a, c_a
that of z and v, l_a the mean of v. The released scale is that of v = (outcome - centre) / unit with centre
and unit from released counts. Privacy of what is read here: `rows/moments/arm_grams.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np

from counterveil.estimators.moments.arm_moments import ArmMoments
from counterveil.numerics.arrays import Floats
from counterveil.numerics.shrinkage import averaged_posterior
from counterveil.rows.moments.linear_models import ArmLines
from counterveil.rows.moments.residual_products import ResidualProducts

# Prior standard deviations of slopes: of what all arms share, and of an arm's own part (all but the last),
_PRIORS = (1e-3, 0.08, 0.25, 0.8, 2.0)
# in units of this times sd(y) / sqrt(features).
_PRIOR_SD = 1.5
# Prior variances along the directions of confounding, in variances of the outcome.
_ALONG = (0.0, 0.1)
# Arms share at least this part of it.
_LEAST_SHARED = 0.5
# Clip of residuals in standard deviations.
RESIDUAL_CLIP_SDS = 3.0
# Prior standard deviation of an arm's level around that of everyone, in standard deviations of the outcome.
_LEVEL_SD = 1.5
# Square of what clipping does to a level, in residual variances.
_CLIPPED = 0.01
# What errors of covariances add to the noise of products before slopes are known, in variances of the
# outcome.
_FIRST_ERROR = 0.1
# The residual variance is taken for no less than this part of the outcome's variance, and no more than the next.
_LEAST_RESIDUAL = 0.02
_MOST_RESIDUAL = 1.5


@dataclass(frozen=True, slots=True)
class ArmSlopes:
    """Slopes of all arms: posterior means and covariances.

    Attributes
    ----------
    values : ndarray of shape (k, d)
    covariances : ndarray of shape (k, d, d)
    """

    values: Floats
    covariances: Floats

    @property
    def errors(self) -> Floats:
        """Expected squared lengths of the slopes' errors, (k,)."""
        return np.asarray(np.einsum("aii->a", self.covariances))

    @property
    def squares(self) -> Floats:
        """Expected squared lengths of the slopes, (k,)."""
        return np.asarray((self.values**2).sum(axis=1) + self.errors)


@dataclass(frozen=True, slots=True)
class ArmFit:
    """Lines of all arms and what is known about them.

    Attributes
    ----------
    levels : ndarray of shape (k,)
        Mean outcomes of the arms.
    slopes : ArmSlopes
        Of the outcome on features within arms.
    products, noise : ndarray of shape (k, d), (k,)
        All that was released about slopes so far, c_a, and the variance of an entry's noise.
    residual : float
        Upper estimate of the residual variance.
    level_error : ndarray of shape (k,)
        Expected squares of what the levels are off.
    square, square_sd : float
        Mean squared residual of the last pass, and its noise.
    step : float
        Variance that the last correction explained.
    first : ndarray of shape (k,)
        The part of the products that comes from the Grams.
    """

    levels: Floats
    slopes: ArmSlopes
    products: Floats
    noise: Floats
    residual: float
    level_error: Floats
    square: float = 0.0
    square_sd: float = 0.0
    step: float = 0.0
    first: Floats = field(default_factory=lambda: np.ones(2))

    def lines(self, moments: ArmMoments) -> ArmLines:
        """Return the lines on (1, z)."""
        constants = self.levels - (moments.means * self.slopes.values).sum(axis=1)
        return ArmLines(np.column_stack([constants, self.slopes.values]))


def first_fit(moments: ArmMoments, square_sd: float) -> ArmFit:
    """Return the lines from the Grams alone; `square_sd` is the noise of the outcome's mean square."""
    noise = moments.noise + _FIRST_ERROR * moments.errors * moments.outcome_sd**2
    slopes = fitted_slopes(moments, moments.products, noise)
    noise = moments.noise + moments.errors * slopes.squares
    slopes = fitted_slopes(moments, moments.products, noise)
    explained = explained_by(moments, slopes.values)
    residual = max(moments.within_variance - explained, _LEAST_RESIDUAL * moments.outcome_sd**2)
    residual += float(moments.shares @ slopes.errors) + square_sd
    residual = min(residual, _MOST_RESIDUAL * moments.outcome_sd**2)
    # What noise hides of a level is taken to lie near that of everyone.
    level_variance = (_LEVEL_SD * moments.outcome_sd) ** 2
    weight = level_variance / (level_variance + moments.level_error)
    everyone = float(moments.shares @ moments.levels)
    return ArmFit(
        levels=everyone + weight * (moments.levels - everyone),
        slopes=slopes,
        products=moments.products,
        noise=noise,
        residual=residual,
        level_error=weight * moments.level_error,
        first=np.ones(len(moments.levels)),
    )


def refined(moments: ArmMoments, fit: ArmFit, residuals: ResidualProducts) -> ArmFit:
    """Return the lines moved by what the residuals still hold, both sources weighted by their noise."""
    by_arm = residuals.products / moments.shares[:, None]
    residual_noise = (residuals.sd / moments.shares) ** 2
    level_error = np.maximum(fit.level_error, _CLIPPED * fit.residual)
    weight = level_error / (level_error + residual_noise)
    levels = fit.levels + weight * by_arm[:, 0]
    # A correction is off by the share's part of what it corrects.
    level_error = weight * residual_noise + moments.share_error / moments.shares**2 * level_error
    fitted = np.einsum("aij,aj->ai", moments.covariances, fit.slopes.values)
    products = by_arm[:, 1:] - moments.means * by_arm[:, :1] + fitted
    noise = (residuals.sd / moments.shares) ** 2 + moments.errors * fit.slopes.errors
    joint_noise = 1 / (1 / fit.noise + 1 / noise)
    products = joint_noise[:, None] * (fit.products / fit.noise[:, None] + products / noise[:, None])
    slopes = fitted_slopes(moments, products, joint_noise)
    square = max(residuals.square, 1e-6)
    step = explained_by(moments, slopes.values - fit.slopes.values)
    # An upper estimate of the residual variance: a quarter of the measured one at least, plus noise.
    remaining = max(square - max(step, 0.0), square / 4)
    upper = remaining + float(moments.shares @ slopes.errors) + residuals.square_sd / 2
    return replace(
        fit,
        levels=levels,
        slopes=slopes,
        products=products,
        noise=joint_noise,
        level_error=level_error,
        square=square,
        square_sd=residuals.square_sd,
        step=step,
        first=fit.first * joint_noise / fit.noise,
        residual=min(upper, fit.residual),
    )


def fitted_slopes(moments: ArmMoments, products: Floats, noise: Floats) -> ArmSlopes:
    """Return the posterior of all arms' slopes b_a from products C_a b_a + noise of these variances."""
    arms, d = products.shape
    grid = _PRIOR_SD * moments.outcome_sd / sqrt(d) * np.array(_PRIORS)
    blocks = [slice(arm * d, (arm + 1) * d) for arm in range(arms)]
    design = np.zeros((arms * d, arms * d))
    for block, covariance in zip(blocks, moments.covariances, strict=True):
        design[block, block] = covariance
    along = moments.directions.T @ moments.directions
    priors = [
        _prior(arms, common, own, part * along) for part in _ALONG for common in grid for own in grid[:-1]
    ]
    mean, covariance = averaged_posterior(design, products.ravel(), np.repeat(noise, d), priors)
    return ArmSlopes(mean.reshape(arms, d), np.stack([covariance[block, block] for block in blocks]))


def _prior(arms: int, common_sd: float, own_sd: float, along: Floats) -> Floats:
    """Return the prior covariance of the slopes of all arms together."""
    same_arm = (common_sd**2 + own_sd**2) * np.eye(len(along)) + along
    part_shared = 1 - min(_LEAST_SHARED, (own_sd / (common_sd + own_sd)) ** 2)
    other_arm = common_sd**2 * np.eye(len(along)) + part_shared * along
    return np.block([[same_arm if i == j else other_arm for j in range(arms)] for i in range(arms)])


def explained_by(moments: ArmMoments, slopes: Floats) -> float:
    """Return the variance that slopes (k, d) explain within the arms."""
    by_arm = np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes)
    return float(moments.shares @ by_arm)


def residual_clip(fit: ArmFit) -> float:
    """Return where residuals are clipped when their moments are released."""
    return RESIDUAL_CLIP_SDS * sqrt(fit.residual + float(fit.level_error.max()))
