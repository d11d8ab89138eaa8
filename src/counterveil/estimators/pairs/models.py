"""Propensity and outcome models of private pairs, fitted to released sums; nothing here reads private rows.

    logit e(x) = z . b,    E[y | A = a, x] = z . g_a,

with z the public features of a row, e its chance of treatment, A its arm and y its outcome, in halves of the
declared range around the middle.

In: noisy sums of z A, z A y and z (1 - A) y over rows, with the variance of their noise. Sums of z A are all
that a logistic regression needs (they are sufficient; it is solved by Newton steps); those with y give linear
regressions, in which the fitted shares e and 1 - e of every row stand for the private A. Out: propensities
and both arms' mean outcomes of every row, and the errors of all coefficients. These are shrunk by orders of
features as far as noise and sampling explain their size (empirical Bayes). What shrinkage leaves out of both
models is estimated from the same sums: `Models.products`.

All of it is post-processing; the sums are bounded in `rows/pairs/pair_moments.proof.md`. Numbers of this
module were set on designs of `experiments/third_level`; privacy does not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from scipy.special import expit

from counterveil.estimators.outcome_place import Spread
from counterveil.estimators.pairs.features import CONSTANT, LINEAR, NONLINEAR, Orders, PairFeatures
from counterveil.estimators.pairs.limits import LEAST_PROPENSITY
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.pairs.moments import TREATED, TreatedSums, root
from counterveil.rows.pairs.scores import Places
from counterveil.session import Gate

# Least squared size of coefficients that is allowed for, in parts of their variance.
_LEAST_SIGNAL = 0.02
# How much of the penalty that covariates and curves call for is applied to treatment: what it leaves is
# confounding.
_TREATED_PENALTY = 0.25
# A curve or product stands out where its squared coefficients of all three models, in variances, add up to
# this (99.7% of chi-squared with 3 degrees of freedom).
_STANDS_OUT = 14.0
# It is then kept in all of them, as an order of its own.
SELECTED = 4
# Most that curves or products, or one that stands out, and then that covariates move: the variance of log
# odds, and the part of that of outcomes.
_MOST = {"log odds": (0.5, 4.0), "outcomes": (0.25, 1.0)}
# Squared error of what corrects models for clipped outcomes, in squares of the correction.
_SHORT = 2.0
# A ridge that keeps matrices regular, in parts of a row.
_TINY = 1e-3
# Newton steps of the logistic regression, at most.
_MOST_STEPS = 25
# The largest change of log odds in one step, and the change at which steps end.
_LONGEST_STEP = 2.0
_CONVERGED = 1e-4
_LARGEST_LOG_ODDS = 8.0
# Shares of treated rows are taken to be no nearer to 0 and 1 where variances are guessed from them.
_LEAST_SHARE = 0.03
# The same of shares of events.
_LEAST_EVENTS = 2e-3


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedSums:
    """Released sums of weighted features with A, A y and (1 - A) y, and the variances of their noise.

    Where propensities are known, the sums with A are expected ones, and have no noise.

    Attributes
    ----------
    values, noise : ndarray of float, shape (3, p)
        Sums, and the variance of the noise of each.
    """

    values: Floats
    noise: Floats

    @classmethod
    def of(
        cls,
        released: Floats,
        variance: float,
        features: PairFeatures,
        by_design: Floats | None = None,
        outcomes: int = 1,
    ) -> ReleasedSums:
        """Return the sums of a released vector, without the scales of features and of treatment."""
        units = np.outer((float(TREATED), 1.0, 1.0), features.scale)
        if by_design is None:
            treatment = np.array([[float(root(outcomes))], [1.0], [1.0]])
            return cls(released.reshape(3, -1) / treatment / units, variance / units**2 / treatment**2)
        arms = released.reshape(2, -1) / units[1:]
        expected = features.z.T @ (features.weight * by_design)
        noise = np.vstack([np.zeros_like(units[0]), variance / units[1:] ** 2])
        return cls(np.vstack([expected, arms]), noise)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A regression shrunk by a ridge penalty, and the errors of its coefficients.

    Attributes
    ----------
    coefficients : ndarray of float, shape (p,)
        Shrunk coefficients.
    covariance : ndarray of float, shape (p, p)
        Covariance of their errors: noise, sampling and shrinkage.
    left, left_covariance : ndarray of float, shapes (p,) and (p, p)
        What shrinkage took from the coefficients, and the covariance of that.
    freedom : float
        How many coefficients were fitted, counting shrunk ones in part.
    """

    coefficients: Floats
    covariance: Floats
    left: Floats
    left_covariance: Floats
    freedom: float

    def times(self, factor: float, relative_error: float) -> Fit:
        """Return the fit times a factor whose squared error is so much of its square."""
        covariance = self.covariance + relative_error * np.outer(self.coefficients, self.coefficients)
        return Fit(
            coefficients=factor * self.coefficients,
            covariance=factor**2 * covariance,
            left=factor * self.left,
            left_covariance=factor**2 * self.left_covariance,
            freedom=self.freedom,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Propensities and both arms' mean outcomes of every row, with the fits behind them.

    Attributes
    ----------
    propensity : ndarray of float, shape (n,)
        Chance of treatment, kept away from 0 and 1.
    treated, control : ndarray of float, shape (n,)
        Mean outcomes in either arm, in halves of the range.
    score : Fit or None
        Model of the log odds of treatment; None where the design fixes propensities.
    arms : tuple of two Fit
        Models of outcomes of the treated and of the others.
    sd : float
        Standard deviation of outcomes, in halves of the range.
    modelled : ndarray of float, shape (n,), or None
        Propensities before they were kept away from 0 and 1, where they were.
    """

    propensity: Floats
    treated: Floats
    control: Floats
    score: Fit | None
    arms: tuple[Fit, Fit]
    sd: float
    modelled: Floats | None = None

    def at(self, rows: Places) -> Models:
        """Return the models of some rows."""
        return replace(
            self,
            propensity=self.propensity[rows],
            treated=self.treated[rows],
            control=self.control[rows],
            modelled=None if self.modelled is None else self.modelled[rows],
        )

    def fitted(self, arm: int | None) -> float:
        """Return by how much rows of an arm, or all, vary more than around models that were fitted to them."""
        shares = self.propensity, 1 - self.propensity
        arms = [index for index in (0, 1) if arm in (None, index)]
        rows = sum(float(shares[index].sum()) for index in arms)
        return rows / max(rows - sum(self.arms[index].freedom for index in arms), rows / 2)

    def products(self, weights: tuple[Floats, Floats], features: PairFeatures) -> tuple[float, float, float]:
        """Return the variance of the sum of products of both models' errors, and what shrinkage left, with its sd.

        `weights` are those of the products in both arms.
        """
        if self.score is None:
            return 0.0, 0.0, 0.0
        second = 0.0
        variance = 0.0
        along = np.zeros(features.z.shape[1])
        for arm_weights, arm in zip(weights, self.arms, strict=True):
            gram = features.gram(arm_weights)
            second += float(((gram @ arm.covariance @ gram) * self.score.covariance).sum())
            along += gram @ arm.left
            moved = gram @ self.score.left
            variance += float(moved @ arm.left_covariance @ moved)
        # If the product is nothing, one factor is: what is left of it is noise, which the other factor
        # multiplies.
        variance = max(variance, float(along @ self.score.left_covariance @ along))
        return second, float(self.score.left @ along), sqrt(variance)


def fit_models(
    features: PairFeatures, sums: ReleasedSums, spread: Spread, *, by_design: Floats | None, constant: bool
) -> Models:
    """Return the models of released sums.

    Parameters
    ----------
    features : PairFeatures
        Features of every row.
    sums : ReleasedSums
        What was released of them.
    spread : Spread
        Where outcomes lie. A standard deviation of 0 is that of events, which their share gives.
    by_design : ndarray of float, shape (n,), or None
        Propensities that the design fixes.
    constant : bool
        Whether propensities are the same for all, and unknown.
    """
    score = modelled = None
    centre = spread.centre
    half_width = spread.half_width
    sd = spread.sd
    order = _orders_with_selected(features, sums, min((sd / half_width) ** 2, 1.0) if sd else 1.0)
    if by_design is not None:
        propensity = by_design
    else:
        modelled, score = _one_propensity(features, sums) if constant else _logistic(features, sums, order)
        propensity = np.clip(modelled, LEAST_PROPENSITY, 1 - LEAST_PROPENSITY)
        modelled = None if np.array_equal(modelled, propensity) else modelled
    if not sd:
        mean_outcome = float(sums.values[1, 0] + sums.values[2, 0]) / float(
            features.weight @ features.z[:, 0] ** 2
        )
        events = min(max((1 + mean_outcome) / 2, _LEAST_EVENTS), 1 - _LEAST_EVENTS)
        sd = 2 * (events * (1 - events)) ** 0.5
    varies = min((sd / half_width) ** 2, 1.0)
    fits = tuple(
        _linear(features, share, sums.values[index], sums.noise[index], spread=varies, order=order)
        for index, share in ((1, propensity), (2, 1 - propensity))
    )
    # Clipped outcomes are shorter than they were, which the models correct: on average, and by about as much
    # again.
    half_width *= spread.stretch
    short = _SHORT * (1 - 1 / spread.stretch) ** 2
    low = max(-1.0, centre - half_width)
    high = min(1.0, centre + half_width)
    means = [np.clip(centre + half_width * (features.z @ fit.coefficients), low, high) for fit in fits]
    treated, control = (fit.times(half_width, short) for fit in fits)
    return Models(
        propensity=propensity,
        treated=means[0],
        control=means[1],
        score=score,
        arms=(treated, control),
        sd=sd,
        modelled=modelled,
    )


def _orders_with_selected(features: PairFeatures, sums: ReleasedSums, spread: float) -> Integers:
    """Return the orders of features, with one of their own for curves and products that stand out of their noise."""
    sizes = features.weight @ features.z
    gram = features.gram(features.weight)
    share = min(max(float(sums.values[0, 0]) / gram[0, 0], _LEAST_SHARE), 1 - _LEAST_SHARE)
    squares = np.zeros(len(features.order))
    # Of the sums with A, A y and (1 - A) y: what they are beside the coefficients, and the variance of
    # sampling.
    curvatures = share * (1 - share), share, 1 - share
    variances = share * (1 - share), share * spread, (1 - share) * spread
    for sum_of, (curvature, sampling) in enumerate(zip(curvatures, variances, strict=True)):
        target = sums.values[sum_of] - (share * sizes if sum_of == 0 else 0.0)
        errors = np.diag(sums.noise[sum_of]) + sampling * gram
        first, variance = _unpenalised(curvature * gram, target, errors, features.order)
        squares += first**2 / variance
    return np.where((features.order >= NONLINEAR) & (squares > _STANDS_OUT), SELECTED, features.order)


def _one_propensity(features: PairFeatures, sums: ReleasedSums) -> tuple[Floats, Fit]:
    """Return the share treated as everyone's propensity; its error is that of one coefficient."""
    weight = features.weight * features.z[:, 0]
    size = float(weight.sum())
    p = features.z.shape[1]
    share = min(max(float(sums.values[0, 0]) / size, LEAST_PROPENSITY), 1 - LEAST_PROPENSITY)
    curvature = share * (1 - share)
    covariance = np.zeros((p, p))
    variance = float(sums.noise[0, 0]) + curvature * float((weight**2).sum())
    covariance[0, 0] = variance / (curvature * size) ** 2
    nothing = np.zeros(p)
    return np.full(len(features.z), share), Fit(
        coefficients=nothing,
        covariance=covariance,
        left=nothing,
        left_covariance=np.zeros((p, p)),
        freedom=1.0,
    )


def _logistic(features: PairFeatures, sums: ReleasedSums, order: Integers) -> tuple[Floats, Fit]:
    """Return propensities of the logistic model whose weighted sums are the released ones, and its fit."""
    z = features.z
    target = sums.values[0]
    noise = sums.noise[0]
    gram = features.gram(features.weight)
    share = min(max(float(target[0]) / gram[0, 0], _LEAST_SHARE), 1 - _LEAST_SHARE)
    flat = share * (1 - share)
    centred = target - share * (features.weight @ z)
    first, variance = _unpenalised(flat * gram, centred, np.diag(noise) + flat * gram, order)
    penalty, squares = _penalties(
        first, variance, flat * np.diag(gram), order, most=_MOST["log odds"], hidden=features.hidden
    )
    penalty = np.where(order <= NONLINEAR, _TREATED_PENALTY, 1.0) * penalty
    coefficients = np.zeros(z.shape[1])
    coefficients[0] = log(share / (1 - share))
    for _ in range(_MOST_STEPS):
        e = expit(np.clip(z @ coefficients, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))
        bare = features.gram(features.weight * e * (1 - e)) + _TINY * np.eye(len(coefficients))
        step = np.linalg.solve(
            bare + np.diag(penalty), target - (features.weight * e) @ z - penalty * coefficients
        )
        largest = float(np.abs(z @ step).max())
        coefficients = coefficients + step * min(1.0, _LONGEST_STEP / max(largest, 1e-12))
        if largest < _CONVERGED:
            break
    e = expit(np.clip(z @ coefficients, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))
    bare = features.gram(features.weight * e * (1 - e)) + _TINY * np.eye(len(coefficients))
    return e, _fit(coefficients, bare, penalty=penalty, errors=np.diag(noise) + bare, squares=squares)


def released_propensities(gate: Gate, name: str, features: PairFeatures) -> tuple[Floats, Floats]:
    """Return every row's propensity from released sums, and the covariance of its log odds' coefficients from noise."""
    released = TreatedSums(features).release(gate, name)
    sums = ReleasedSums(
        released.floats()[None] / features.scale, released.variance / features.scale[None] ** 2
    )
    e, _ = _logistic(features, sums, features.order)
    inverse = np.linalg.inv(
        features.gram(features.weight * e * (1 - e)) + _TINY * np.eye(len(features.scale))
    )
    return e, np.asarray(inverse @ np.diag(sums.noise[0]) @ inverse)


def _linear(
    features: PairFeatures, share: Floats, target: Floats, noise: Floats, *, spread: float, order: Integers
) -> Fit:
    """Return the regression of one arm's outcomes, of which about the `share` of every row is in the sums.

    `spread` is the variance of outcomes in squares of the half-width in which they are summed.
    """
    gram = features.gram(features.weight * share) + _TINY * np.eye(len(target))
    errors = np.diag(noise) + spread * gram
    first, variance = _unpenalised(gram, target, errors, order)
    most = (spread * _MOST["outcomes"][0], spread * _MOST["outcomes"][1])
    penalty, squares = _penalties(first, variance, np.diag(gram), order, most=most, hidden=features.hidden)
    coefficients = np.asarray(np.linalg.solve(gram + np.diag(penalty), target), np.float64)
    return _fit(coefficients, gram, penalty=penalty, errors=errors, squares=squares)


def _unpenalised(gram: Floats, target: Floats, errors: Floats, order: Integers) -> tuple[Floats, Floats]:
    """Return coefficients and their variances: of covariates together, of every other feature beside covariates alone.

    Sums `target` have errors of this covariance around `gram` times the coefficients.
    """
    base = order <= LINEAR
    inverse = np.linalg.inv(gram[np.ix_(base, base)])
    others = np.flatnonzero(~base)
    solving = np.eye(len(target))
    curvature = np.ones(len(target))
    solving[np.ix_(base, base)] = inverse
    solving[np.ix_(others, base)] = -gram[np.ix_(others, base)] @ inverse
    curvature[others] = (solving @ gram)[others, others]
    variance = ((solving @ errors) * solving).sum(axis=1)
    return solving @ target / curvature, variance / curvature**2


def _penalties(
    first: Floats,
    variance: Floats,
    curvature: Floats,
    order: Integers,
    *,
    most: tuple[float, float],
    hidden: Orders,
) -> tuple[Floats, Floats]:
    """Return ridge penalties and squared sizes that coefficients may have, one for each order.

    Of the k coefficients b_j of an order, unpenalised and of mean variance v, the mean signal is mean b_j^2 -
    v, and the penalty is that of a normal prior of this variance. Sizes of `hidden` orders are no less than
    what noise hides: v sqrt(2 / k), one standard deviation of the mean square.

    Parameters
    ----------
    first, variance : ndarray of float, shape (p,)
        Coefficients without a penalty, and their variances.
    curvature : ndarray of float, shape (p,)
        Sums are about so many times a coefficient.
    order : ndarray of int, shape (p,)
        Orders of features.
    most : tuple of two floats
        Largest sum of squares of an order other than covariates, and of covariates.
    hidden : tuple of int
        Orders that may be hidden by noise.
    """
    penalty = np.zeros(len(first))
    squares = np.zeros(len(first))
    for group in np.unique(order[order > CONSTANT]):
        inside = order == group
        noise = float(variance[inside].mean())
        count = int(inside.sum())
        largest = most[int(group == LINEAR)] / (1 if group == SELECTED else count)
        signal = min(max(float((first[inside] ** 2).mean()) - noise, _LEAST_SIGNAL * noise), largest)
        penalty[inside] = float((variance[inside] * curvature[inside]).mean()) / signal
        hides = noise * sqrt(2 / count)
        squares[inside] = max(signal, min(hides, largest)) if group in hidden else signal
    return penalty, squares


def _fit(coefficients: Floats, bare: Floats, penalty: Floats, errors: Floats, squares: Floats) -> Fit:
    """Return the fit of penalised equations (bare + penalty) coefficients = sums with errors of this covariance."""
    inverse = np.linalg.inv(bare + np.diag(penalty))
    free = np.linalg.inv(bare)
    covariance = inverse @ (errors + np.diag(penalty**2 * squares)) @ inverse.T
    taken = free @ np.diag(penalty)
    shrinkage_map = taken @ inverse
    return Fit(
        coefficients=coefficients,
        covariance=covariance,
        left=taken @ coefficients,
        left_covariance=shrinkage_map @ errors @ shrinkage_map.T,
        freedom=float(np.trace(inverse @ bare)),
    )
