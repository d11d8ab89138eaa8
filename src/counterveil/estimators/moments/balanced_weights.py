"""Weights that balance an arm against the people asked about, and what errors of weights and lines leave.

Weights of arm a are lines in the covariates,

    alpha_a(z) = 1/p_a + (z - m_a)' s_a / p_a,    s_a = (C_a + ridge)^-1 (target - m_a),

p_a being the arm's share, m_a and C_a its mean and covariance of z and `target` the mean of z over the people
asked about: the balancing form of an inverse propensity (Chernozhukov, Newey and Singh 2022; Hirshberg and
Wager 2021). The ridge is the one of least expected squared error. The error that is left is a product of
those of weights and of lines; `ArmWeights` holds its parts. Everything is post-processing of released
numbers. In: released moments and fitted lines, with features z standardised by the released centre and width
of each column, and outcomes in half widths of the place where they were found. Out: weights without units, and
variances in those of such an outcome, squared.

The constants were set on the tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not
depend on them.

Why weights balance: with a ridge of zero the mean over the arm of p_a alpha_a(z) z is `target`, so that a
weighted mean of outcomes errs only by what no line in z can say. Privacy of the released moments that are
read: `rows/moments/arm_grams.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.moments.arm_fits import ArmFit, ArmSlopes, fitted_slopes
from counterveil.estimators.moments.arm_moments import ArmMoments, confounded_directions
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.rows.moments.score_sums import ArmScore

_RIDGES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10.0, 100.0)
# Least alignment of what weights and lines leave out: this many times what chance would give.
_ALIGNMENT = 3.0
# The bound of the bias of shrinkage is multiplied by this.
_BIAS = 1.5
# Slopes are supposed to be shrunk by at most this many times their size.
_MOST_BIAS = 2.0
# Most that the squared spread of weights counts, beside one.
_MOST_SPREAD = 2.0
# The mean of e (1 - e) is taken for no less.
_LEAST_OVERLAP = 0.02
# Part of the rows that overlap weights are taken to be worth.
_OVERLAP = 0.75
# Squares and products are taken to move an effect that moves by this many standard errors.
_SURE_MOVED = 2.0
# The standard deviation of what is left of the expected shared error once that is taken off, beside it.
_RUN_SHARED = 1.2
# How means of the two arms enter the effect.
_DIFFERENCE = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Guard:
    """What intervals are guarded with, from public numbers.

    Attributes
    ----------
    inflation : float
        Multiplies the variance of the product of both errors.
    shared : float
        The least part of the shared error of weights and lines that residuals leave.
    """

    inflation: float
    shared: float


@dataclass(frozen=True, slots=True)
class ArmWeights:
    """One arm's weights, and what they and the arm's line leave of the error of its mean.

    Attributes
    ----------
    slope : ndarray of shape (d,)
        s_a.
    product : float
        Variance of the product of the errors of weights and line.
    bias : float
        Bound of the bias of shrinkage.
    shared : float
        Expected error from noise of the Grams that weights and line share.
    sampling : float
        Part of the sampling variance that scores with ridged weights do not show.
    """

    slope: Floats
    product: float = 0.0
    bias: float = 0.0
    shared: float = 0.0
    sampling: float = 0.0


@dataclass(frozen=True, slots=True)
class BalancedScore:
    """The score of every row, and what its models leave.

    Attributes
    ----------
    score : ArmScore
        Lines, weights and the effect that lines alone say.
    levels : ndarray of shape (k,)
        What lines say of every arm's mean over the people asked about.
    arms : tuple of ArmWeights
        What each arm leaves, the reference first.
    nonlinear_shift : float
        How far squares and products move the effect, where they surely do.
    """

    score: ArmScore
    levels: Floats
    arms: tuple[ArmWeights, ...]
    nonlinear_shift: float = 0.0

    @property
    def product(self) -> float:
        """The variance of the product of both models' errors."""
        return sum(arm.product for arm in self.arms)

    @property
    def bias(self) -> float:
        """The bound of the effect's bias, but for that of squares and products."""
        return sum(arm.bias for arm in self.arms)

    @property
    def shared(self) -> float:
        """The expected error of the effect from noise of the Grams."""
        return self.arms[0].shared - self.arms[1].shared

    @property
    def sampling(self) -> float:
        """The sampling variance that scores do not show."""
        return sum(arm.sampling for arm in self.arms)


def weighted(moments: ArmMoments, fit: ArmFit, estimand: Estimand, rows: int, guard: Guard) -> BalancedScore:
    """Return the score for an estimand, of several arms that on everyone, with the ridge of least expected error."""
    p = moments.shares
    target = _target(moments, estimand)
    # Of overlap weights the mean of z is released with the Grams, so that scores hold no more than residuals.
    people = {Estimand.ATE: (1.0, 1.0), Estimand.ATT: (0.0, 1 / p[1]), Estimand.ATC: (1 / p[0], 0.0)}
    # An arm that is all of the people asked about needs no weights.
    unweighted = {Estimand.ATT: 1, Estimand.ATC: 0}.get(estimand)
    weights = np.zeros((len(p), len(moments.overall) + 1))
    arms = []
    for arm in range(len(p)):
        weights[arm, 0] = 1 / p[arm]
        if arm == unweighted:
            arms.append(ArmWeights(np.zeros(len(moments.overall))))
            continue
        balanced = _arm_weights(moments, fit, arm, estimand=estimand, rows=rows, guard=guard)
        weights[arm, 0] -= moments.means[arm] @ balanced.slope / p[arm]
        weights[arm, 1:] = balanced.slope / p[arm]
        arms.append(balanced)
    slopes = fit.slopes.values
    levels = fit.levels + ((target - moments.means) * slopes).sum(axis=1)
    effect = float(levels[1] - levels[0])
    if estimand is Estimand.ATO:
        vary = slopes[1] - slopes[0]
        noise = _overlapping(moments)[1]
        chance = float(vary @ np.einsum("a,aij->ij", p, moments.covariances) @ vary) / (_OVERLAP * rows)
        product = arms[0].product + noise * float(vary @ vary)
        arms[0] = replace(arms[0], product=product, sampling=arms[0].sampling + chance)
    score = ArmScore(fit.lines(moments), weights, people.get(estimand, (0.0, 0.0)), effect)
    return BalancedScore(score, levels, tuple(arms))


def moved_by_richer(
    moments: ArmMoments,
    fit: ArmFit,
    estimand: Estimand,
    plain: int,
    rows: int,
    signs: Sequence[float] = _DIFFERENCE,
) -> float:
    """Return how far squares and products move the effect of the arms' lines, 0 where noise or chance may explain it.

    What richer features still would move is of that size at most, if they matter less and less.

    Parameters
    ----------
    plain : int
        How many features are the covariates themselves.
    rows : int
        Number of rows n.
    signs : sequence of float
        How the arms' means enter what is looked at: by default their difference.
    """
    means = moments.means[:, :plain]
    covariances = moments.covariances[:, :plain, :plain]
    fewer = replace(
        moments,
        overall=moments.overall[:plain],
        means=means,
        covariances=covariances,
        directions=confounded_directions(means, moments.shares, covariances, moments.outcome_sd),
    )
    without = fitted_slopes(fewer, fit.products[:, :plain], fit.noise)
    with_all, variance = _contrast(moments, fit.slopes, estimand, residual=fit.residual / rows, signs=signs)
    with_some, variance_of_some = _contrast(
        fewer, without, estimand, residual=fit.residual / rows, signs=signs
    )
    moved = abs(with_all - with_some)
    return moved if moved > _SURE_MOVED * sqrt(max(variance - variance_of_some, variance / 4)) else 0.0


def _contrast(
    moments: ArmMoments, slopes: ArmSlopes, estimand: Estimand, residual: float, signs: Sequence[float]
) -> tuple[float, float]:
    """Return what slopes add to the difference of levels, and its variance from noise and sampling."""
    off = _target(moments, estimand) - moments.means
    weights = np.array(signs)
    along = np.einsum("ai,ai->a", off, slopes.values)
    noise = np.einsum("ai,aij,aj->a", off, slopes.covariances, off)
    spread = [
        float(gap @ np.linalg.solve(covariance, gap))
        for gap, covariance in zip(off, moments.covariances, strict=True)
    ]
    return float(weights @ along), float(weights**2 @ (noise + residual * (spread / moments.shares)))


def _target(moments: ArmMoments, estimand: Estimand) -> Floats:
    """Return the mean of z over the people asked about."""
    if estimand is Estimand.ATO:
        return _overlapping(moments)[0]
    arm = {Estimand.ATT: 1, Estimand.ATC: 0}.get(estimand)
    return moments.overall if arm is None else np.asarray(moments.means[arm])


def _overlapping(moments: ArmMoments) -> tuple[Floats, float]:
    """Return the mean of z over the people of overlap weights, and the variance of an entry of it from noise.

    Weights are 1 - e in the treated arm and e in the other, e being the regression b'z of treatment: with
    them both arms have the same mean of z (Li, Morgan and Zaslavsky 2018).
    """
    p = moments.shares
    means = moments.means
    covariances = moments.covariances
    gap = means[1] - means[0]
    # The spread of everyone is that within arms and that of the gap, which may be so large that the two
    # together have no inverse: with c the regression by the arms' spread, b = c/(1 + gap'c), and 1 - b'gap =
    # 1/(1 + gap'c).
    c = np.linalg.solve(np.einsum("a,aij->ij", p, covariances), p[0] * p[1] * gap)
    apart = 1 + max(float(gap @ c), 0.0)
    slope = c / apart / max(float(p[0] * p[1]) / apart, _LEAST_OVERLAP)
    by_arm = means + np.array([p[0], -p[1]])[:, None] * (covariances @ slope)
    noise = len(p) * moments.mean_sd**2 + float(p**4 @ moments.errors * (slope @ slope))
    return np.asarray(p @ by_arm), 2 * noise


def _arm_weights(
    moments: ArmMoments, fit: ArmFit, arm: int, estimand: Estimand, rows: int, guard: Guard
) -> ArmWeights:
    """Return one arm's weights with the ridge of least expected squared error of its mean.

    In the eigenbasis of C_a, with eigenvalues w, a ridge r keeps the part w / (w + r) of the gap to the
    target and leaves the rest to the lines. What both miss together, noise of what they were made with and
    the sampling variance of the weights are added up for every ridge.
    """
    target = _target(moments, estimand)
    p = moments.shares
    noise = moments.mean_sd**2 * (
        (1 - 1 / p[arm]) ** 2 + len(p) - 1 if estimand is Estimand.ATE else float((1 / p**2).sum())
    )
    values, vectors = np.linalg.eigh(moments.covariances[arm])
    gap = vectors.T @ (target - moments.means[arm])
    slope_covariance = vectors.T @ fit.slopes.covariances[arm] @ vectors
    # How far the weights are off one on average: by the share's error and by that of the arm's means.
    share_noise = moments.share_error / p[arm] ** 2
    mean_noise = (moments.mean_sd / p[arm]) ** 2
    scaled = share_noise * float(gap**2 @ np.diag(slope_covariance))
    slopes = vectors.T @ fit.slopes.values[arm]
    error = max(float(np.trace(slope_covariance)), 0.0)
    size = float(slopes @ slopes)
    # Lines fitted to the same rows have the sampling error that weights without a ridge show.
    squared_gap = np.maximum(gap**2 - noise, 0.0)
    residual = fit.residual / (float(p[arm]) * rows)
    # With an error E of the covariance C, weights leave E v of imbalance, v = C^-1 (target - mean), and lines
    # that were made with C alone miss C^-1 E b of the slopes b; the mean of E C^-1 E is about the variance of
    # an entry times tr C^-1. Lines that were refined on residuals miss a part of it.
    shared_noise = max(float(fit.first[arm]), guard.shared) * float(moments.errors[arm] * (1 / values).sum())
    best: tuple[float, ArmWeights] | None = None
    for ridge in _RIDGES:
        balanced = values / (values + ridge)
        unbalanced = (1 - balanced) * gap
        slope = gap / (values + ridge)
        chance = float(((1 - balanced) ** 2 * squared_gap).sum())
        product = max(
            float(unbalanced @ slope_covariance @ unbalanced), _ALIGNMENT / len(target) * chance * error
        )
        product += noise * float(balanced**2 @ np.diag(slope_covariance))
        product += float(moments.errors[arm]) * float(slope @ slope) * error
        product += scaled + (share_noise + mean_noise * float(slope @ slope)) * float(fit.level_error[arm])
        spread = float(values @ slope**2)
        # Weights that vary much rest on few rows, whose errors have heavier tails.
        product = max(product, 0.0) * guard.inflation * (1 + min(spread, _MOST_SPREAD))
        unseen = residual * float(squared_gap @ (1 / values - values / (values + ridge) ** 2))
        bias = _BIAS * abs(float(unbalanced @ slopes)) * min(error / max(size, 1e-9), _MOST_BIAS)
        shared = shared_noise * float(slope @ slopes)
        # As the interval has it.
        expected = product + residual * spread + unseen + bias**2 + expected_shared(shared)
        if best is None or expected < best[0]:
            best = (
                expected,
                ArmWeights(slope=vectors @ slope, product=product, bias=bias, shared=shared, sampling=unseen),
            )
    assert best is not None
    return best[1]


def expected_shared(shared: float) -> float:
    """Return the variance of what is left of an expected shared error once that is taken off."""
    return (_RUN_SHARED * shared) ** 2
