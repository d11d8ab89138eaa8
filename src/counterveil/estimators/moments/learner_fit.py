"""From released moments to the weights of an effect: passes over residuals, then shrinkage by groups.

With Gram matrix G and best weights w*, a pass over residuals around weights w releases G (w* - w) + noise.
Adding the released G times w gives the products G w* again, wrong by (released G - G)(w* - w): the better w
is, the less the noise of the Gram matrix enters, and the smaller the clip of the residuals. All passes are
averaged by their variances. Everything is in units of half the outcome's range; nothing here reads private
rows.

Numbers of this module were set on the designs of `experiments/cate`; privacy does not depend on them.

In: noisy second moments of features (one Gram matrix an arm), noisy products of features and residuals. Out:
the weights of the effect and the covariance of their error. A pass is one release of products of features
with residuals that are clipped. Privacy of what is read: `rows/moments/arm_statistics.proof.md` (moments by
arm) and `rows/moments/orthogonal_score.proof.md` (passes); the rest is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from counterveil.estimators.moments.nuisance_models import LONGEST_RESIDUAL
from counterveil.estimators.moments.scaling import is_near_bound
from counterveil.numerics.arrays import Floats
from counterveil.numerics.shrinkage import Normal, Prior, RidgePosterior, shrink, upper_variances
from counterveil.results.functions import Unshrunk
from counterveil.rows.moments.arm_statistics import ArmProducts
from counterveil.rows.moments.residual_products import ResidualProducts

# Eigenvalues of a released matrix are kept above this many standard deviations of an entry.
_FLOOR = 0.5
# Mean squared residuals are taken for no less and no more than these, in squares of half the range;
LEAST_RESIDUAL = 1e-4
LARGEST_RESIDUAL = 1.0
# before residuals were released, for no less than this.
_FIRST_RESIDUAL = 0.02
# Rounds in which the first fit takes the size of its own weights into account.
_ROUNDS = 3
# The least clip, in halves of the range.
_LEAST_CLIP = 0.01
# A ridge in parts of the mean information, lest rounding make it singular.
_RIDGE = 1e-12
# The block of groups of the effect; that of the outcome's other part is 0.
EFFECT = 1


@dataclass(frozen=True, slots=True)
class System:
    """Released Gram matrices, one an arm, and how observed weights are made of the parameters theta.

    Attributes
    ----------
    grams : tuple of ndarray of float, shape (m, m)
        Matrices, one an arm.
    mixing : ndarray of float, shape (arms * m, k)
        The weights of all arms, one after another, are mixing @ theta.
    prior : Prior
        Of theta: the weights of the outcome's common part, and then those of the effect.
    effects : int
        Number of weights of the effect.
    rows : int
        Number of rows.
    entry_variance : float
        Variance of the noise of the matrices' entries.
    """

    grams: tuple[Floats, ...]
    mixing: Floats
    prior: Prior
    effects: int
    rows: int
    entry_variance: float

    @property
    def gram(self) -> Floats:
        """The matrices of all arms as one block matrix."""
        size = len(self.grams[0])
        gram = np.zeros((size * len(self.grams),) * 2)
        for arm, block in enumerate(self.grams):
            inside = slice(arm * size, (arm + 1) * size)
            gram[inside, inside] = block
        return gram

    def weights(self, theta: Floats) -> Floats:
        """Return the weights (arms, size) of parameters."""
        return np.asarray((self.mixing @ theta).reshape(len(self.grams), -1))

    def prediction_error(self, covariance: Floats) -> float:
        """Return the mean squared error of predictions when parameters have this covariance."""
        of_arms = self.mixing @ covariance @ self.mixing.T
        return float(np.einsum("ij,ji->", self.gram, of_arms))

    def length(self, covariance: Floats) -> float:
        """Return the mean squared length of an arm's weights when parameters have this covariance."""
        return float(np.trace(self.mixing @ covariance @ self.mixing.T)) / len(self.grams)


@dataclass(frozen=True, slots=True)
class LearnerFit:
    """Parameters, what is known of their error, and the mean squared residual."""

    shrunken: RidgePosterior
    normal: Normal
    residual: float

    @property
    def theta(self) -> Floats:
        """The parameters."""
        return self.shrunken.weights


@dataclass(frozen=True, slots=True)
class Passes:
    """Products G w* as every pass has seen them.

    Attributes
    ----------
    products : tuple of ndarray of float, shape (arms * m,)
        What was seen.
    noise : tuple of float
        Variance of each by noise of the pass.
    extra : tuple of float
        What the Gram matrix's noise adds to it.
    lost : tuple of float
        Standard deviations of what clips take off, which go together in all passes.
    """

    products: tuple[Floats, ...]
    noise: tuple[float, ...]
    extra: tuple[float, ...]
    lost: tuple[float, ...]

    def and_(self, products: Floats, noise: float, extra: float, lost: float) -> Passes:
        """Return the passes with one more."""
        return Passes(
            products=(*self.products, products),
            noise=(*self.noise, noise),
            extra=(*self.extra, extra),
            lost=(*self.lost, lost),
        )

    def averaged(self) -> tuple[Floats, float, float, float]:
        """Return the average by variances, the two parts of its variance, and what clips take off it."""
        noise = np.array(self.noise)
        extra = np.array(self.extra)
        lost = np.array(self.lost)
        # Noise is in every coordinate, what clips take off in all together.
        inverse = 1.0 / (noise + extra + lost**2 / len(self.products[0]))
        share = inverse / inverse.sum()
        mean = np.einsum("i,ij->j", share, np.array(self.products))
        return mean, float(share**2 @ noise), float(share**2 @ extra), float(share @ lost)


def first_fit(system: System, moments: ArmProducts, guess: float) -> tuple[LearnerFit, Passes]:
    """Return the fit to the moments themselves; `guess` is the squared length of weights before any is seen."""
    products = np.concatenate(moments.products)
    length = guess
    residual = min(max(moments.square, LEAST_RESIDUAL), LARGEST_RESIDUAL)
    for _ in range(_ROUNDS):
        passes = Passes((products,), (moments.product_sd**2,), (system.entry_variance * length,), (0.0,))
        fit = fitted(system, passes, residual)
        weights = system.mixing @ fit.theta
        length = float(weights @ weights) / len(system.grams)
        square = moments.square - 2 * float(weights @ products) + float(weights @ system.gram @ weights)
        residual = min(max(square, _FIRST_RESIDUAL), LARGEST_RESIDUAL)
    return LearnerFit(fit.shrunken, fit.normal, residual), passes


def mean_outcome(moments: ArmProducts, constant: float) -> float:
    """Return the mean outcome as released, in units of half its range around the middle.

    `constant` is the first feature, which is the same in every row before rows are shortened.
    """
    level = sum(float(products[0]) for products in moments.products)
    size = sum(float(gram[0, 0]) for gram in moments.grams)
    return constant * level / size if size > 0 else 0.0


def next_clip(system: System, fit: LearnerFit, clip_sds: float, level: float) -> float:
    """Return the clip of the next pass: `clip_sds` standard deviations of what its residuals are expected to be.

    `level` is the mean outcome: near an end of the range nothing is clipped.
    """
    if is_near_bound(level):
        return LONGEST_RESIDUAL
    variance = fit.residual + max(system.prediction_error(fit.shrunken.posterior), 0.0)
    return min(LONGEST_RESIDUAL, max(clip_sds * sqrt(variance), _LEAST_CLIP))


def refined(
    system: System, fit: LearnerFit, passes: Passes, gradient: ResidualProducts, lost: float
) -> tuple[LearnerFit, Passes]:
    """Return the fit with one more pass, over residuals around the last weights, of which a clip may take `lost`."""
    products = gradient.products + system.gram @ system.mixing @ fit.theta
    error = fit.shrunken.posterior
    all_passes = passes.and_(products, gradient.sd**2, system.entry_variance * system.length(error), lost)
    residual = gradient.square - max(system.prediction_error(error), 0.0) / 2
    return fitted(system, all_passes, min(max(residual, LEAST_RESIDUAL), LARGEST_RESIDUAL)), all_passes


def fitted(system: System, passes: Passes, residual: float) -> LearnerFit:
    """Return the parameters that all passes agree on, shrunk by groups."""
    mean, covariance = measured(system, passes, residual)
    normal = Normal.of(system.gram @ system.mixing, mean, covariance)
    return LearnerFit(shrink(normal, system.prior), normal, residual)


def measured(system: System, passes: Passes, residual: float) -> tuple[Floats, Floats]:
    """Return what all passes say and its covariance; those of whom clips take off are like all people."""
    mean, noise, extra, lost = passes.averaged()
    sampling = (residual / system.rows + lost**2) * system.gram
    return mean, (noise + extra) * np.eye(len(mean)) + sampling


def effect_weights(system: System, fit: LearnerFit, passes: Passes) -> tuple[Floats, Floats, Floats]:
    """Return the effect's weights, the covariance of their error, and its part that is noise.

    True weights may be as large as upper limits of their groups' scales.
    """
    _, covariance = measured(system, passes, fit.residual)
    _, noise, extra, _ = passes.averaged()
    shrunken = fit.shrunken
    # theta = gain @ mean, with the gain of the posterior.
    gain = shrunken.posterior @ np.linalg.solve(covariance, system.gram @ system.mixing).T
    upper = upper_variances(fit.normal, system.prior, shrunken.scales, EFFECT)
    shrunk_away = np.eye(len(upper)) - shrunken.response
    total = gain @ covariance @ gain.T + (shrunk_away * upper) @ shrunk_away.T
    effect = slice(len(upper) - system.effects, None)
    private = gain @ gain.T * (noise + extra)
    return fit.theta[effect], total[effect, effect], private[effect, effect]


def unshrunk(system: System, fit: LearnerFit, orders: Floats) -> Unshrunk:
    """Return the effect's weights by generalised least squares, without a prior.

    Mean features, in parts of the first one, which is constant, are the first column of the released Gram
    matrices.
    """
    information = fit.normal.information
    ridge = _RIDGE * np.trace(information) / len(information)
    covariance = np.linalg.inv(information + ridge * np.eye(len(information)))
    effect = slice(len(covariance) - system.effects, None)
    column = sum((gram[: system.effects, 0] for gram in system.grams), np.zeros(system.effects))
    weights = (covariance @ fit.normal.score)[effect]
    return Unshrunk(weights, covariance[effect, effect], orders, column / column[0])


def positive(matrix: Floats, sd: float) -> Floats:
    """Return the matrix with eigenvalues raised to a part of the noise of an entry."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, _FLOOR * sd)) @ vectors.T)
