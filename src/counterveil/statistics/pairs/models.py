"""Propensity and outcome models fitted to released sums; nothing here reads private rows.

Coefficients are shrunk by orders of features, as far as noise and sampling explain their size (empirical Bayes). What
shrinkage leaves out of both models is estimated from the same sums: `Models.left_out`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from scipy.special import expit

from counterveil.numerics.arrays import Floats, Integers
from counterveil.statistics.pairs.rows import CONSTANT, CURVES, LINES, PRODUCTS, TREATED, PublicRows
from counterveil.statistics.pairs.sensitivity import LEAST_PROPENSITY

# Least squared size of coefficients that is allowed for, in parts of their variance.
_LEAST_SIGNAL = 0.02
# How much of the penalty that covariates call for is applied to treatment: what it leaves is confounding.
_TREATED_PENALTY = 0.25
# A curve or product stands out where its squared coefficients of all three models, in variances, add up to this (99.7%
# of chi-squared with 3 degrees of freedom); it is then kept in all of them, as an order of its own.
_STANDS_OUT, SELECTED = 14.0, 4
# Most that curves or products, or one that stands out, and then that covariates move: the variance of log odds, and the
# part of that of outcomes.
_MOST = {"log odds": (0.5, 4.0), "outcomes": (0.25, 1.0)}
# A ridge that keeps matrices regular, in parts of a row, and the largest log odds.
_TINY, _LARGEST = 1e-3, 8.0
_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Released sums of weighted features with A, A y and (1 - A) y, and the variances of their noise (3, p).

    Where propensities are known, the sums with A are expected ones, and have no noise.
    """

    values: Floats
    noise: Floats

    @classmethod
    def of(cls, released: Floats, variance: float, rows: PublicRows, known: Floats | None = None) -> Sums:
        """Return the sums of a released vector, without the scales of features and of treatment."""
        units = np.outer((float(TREATED), 1.0, 1.0), rows.scale)
        if known is None:
            return cls(released.reshape(3, -1) / units, variance / units**2)
        arms, expected = released.reshape(2, -1) / units[1:], rows.weighted.T @ known
        return cls(
            np.vstack([expected, arms]), np.vstack([np.zeros_like(units[0]), variance / units[1:] ** 2])
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients, the covariance of their errors, what shrinkage took from them and the covariance of that."""

    coefficients: Floats
    covariance: Floats
    left: Floats
    left_covariance: Floats
    freedom: float  # how many coefficients were fitted, counting shrunk ones in part


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Propensities and both arms' mean outcomes of every row, in halves of the range, with the fits behind them."""

    propensity: Floats
    treated: Floats
    control: Floats
    score: Fit | None  # None where the design fixes propensities
    arms: tuple[Fit, Fit]
    sd: float

    def at(self, places: Integers) -> Models:
        """Return the models of some rows."""
        e, one, other = (values[places] for values in (self.propensity, self.treated, self.control))
        return replace(self, propensity=e, treated=one, control=other)

    def fitted(self, arm: int | None) -> float:
        """Return by how much rows of an arm, or all, vary more than around models that were fitted to them."""
        shares = self.propensity, 1 - self.propensity
        kept = [place for place in (0, 1) if arm in (None, place)]
        rows = sum(float(shares[place].sum()) for place in kept)
        return rows / max(rows - sum(self.arms[place].freedom for place in kept), rows / 2)

    def products(self, weights: tuple[Floats, Floats], rows: PublicRows) -> tuple[float, float, float]:
        """Return the variance of the sum of products of both models' errors, and what shrinkage left, with its sd.

        `weights` are those of the products in both arms.
        """
        if self.score is None:
            return 0.0, 0.0, 0.0
        second = left = left_variance = 0.0
        for own, arm in zip(weights, self.arms, strict=True):
            gram = rows.gram(own)
            second += _trace(gram, arm.covariance, self.score.covariance)
            left += float(self.score.left @ gram @ arm.left)
            left_variance += _trace(gram, arm.left_covariance, self.score.left_covariance)
        return second, left, left_variance**0.5


def _trace(gram: Floats, one: Floats, other: Floats) -> float:
    return float(((gram @ one @ gram) * other).sum())


def fit_models(
    rows: PublicRows, sums: Sums, centre: float, reach: float, sd: float, known: Floats | None, constant: bool
) -> Models:
    """Return the models of released sums.

    Outcomes lie around `centre` with this standard deviation and were divided by `reach`, all in halves of the range; a
    standard deviation of 0 is that of events, which their share gives. `known` are propensities that the design fixes;
    with `constant` propensities are the same for all, and unknown.
    """
    score = None
    order = _orders(rows, sums, min((sd / reach) ** 2, 1.0) if sd else 1.0)
    if known is not None:
        propensity = known
    else:
        propensity, score = _share(rows, sums) if constant else _logistic(rows, sums, order)
        propensity = np.clip(propensity, LEAST_PROPENSITY, 1 - LEAST_PROPENSITY)
    if not sd:
        whole = float(sums.values[1, 0] + sums.values[2, 0]) / float(rows.weighted[:, 0] @ rows.z[:, 0])
        share = min(max((1 + whole) / 2, 2e-3), 1 - 2e-3)
        sd = 2 * (share * (1 - share)) ** 0.5
    spread = min((sd / reach) ** 2, 1.0)
    fits = tuple(
        _linear(rows, own, sums.values[place], sums.noise[place], spread, order)
        for place, own in ((1, propensity), (2, 1 - propensity))
    )
    low, high = max(-1.0, centre - reach), min(1.0, centre + reach)
    means = [np.clip(centre + reach * (rows.z @ fit.coefficients), low, high) for fit in fits]
    first, second = (
        Fit(
            f.coefficients * reach,
            f.covariance * reach**2,
            f.left * reach,
            f.left_covariance * reach**2,
            f.freedom,
        )
        for f in fits
    )
    return Models(propensity, means[0], means[1], score, (first, second), sd)


def _orders(rows: PublicRows, sums: Sums, spread: float) -> Integers:
    """Return the orders of features, with one of their own for curves and products that stand out of their noise."""
    weighted, whole = rows.weighted, rows.gram(rows.weight)
    share = min(max(float(sums.values[0, 0]) / whole[0, 0], 0.03), 0.97)
    squares = np.zeros(len(rows.order))
    for place, (part, own) in enumerate(
        ((share * (1 - share),) * 2, (share, share * spread), (1 - share, (1 - share) * spread))
    ):
        target = sums.values[place] - (share * weighted.sum(axis=0) if place == 0 else 0.0)
        first, variance = _alone(part * whole, target, np.diag(sums.noise[place]) + own * whole, rows.order)
        squares += first**2 / variance
    return np.where((rows.order >= CURVES) & (squares > _STANDS_OUT), SELECTED, rows.order)


def _share(rows: PublicRows, sums: Sums) -> tuple[Floats, Fit]:
    """Return the share treated as everyone's propensity; its error is that of one coefficient."""
    weight = rows.weighted[:, 0]
    size, p = float(weight.sum()), rows.z.shape[1]
    share = min(max(float(sums.values[0, 0]) / size, LEAST_PROPENSITY), 1 - LEAST_PROPENSITY)
    curvature = share * (1 - share)
    covariance = np.zeros((p, p))
    covariance[0, 0] = (float(sums.noise[0, 0]) + curvature * float((weight**2).sum())) / (
        curvature * size
    ) ** 2
    nothing = np.zeros(p)
    return np.full(len(rows.z), share), Fit(nothing, covariance, nothing, np.zeros((p, p)), 1.0)


def _logistic(rows: PublicRows, sums: Sums, order: Integers) -> tuple[Floats, Fit]:
    """Return propensities of the logistic model whose weighted sums are the released ones, and its fit."""
    z, weighted, target, noise = rows.z, rows.weighted, sums.values[0], sums.noise[0]
    whole = rows.gram(rows.weight)
    share = min(max(float(target[0]) / whole[0, 0], 0.03), 0.97)
    flat = share * (1 - share)
    centred = target - share * weighted.sum(axis=0)
    first, own = _alone(flat * whole, centred, np.diag(noise) + flat * whole, order)
    penalty, squares = _penalties(first, own, flat * np.diag(whole), order, _MOST["log odds"])
    penalty = np.where(order == LINES, _TREATED_PENALTY, 1.0) * penalty
    found = np.zeros(z.shape[1])
    found[0] = log(share / (1 - share))
    for _ in range(_STEPS):
        e = expit(np.clip(z @ found, -_LARGEST, _LARGEST))
        bare = rows.gram(rows.weight * e * (1 - e)) + _TINY * np.eye(len(found))
        step = np.linalg.solve(bare + np.diag(penalty), target - weighted.T @ e - penalty * found)
        largest = float(np.abs(z @ step).max())
        found = found + step * min(1.0, 2.0 / max(largest, 1e-12))
        if largest < 1e-4:
            break
    e = expit(np.clip(z @ found, -_LARGEST, _LARGEST))
    bare = rows.gram(rows.weight * e * (1 - e)) + _TINY * np.eye(len(found))
    return e, _fit(found, bare, penalty, np.diag(noise) + bare, squares)


def _linear(
    rows: PublicRows, share: Floats, target: Floats, noise: Floats, spread: float, order: Integers
) -> Fit:
    """Return the regression of one arm's outcomes, of which about the `share` of every row is in the sums."""
    gram = rows.gram(rows.weight * share) + _TINY * np.eye(len(target))
    errors = np.diag(noise) + spread * gram
    first, own = _alone(gram, target, errors, order)
    most = (spread * _MOST["outcomes"][0], spread * _MOST["outcomes"][1])
    penalty, squares = _penalties(first, own, np.diag(gram), order, most)
    found = np.asarray(np.linalg.solve(gram + np.diag(penalty), target), np.float64)
    return _fit(found, gram, penalty, errors, squares)


def _alone(gram: Floats, target: Floats, errors: Floats, order: Integers) -> tuple[Floats, Floats]:
    """Return coefficients and their variances: of covariates together, of every other feature beside covariates alone.

    Sums `target` have errors of this covariance around `gram` times the coefficients.
    """
    base = order <= LINES
    inverse, others = np.linalg.inv(gram[np.ix_(base, base)]), np.flatnonzero(~base)
    solving, curvature = np.eye(len(target)), np.ones(len(target))
    solving[np.ix_(base, base)] = inverse
    solving[np.ix_(others, base)] = -gram[np.ix_(others, base)] @ inverse
    curvature[others] = (solving @ gram)[others, others]
    variance = ((solving @ errors) * solving).sum(axis=1)
    return solving @ target / curvature, variance / curvature**2


def _penalties(
    first: Floats, own: Floats, curvature: Floats, order: Integers, most: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return ridge penalties and the squared sizes of coefficients that they stand for, one for each order.

    `first` are coefficients without a penalty, with variances `own`; sums are about `curvature` times a coefficient.
    """
    penalty, squares = np.zeros(len(first)), np.zeros(len(first))
    for one in np.unique(order[order > CONSTANT]):
        at = order == one
        noise, count = float(own[at].mean()), int(at.sum())
        # Curves and products count as far as they exceed what noise alone makes of their mean square.
        margin = noise * sqrt(2 / count) if one in (CURVES, PRODUCTS) else 0.0
        square = max(float((first[at] ** 2).mean()) - noise - margin, _LEAST_SIGNAL * noise)
        square = min(square, most[int(one == LINES)] / (1 if one == SELECTED else count))
        penalty[at], squares[at] = float((own[at] * curvature[at]).mean()) / square, square
    return penalty, squares


def _fit(found: Floats, bare: Floats, penalty: Floats, errors: Floats, squares: Floats) -> Fit:
    """Return the fit of penalised equations (bare + penalty) found = sums with errors of this covariance."""
    inverse, free = np.linalg.inv(bare + np.diag(penalty)), np.linalg.inv(bare)
    covariance = inverse @ (errors + np.diag(penalty**2 * squares)) @ inverse.T
    taken = free @ np.diag(penalty)
    left = taken @ inverse
    return Fit(found, covariance, taken @ found, left @ errors @ left.T, float(np.trace(inverse @ bare)))
