"""Effects where a row's treatment and its outcomes are private together, covariates and their order being public.

Three releases: the place of outcomes (none for outcomes from 0 to 1), one vector for propensities and both arms'
mean outcomes, and the sums of an orthogonal score and of its squares. Doubly robust scores: Robins, Rotnitzky and Zhao
(1994); overlap weights: Li, Morgan and Zaslavsky (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp, isqrt, log, sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.special import expit

from counterveil.data import OUTCOME_STEPS, Range, Study, Table
from counterveil.data.features import covariate_features, require_covariates
from counterveil.errors import refusal
from counterveil.estimators.linear.functions import (
    BALL_TAIL,
    FALL,
    basis_groups,
    first_size,
    higher,
    largest_basis,
    slab,
    too_many,
)
from counterveil.estimators.outcome_place import (
    OUTCOME_BITS,
    PLACE_WORDS,
    PLACES,
    WHOLE,
    Outcomes,
    Place,
    Spread,
    find_place,
)
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import WholeSum, blocks
from counterveil.numerics.shrinkage import spike_and_slab
from counterveil.privacy import Budget, Estimand
from counterveil.privacy.caveats import Caveat, Fact, LinearScores, OutcomesAtEnds
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import ArmsResult, OutcomeEffect, OutcomesResult
from counterveil.results.effect import Effect, Linear
from counterveil.results.functions import (
    PLAUSIBLE,
    TYPICAL_SD,
    CateModel,
    CateQuestion,
    Unshrunk,
    fall_back_to_average,
    is_worthwhile,
)
from counterveil.results.measures import OF_MEANS, Numbers
from counterveil.results.question import Question, design_says
from counterveil.results.result import MeasureResult, Result
from counterveil.rows.pairs.sensitivity import (
    LEAST_PROPENSITY,
    MODEL_PARTS,
    MOST_LEFT,
    OCTAVES,
    PLACE_PART,
    WIDEST,
)
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.settings import Series

# Proof: pair_moments.proof.md
#
# Covariates being public, sums of features with treatments are all that a logistic regression needs, and sums with the
# outcomes of either arm all that a linear one needs: one noisy vector holds three models.


# Fractional digits of features.
FEATURE_BITS = 16
# A rational just below the root of two: what a change of treatment weighs.
TREATED = Fraction(181, 128)
# What a step of an outcome is.
_OUTCOME = Fraction(1, 1 << OUTCOME_BITS)
# How far a change of treatment and outcome moves (TREATED A, A y, (1 - A) y), or arms' indicators and outcomes in them.
PAIR_LENGTH = Fraction(2)
# Orders of features: the constant; covariates; squares and hinges of numbers; products of two covariates.
CONSTANT, LINEAR, NONLINEAR, INTERACTIONS = range(4)
# Standard deviations at which numbers are cut, before squares and before products.
_CUT, _PRODUCT_CUT = 4.0, 3.0
# A column counts where the columns before it leave this part of its length, and where no few rows carry it.
# One that they leave less than `_DEPENDENT` of depends on them but for rounding.
_LEAST_NEW, _MOST_CARRIED, _DEPENDENT = 0.05, 0.05, 1e-9
# Scale of curves and products, the most that either take beside the squared scales of covariates, and the squared scale
# of the constant beside all others: noise is least on the constant and most on products.
_SCALE, _ROOM, _CONSTANT_PART = 0.7, 0.35, 0.5
# Most features, fewest rows for each of them, and most numbers in all: they are held in memory.
MOST_FEATURES, ROWS_A_FEATURE, MOST_NUMBERS = 250, 5, 40_000_000
Orders = tuple[int, ...]
Places = Integers | slice


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """Features z (n, p) with sum z z' = n I, their orders and scales, and every row's weight.

    No row of `steps` is longer than `length` times 2**16. Models are supposed to have what noise hides of the
    coefficients of `hidden` orders.
    """

    z: Floats
    order: Integers
    scale: Floats
    weight: Floats
    length: Fraction
    hidden: Orders = ()

    def at(self, places: Places) -> PublicRows:
        """Return some of the rows."""
        return replace(self, z=self.z[places], weight=self.weight[places])

    def steps(self, part: slice) -> Integers:
        """Return the whole numbers nearest to 2**16 times weight, scale and z of some rows."""
        return _steps(self.z[part] * self.scale, self.weight[part])

    def along(self, weights: Floats) -> Floats:
        """Return the sum of weights times z."""
        return np.asarray(sum(weights[part] @ self.z[part] for part in blocks(len(self.weight))))

    def gram(self, weights: Floats) -> Floats:
        """Return the sum of weights times z z'."""
        total = np.zeros((self.z.shape[1],) * 2)
        for part in blocks(len(self.weight)):
            rooted = self.z[part] * np.sqrt(weights[part])[:, None]
            total += rooted.T @ rooted
        return total


def _steps(scaled: Floats, weight: Floats) -> Integers:
    return np.asarray(np.rint(scaled * weight[:, None] * 2**FEATURE_BITS), np.int64)


def feature_sets(table: Table) -> tuple[PublicRows, ...]:
    """Return the features by their richness: covariates, with curves, with products, as far as rows suffice."""
    most = min(MOST_FEATURES, table.rows // ROWS_A_FEATURE, MOST_NUMBERS // max(table.rows, 1))
    columns = list(_columns(table, most))
    if len(columns) > most:
        return ()
    order = np.array([own for own, _ in columns])
    matrix = np.array([values for _, values in columns]).T
    del columns
    z, order = _white(matrix, order)
    sizes = sorted({int((order <= one).sum()) for one in (LINEAR, NONLINEAR, INTERACTIONS)})
    return tuple(_public_rows(z[:, :size], order[:size]) for size in sizes)


def _columns(table: Table, most: int) -> Iterator[tuple[int, Floats]]:
    """Yield the columns and their orders: the constant, covariates, squares and hinges, products if not too many."""
    yield CONSTANT, np.ones(table.rows)
    if not table.study.covariates:
        return
    features = covariate_features(table)
    lines, domains = features.values, np.array(features.domains, dtype=object)
    spread = np.array([column.std() for column in lines.T])
    if not spread.all():
        lines, domains, spread = lines[:, spread > 0], domains[spread > 0], spread[spread > 0]
    lines /= spread
    numeric = [isinstance(domain, Range) for domain in domains]
    for column, number in zip(lines.T, numeric, strict=True):
        yield LINEAR, np.clip(column, -_CUT, _CUT, out=column) if number else column
    size = lines.shape[1]
    if 1 + size + 3 * sum(numeric) > most:
        return
    for column in lines[:, numeric].T:
        low, high = np.quantile(column, (1 / 3, 2 / 3))
        yield NONLINEAR, column**2
        yield NONLINEAR, np.maximum(column - high, 0.0)
        yield NONLINEAR, np.maximum(low - column, 0.0)
    if 1 + size + 3 * sum(numeric) + size * (size - 1) // 2 > most:
        return
    bounded = np.clip(lines, -_PRODUCT_CUT, _PRODUCT_CUT)
    for place in range(size):
        for other in range(place):
            yield INTERACTIONS, bounded[:, place] * bounded[:, other]


def _white(matrix: Floats, order: Integers) -> tuple[Floats, Integers]:
    """Return the columns in turn, each without what those before it hold, at mean square one, and their orders.

    They take the matrix's place.
    """
    length = np.array([sqrt(float(column @ column)) for column in matrix.T])
    z, r = qr(matrix, overwrite_a=True, mode="economic")
    if (dependent := np.abs(np.diag(r)) <= _DEPENDENT * length).any():
        # Near-dependent columns leave a residual of rounding error. Drop them before the QR so that it does not
        # become a basis vector.
        return _white(z @ r[:, ~dependent], order[~dependent])
    z *= sqrt(len(matrix)) * np.where(np.diag(r) < 0, -1.0, 1.0)
    kept = np.abs(np.diag(r)) > _LEAST_NEW * length
    kept &= [float(((c * c) ** 2).mean()) < max(_MOST_CARRIED * len(matrix), 3.0) for c in z.T]
    kept[0] = True
    return (z, order) if kept.all() else (z[:, kept], order[kept])


def _public_rows(z: Floats, order: Integers) -> PublicRows:
    scale = np.ones(len(order))
    lines = order == LINEAR
    for more in (order == NONLINEAR, order == INTERACTIONS):
        room = _ROOM * int(lines.sum()) / max(int(more.sum()), 1)
        scale[more] = min(_SCALE, sqrt(room))
    scale[0] = max(1.0, sqrt(_CONSTANT_PART * float((scale[1:] ** 2).sum())))
    return shortened(z, order, scale)


def shortened(z: Floats, order: Integers, scale: Floats) -> PublicRows:
    """Return features of these scales, with less weight for rows that are longer than rows are on average."""
    longest, squares = sqrt(float((scale**2).sum())), 0
    weight = np.empty(z.shape[0])
    for part in blocks(len(weight)):
        scaled = z[part] * scale
        lengths = np.sqrt((scaled**2).sum(axis=1))
        weight[part] = np.minimum(1.0, longest / np.maximum(lengths, 1e-9))
        squares = max(squares, _longest(_steps(scaled, weight[part])))
    # The length of the longest row, rounded up; rows are public.
    return PublicRows(z, order, scale, weight, sqrt_up(Fraction(squares, 1 << 2 * FEATURE_BITS)))


def _longest(steps: Integers) -> int:
    return int((steps**2).sum(axis=1).max())


def pair_sums(
    rows: PublicRows,
    treated: NDArray[np.bool_],
    outcomes: Sequence[tuple[Integers, Place]],
    known: bool = False,
) -> list[Fraction]:
    """Return sums of features times A, unless its chance is known, and times A y and (1 - A) y of every outcome.

    With one outcome a change of treatment weighs TREATED, with several the root of their number times that.
    """

    def pairs(part: slice) -> Integers:
        own = treated[part]
        found = [] if known else [own.astype(np.int64)]
        for outcome, place in outcomes:
            y = place.fixed(outcome[part])
            found += [np.where(own, y, 0), np.where(own, 0, y)]
        return np.column_stack(found)

    units = (_OUTCOME,) * (2 * len(outcomes))
    return summed(rows, pairs, units if known else (TREATED * _root(len(outcomes)), *units))


def _root(outcomes: int) -> Fraction:
    """Return a rational no more than the root of the number of outcomes, and just below it where there are several."""
    return Fraction(isqrt(outcomes << 20), 1 << 10)


def arm_sums(
    rows: PublicRows, arm: NDArray[np.intp], arms: int, outcome: Integers, place: Place
) -> list[Fraction]:
    """Return sums of features times every arm's indicator, then times indicator and outcome, as exact numbers."""

    def pairs(part: slice) -> Integers:
        inside = (arm[part, None] == np.arange(arms)).astype(np.int64)
        return np.column_stack([inside, inside * place.fixed(outcome[part])[:, None]])

    return summed(rows, pairs, (Fraction(1),) * arms + (_OUTCOME,) * arms)


def summed(rows: PublicRows, pairs: Callable[[slice], Integers], units: Sequence[Fraction]) -> list[Fraction]:
    """Return sums of features times columns of whole numbers in these units, column by column."""
    total = WholeSum()
    for part in blocks(len(rows.weight)):
        total.add(rows.steps(part).T @ pairs(part))
    each = [unit / (1 << FEATURE_BITS) for unit in units]
    return [unit * int(value) for unit, column in zip(each, total.whole().T, strict=True) for value in column]


def pair_sensitivity(rows: PublicRows, outcomes: int = 1) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced row, of so many outcomes, moves the sums."""
    return PAIR_LENGTH * rows.length * sqrt_up(Fraction(outcomes))


# Propensity and outcome models fitted to released sums; nothing here reads private rows.
#
# Coefficients are shrunk by orders of features, as far as noise and sampling explain their size (empirical Bayes).
# What shrinkage leaves out of both models is estimated from the same sums: `Models.left_out`.


# Least squared size of coefficients that is allowed for, in parts of their variance.
_LEAST_SIGNAL = 0.02
# How much of the penalty that covariates and curves call for is applied to treatment: what it leaves is confounding.
_TREATED_PENALTY = 0.25
# A curve or product stands out where its squared coefficients of all three models, in variances, add up to this (99.7%
# of chi-squared with 3 degrees of freedom); it is then kept in all of them, as an order of its own.
_STANDS_OUT, SELECTED = 14.0, 4
# Most that curves or products, or one that stands out, and then that covariates move: the variance of log odds, and the
# part of that of outcomes.
_MOST = {"log odds": (0.5, 4.0), "outcomes": (0.25, 1.0)}
# Squared error of what corrects models for clipped outcomes, in squares of the correction.
_SHORT = 2.0
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
    def of(
        cls,
        released: Floats,
        variance: float,
        rows: PublicRows,
        known: Floats | None = None,
        outcomes: int = 1,
    ) -> Sums:
        """Return the sums of a released vector, without the scales of features and of treatment."""
        units = np.outer((float(TREATED), 1.0, 1.0), rows.scale)
        if known is None:
            more = np.array([[float(_root(outcomes))], [1.0], [1.0]])
            return cls(released.reshape(3, -1) / more / units, variance / units**2 / more**2)
        arms, expected = released.reshape(2, -1) / units[1:], rows.z.T @ (rows.weight * known)
        noise = np.vstack([np.zeros_like(units[0]), variance / units[1:] ** 2])
        return cls(np.vstack([expected, arms]), noise)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients, the covariance of their errors, what shrinkage took from them and the covariance of that."""

    coefficients: Floats
    covariance: Floats
    left: Floats
    left_covariance: Floats
    freedom: float  # how many coefficients were fitted, counting shrunk ones in part

    def times(self, by: float, errs: float) -> Fit:
        """Return the fit times a number that errs by so much of its square."""
        own = self.covariance + errs * np.outer(self.coefficients, self.coefficients)
        left, apart = by * self.left, by**2 * self.left_covariance
        return Fit(by * self.coefficients, by**2 * own, left, apart, self.freedom)


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """Propensities and both arms' mean outcomes of every row, in halves of the range, with the fits behind them.

    `modelled` are propensities before they were kept away from 0 and 1, where they were.
    """

    propensity: Floats
    treated: Floats
    control: Floats
    score: Fit | None  # None where the design fixes propensities
    arms: tuple[Fit, Fit]
    sd: float
    modelled: Floats | None = None

    def at(self, places: Places) -> Models:
        """Return the models of some rows."""
        e, one, other = (values[places] for values in (self.propensity, self.treated, self.control))
        modelled = None if self.modelled is None else self.modelled[places]
        return replace(self, propensity=e, treated=one, control=other, modelled=modelled)

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
        second, variance, along = 0.0, 0.0, np.zeros(rows.z.shape[1])
        for own, arm in zip(weights, self.arms, strict=True):
            gram = rows.gram(own)
            second += float(((gram @ arm.covariance @ gram) * self.score.covariance).sum())
            along += gram @ arm.left
            moved = gram @ self.score.left
            variance += float(moved @ arm.left_covariance @ moved)
        # If the product is nothing, one factor is: what is left of it is noise, which the other factor multiplies.
        variance = max(variance, float(along @ self.score.left_covariance @ along))
        return second, float(self.score.left @ along), sqrt(variance)


def fit_models(rows: PublicRows, sums: Sums, spread: Spread, known: Floats | None, constant: bool) -> Models:
    """Return the models of released sums.

    A standard deviation of 0 is that of events, which their share gives. `known` are propensities that the design
    fixes; with `constant` propensities are the same for all, and unknown.
    """
    score = modelled = None
    centre, half_width, sd = spread.centre, spread.half_width, spread.sd
    order = _orders(rows, sums, min((sd / half_width) ** 2, 1.0) if sd else 1.0)
    if known is not None:
        propensity = known
    else:
        modelled, score = _share(rows, sums) if constant else _logistic(rows, sums, order)
        propensity = np.clip(modelled, LEAST_PROPENSITY, 1 - LEAST_PROPENSITY)
        modelled = None if np.array_equal(modelled, propensity) else modelled
    if not sd:
        whole = float(sums.values[1, 0] + sums.values[2, 0]) / float(rows.weight @ rows.z[:, 0] ** 2)
        share = min(max((1 + whole) / 2, 2e-3), 1 - 2e-3)
        sd = 2 * (share * (1 - share)) ** 0.5
    varies = min((sd / half_width) ** 2, 1.0)
    fits = tuple(
        _linear(rows, own, sums.values[place], sums.noise[place], varies, order)
        for place, own in ((1, propensity), (2, 1 - propensity))
    )
    # Clipped outcomes are shorter than they were, which the models correct: on average, and by about as much again.
    half_width, short = half_width * spread.stretch, _SHORT * (1 - 1 / spread.stretch) ** 2
    low, high = max(-1.0, centre - half_width), min(1.0, centre + half_width)
    means = [np.clip(centre + half_width * (rows.z @ fit.coefficients), low, high) for fit in fits]
    first, second = (f.times(half_width, short) for f in fits)
    return Models(propensity, means[0], means[1], score, (first, second), sd, modelled)


def _orders(rows: PublicRows, sums: Sums, spread: float) -> Integers:
    """Return the orders of features, with one of their own for curves and products that stand out of their noise."""
    sizes, whole = rows.weight @ rows.z, rows.gram(rows.weight)
    share = min(max(float(sums.values[0, 0]) / whole[0, 0], 0.03), 0.97)
    squares = np.zeros(len(rows.order))
    for place, (part, own) in enumerate(
        ((share * (1 - share),) * 2, (share, share * spread), (1 - share, (1 - share) * spread))
    ):
        target = sums.values[place] - (share * sizes if place == 0 else 0.0)
        first, variance = _alone(part * whole, target, np.diag(sums.noise[place]) + own * whole, rows.order)
        squares += first**2 / variance
    return np.where((rows.order >= NONLINEAR) & (squares > _STANDS_OUT), SELECTED, rows.order)


def _share(rows: PublicRows, sums: Sums) -> tuple[Floats, Fit]:
    """Return the share treated as everyone's propensity; its error is that of one coefficient."""
    weight = rows.weight * rows.z[:, 0]
    size, p = float(weight.sum()), rows.z.shape[1]
    share = min(max(float(sums.values[0, 0]) / size, LEAST_PROPENSITY), 1 - LEAST_PROPENSITY)
    curvature = share * (1 - share)
    covariance = np.zeros((p, p))
    variance = float(sums.noise[0, 0]) + curvature * float((weight**2).sum())
    covariance[0, 0] = variance / (curvature * size) ** 2
    nothing = np.zeros(p)
    return np.full(len(rows.z), share), Fit(nothing, covariance, nothing, np.zeros((p, p)), 1.0)


def _logistic(rows: PublicRows, sums: Sums, order: Integers) -> tuple[Floats, Fit]:
    """Return propensities of the logistic model whose weighted sums are the released ones, and its fit."""
    z, target, noise = rows.z, sums.values[0], sums.noise[0]
    whole = rows.gram(rows.weight)
    share = min(max(float(target[0]) / whole[0, 0], 0.03), 0.97)
    flat = share * (1 - share)
    centred = target - share * (rows.weight @ z)
    first, own = _alone(flat * whole, centred, np.diag(noise) + flat * whole, order)
    penalty, squares = _penalties(first, own, flat * np.diag(whole), order, _MOST["log odds"], rows.hidden)
    penalty = np.where(order <= NONLINEAR, _TREATED_PENALTY, 1.0) * penalty
    found = np.zeros(z.shape[1])
    found[0] = log(share / (1 - share))
    for _ in range(_STEPS):
        e = expit(np.clip(z @ found, -_LARGEST, _LARGEST))
        bare = rows.gram(rows.weight * e * (1 - e)) + _TINY * np.eye(len(found))
        step = np.linalg.solve(bare + np.diag(penalty), target - (rows.weight * e) @ z - penalty * found)
        largest = float(np.abs(z @ step).max())
        found = found + step * min(1.0, 2.0 / max(largest, 1e-12))
        if largest < 1e-4:
            break
    e = expit(np.clip(z @ found, -_LARGEST, _LARGEST))
    bare = rows.gram(rows.weight * e * (1 - e)) + _TINY * np.eye(len(found))
    return e, _fit(found, bare, penalty, np.diag(noise) + bare, squares)


def released_propensities(
    gate: Gate, name: str, rows: PublicRows, treated: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return every row's propensity from released sums, and the covariance of its log odds' coefficients from noise."""

    def sums() -> list[Fraction]:
        return summed(rows, lambda part: treated[part, None].astype(np.int64), (Fraction(1),))

    released = gate.release_vector(name, sums, rows.length)
    own = Sums(released.floats()[None] / rows.scale, released.variance / rows.scale[None] ** 2)
    e, _ = _logistic(rows, own, rows.order)
    inverse = np.linalg.inv(rows.gram(rows.weight * e * (1 - e)) + _TINY * np.eye(len(rows.scale)))
    return e, np.asarray(inverse @ np.diag(own.noise[0]) @ inverse)


def _linear(
    rows: PublicRows, share: Floats, target: Floats, noise: Floats, spread: float, order: Integers
) -> Fit:
    """Return the regression of one arm's outcomes, of which about the `share` of every row is in the sums."""
    gram = rows.gram(rows.weight * share) + _TINY * np.eye(len(target))
    errors = np.diag(noise) + spread * gram
    first, own = _alone(gram, target, errors, order)
    most = (spread * _MOST["outcomes"][0], spread * _MOST["outcomes"][1])
    penalty, squares = _penalties(first, own, np.diag(gram), order, most, rows.hidden)
    found = np.asarray(np.linalg.solve(gram + np.diag(penalty), target), np.float64)
    return _fit(found, gram, penalty, errors, squares)


def _alone(gram: Floats, target: Floats, errors: Floats, order: Integers) -> tuple[Floats, Floats]:
    """Return coefficients and their variances: of covariates together, of every other feature beside covariates alone.

    Sums `target` have errors of this covariance around `gram` times the coefficients.
    """
    base = order <= LINEAR
    inverse, others = np.linalg.inv(gram[np.ix_(base, base)]), np.flatnonzero(~base)
    solving, curvature = np.eye(len(target)), np.ones(len(target))
    solving[np.ix_(base, base)] = inverse
    solving[np.ix_(others, base)] = -gram[np.ix_(others, base)] @ inverse
    curvature[others] = (solving @ gram)[others, others]
    variance = ((solving @ errors) * solving).sum(axis=1)
    return solving @ target / curvature, variance / curvature**2


def _penalties(
    first: Floats, own: Floats, curvature: Floats, order: Integers, most: tuple[float, float], hidden: Orders
) -> tuple[Floats, Floats]:
    """Return ridge penalties and squared sizes that coefficients may have, one for each order.

    `first` are coefficients without a penalty, with variances `own`; sums are about `curvature` times a coefficient.
    Sizes of `hidden` orders are no less than what noise hides: a mean square of one of its standard deviations.
    """
    penalty, squares = np.zeros(len(first)), np.zeros(len(first))
    for one in np.unique(order[order > CONSTANT]):
        at = order == one
        noise, count = float(own[at].mean()), int(at.sum())
        largest, hides = most[int(one == LINEAR)] / (1 if one == SELECTED else count), noise * sqrt(2 / count)
        square = min(max(float((first[at] ** 2).mean()) - noise, _LEAST_SIGNAL * noise), largest)
        penalty[at] = float((own[at] * curvature[at]).mean()) / square
        squares[at] = max(square, min(hides, largest)) if one in hidden else square
    return penalty, squares


def _fit(found: Floats, bare: Floats, penalty: Floats, errors: Floats, squares: Floats) -> Fit:
    """Return the fit of penalised equations (bare + penalty) found = sums with errors of this covariance."""
    inverse, free = np.linalg.inv(bare + np.diag(penalty)), np.linalg.inv(bare)
    covariance = inverse @ (errors + np.diag(penalty**2 * squares)) @ inverse.T
    taken = free @ np.diag(penalty)
    left = taken @ inverse
    return Fit(found, covariance, taken @ found, left @ errors @ left.T, float(np.trace(inverse @ bare)))


# Proof: pair_scores.proof.md
#
# A row's score is a line in its outcome for either arm, with coefficients of public and released numbers, in whole
# numbers.


# Scores are whole numbers in [-2**18, 2**18]; slopes have 8 digits more. An outcome has 23 digits from the middle on.
SCORE_BITS, _SLOPE_BITS, _MIDDLE = 18, 8, OUTCOME_STEPS // 2
_SHIFT = _SLOPE_BITS + 23
# Largest slope and offset, in clips.
_STEEPEST = 1024.0
# What is released of scores: the weight of squares beside sums, and how far a replaced pair moves both in all.
Form = tuple[Fraction, Fraction]
# One score a row; and a score for the mean of either arm, zero in the rows of the other one.
WHOLE_SCORES: Form = (Fraction(1, 2), Fraction(2))
ARM_SCORES: Form = (Fraction(1, 4), Fraction(5, 2))
# Largest weights that are tried, for estimands whose weights have no bound.
_CAPS = tuple(round(2.5 * 2 ** (k / 4), 2) for k in range(18))
# Rows on which the expected loss by a clip is computed.
_SAMPLE = 400
# How much of that loss does not cancel between the arms and sides, and the systematic error of a model where weights
# are capped, in standard deviations of outcomes: beside fitted propensities and beside known ones.
_ONE_SIDED, _MODEL_ERROR = (0.7, 1.0), (0.25, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """How an estimand weights rows of these propensities; weights are made when they are read, and not held.

    With an `arm`, 0 for the treated and 1 for controls, whose mean with a minus, the other one weighs nothing.
    """

    estimand: Estimand
    propensity: Floats
    arm: int | None = None

    @property
    def tilt(self) -> Floats:
        """The tilt of all rows."""
        e = self.propensity
        if self.estimand is Estimand.ATE:
            return np.ones(len(e))
        return {Estimand.ATT: e, Estimand.ATC: 1 - e, Estimand.ATO: e * (1 - e)}[self.estimand]

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The weights of both arms."""
        return self._of_arm(self.tilt / self.propensity, self.tilt / (1 - self.propensity))

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """The weights of products of errors in both arms."""
        e, nothing = self.propensity, np.zeros(len(self.propensity))
        return self._of_arm(
            *{
                Estimand.ATE: (1 - e, e),
                Estimand.ATT: (nothing, e),
                Estimand.ATC: (1 - e, nothing),
                Estimand.ATO: (e**2 * (1 - e), e * (1 - e) ** 2),
            }[self.estimand]
        )

    def _of_arm(self, one: Floats, other: Floats) -> tuple[Floats, Floats]:
        return (
            one if self.arm in (None, 0) else np.zeros(len(one)),
            other if self.arm in (None, 1) else np.zeros(len(other)),
        )

    def of_arm(self, arm: int) -> Target:
        """Return the part of one arm; what both make together is the effect of everyone."""
        return replace(self, arm=arm)

    def sizes(self) -> tuple[float, float]:
        """Return both arms' effective numbers of rows."""
        e, size = self.propensity, float(self.tilt.sum())
        one, other = (float(own @ w**2) for own, w in zip((e, 1 - e), self.weights, strict=True))
        return size**2 / one, size**2 / other

    def start(self, models: Models) -> float:
        """Return what the models say."""
        parts = models.treated, -models.control
        tilt = self.tilt
        return float(tilt @ (sum(parts) if self.arm is None else parts[self.arm])) / float(tilt.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Lines slope y + offset of either arm, treated first, cut to `clip` around `middle`; y is in [-1, 1].

    The effect is `start` plus the sum of scores over `size`. The clip is expected to `lose` so much, and by outcomes
    that noise may hide, whose squared scores add up to `hidden_squares`, `hidden` more.
    """

    slopes: tuple[Floats, Floats]
    offsets: tuple[Floats, Floats]
    middle: float
    clip: float
    start: float
    size: float
    lose: float = 0.0
    hidden: float = 0.0
    hidden_squares: float = 1.0
    capped: float = 0.0  # variance by capped weights

    def lost(self, squares: float) -> float:
        """Return what the clip loses where squared scores add up to so much: clipped ones are as large as can be."""
        return self.lose + self.hidden * min(max(squares, 0.0) / self.hidden_squares, 1.0)

    def sums(
        self, treated: NDArray[np.bool_], outcome: Integers, form: Form = WHOLE_SCORES
    ) -> list[Fraction]:
        """Return the sums of v and of v^2 with its weight, v being a row's score in parts of the clip."""
        one, total, squares = 1 << SCORE_BITS, 0, 0
        for part in blocks(len(outcome)):
            v = self.values(treated, outcome, part)
            total, squares = total + int(v.sum()), squares + int((v * v).sum())
        return [Fraction(total, one), form[0] * Fraction(squares, one * one)]

    def values(self, treated: NDArray[np.bool_], outcome: Integers, part: slice = slice(None)) -> Integers:
        """Return the scores of some rows in whole numbers, clipped."""
        (slope1, offset1), (slope0, offset0) = self._lines(part)
        moved = outcome[part] - _MIDDLE
        raw = np.where(treated[part], slope1 * moved + offset1, slope0 * moved + offset0)
        one = 1 << SCORE_BITS
        return np.asarray(np.clip((raw + (1 << (_SHIFT - 1))) >> _SHIFT, -one, one))

    def _lines(self, part: slice) -> list[tuple[Integers, Integers]]:
        """Return slopes and offsets of both arms in whole numbers; made of public and released numbers."""
        found = []
        for slope, offset in zip(self.slopes, self.offsets, strict=True):
            both = ((slope[part], _SLOPE_BITS), (offset[part] - self.middle, _SHIFT))
            steep, high = (
                np.rint(np.clip(one / self.clip, -_STEEPEST, _STEEPEST) * 2.0 ** (SCORE_BITS + bits))
                for one, bits in both
            )
            found.append((steep.astype(np.int64), high.astype(np.int64)))
        return found


def best_scores(rows: PublicRows, models: Models, spread: Spread, target: Target, noise: float) -> Scores:
    """Return the scores with the cap of weights and the clip of least expected error; reads no private row.

    `noise` is the variance of the released sum of scores with clip 1.
    """
    e, size, start = models.propensity, float(target.tilt.sum()), target.start(models)
    best: tuple[float, Scores] | None = None
    known = int(models.score is None)
    # Lines may miss rare events by as much as their share.
    error = models.sd * (models.sd / 2 if spread.distances is None else _MODEL_ERROR[known])
    # People of a weight beyond what propensities are kept within are corrected in part.
    likely = e if models.modelled is None else models.modelled
    whole = target.weights
    most, share, errors = _some(rows, models, whole)
    largest = max(float(one.max()) for one in whole)
    for cap in [*(cap for cap in _CAPS if cap < largest), largest]:
        weights = tuple(np.minimum(one, cap) for one in whole)
        missed = e * whole[0] - likely * weights[0], (1 - e) * whole[1] - (1 - likely) * weights[1]
        capped = error**2 * float(sum(np.abs(miss).sum() ** 2 for miss in missed))
        for miss, fit in zip(missed, models.arms, strict=True):
            along = rows.z[miss != 0].T @ miss[miss != 0]
            # What shrinkage took is mostly noise, whose part the covariance of errors holds already.
            left = float(along @ fit.left) ** 2 - float(along @ fit.left_covariance @ along)
            capped += float(along @ fit.covariance @ along) + max(left, 0.0)
        own = models.sd**2 * float(e @ weights[0] ** 2 + (1 - e) @ weights[1] ** 2)
        # An arm's mean is that of an average with the same tilt.
        lines = _lines(target.estimand if target.arm is None else Estimand.ATE, models, weights, start)
        some = np.minimum(most, cap), share, errors
        for middle, clip, body, hidden in _clips(lines, some, spread, target.arm is None):
            lose, more = _ONE_SIDED[known] * body[0], _ONE_SIDED[known] * hidden[0]
            found = Scores(*lines, middle, clip, start, size, lose, more, max(hidden[1], 1e-9), capped)
            expected = own + capped + found.lost(body[1] + 2 * sqrt(noise)) ** 2 + noise * clip**2
            if best is None or expected < best[0]:
                best = expected, found
    assert best is not None
    return best[1]


Lines = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]


def _lines(estimand: Estimand, models: Models, weights: tuple[Floats, ...], start: float) -> Lines:
    """Return slopes and offsets of both arms."""
    (w1, w0), e, m1, m0 = weights, models.propensity, models.treated, models.control
    offsets = -w1 * m1, w0 * m0
    if estimand is Estimand.ATT:
        offsets = -w1 * (m0 + start), w0 * m0
    elif estimand is Estimand.ATC:
        offsets = -w1 * m1, w0 * (m1 - start)
    elif estimand is Estimand.ATO:
        mean = e * m1 + (1 - e) * m0
        offsets = -w1 * (mean + start * (1 - e)), w0 * (mean - start * e)
    return (w1, -w0), offsets


def _some(rows: PublicRows, models: Models, weights: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """Return weights of rows of either arm, evenly spaced, how many rows they stand for, and variances of models."""
    e, step = models.propensity, max(1, len(rows.z) // _SAMPLE)
    one, other = (np.argsort(own, kind="stable")[::step] for own in weights)
    share = np.concatenate([e[one], 1 - e[other]]) * len(e) / len(one)
    z = rows.z[one], rows.z[other]
    errors = [((x @ fit.covariance) * x).sum(axis=1) for x, fit in zip(z, models.arms, strict=True)]
    return np.concatenate([weights[0][one], weights[1][other]]), share, np.concatenate(errors)


def _clips(
    lines: Lines, some: tuple[Floats, ...], spread: Spread, centred: bool
) -> list[tuple[float, float, tuple[float, float], tuple[float, float]]]:
    """Return middles, clips, and what these lose of scores and leave of their squares: of sure ones, of hidden ones.

    Without a search the clip holds the whole range. Scores that are not `centred` have zero as their middle, lest rows
    of the other arm count.
    """
    if spread.distances is None or spread.shares is None or spread.hidden is None:
        ends = [slope * y + offset for slope, offset in zip(*lines, strict=True) for y in (-1.0, 1.0)]
        low, high = min(float(end.min()) for end in ends), max(float(end.max()) for end in ends)
        low, high = (low, high) if centred else (-max(-low, high), max(-low, high))
        return [((low + high) / 2, max((high - low) / 2, 1e-9), (0.0, 0.0), (0.0, 0.0))]
    # Outcomes lie as far from the models as from their centre, and the models' errors farther.
    weights, share, errors = some
    far = np.sqrt(spread.distances**2 + errors[:, None]) * weights[:, None]
    filled = spread.shares + spread.hidden > 0
    longest = float(weights.max()) * float(spread.distances[filled].max())
    widest = WIDEST * max(longest, float(far[:, filled].max()))
    found = []
    for clip in widest * 2.0 ** (-np.arange(4 * OCTAVES + 1) / 4):
        over, squares = share @ np.maximum(far - clip, 0.0), share @ np.minimum(far / clip, 1.0) ** 2
        body, hidden = ((float(over @ s), float(squares @ s)) for s in (spread.shares, spread.hidden))
        found.append((0.0, float(clip), body, hidden))
    return found


PAGES = (
    "rows/histogram.proof.md",
    "rows/pairs/pair_moments.proof.md",
    "rows/pairs/pair_scores.proof.md",
)
# The richest features are taken whose expected length is at most this many times the shortest.
_LONGER = 1.05
# Public guesses that steer choices only, in units of the outcomes' reach: their variance, the mean square of weights,
# the largest weight, and the curvature of a logistic model.
_SPREAD, _WEIGHTS, LARGEST_WEIGHT, _CURVATURE = 0.2, 5.5, 5.0, 0.2
# Variances of events that are common and rare; lengths of both count, each in proportion.
_EVENTS = 1.0, 0.04
# Supposed variances of log odds and of mean outcomes that covariates, and curves and products, explain; and how far the
# two models are aligned.
_SIGNAL, _ALIGNMENT = ((0.6, 0.1), (0.06, 0.01)), 0.5
# Searched outcomes' scores reach so much farther.
_SEARCHED_FARTHER = 1.25
# Most that products of both models' errors may be expected to be beside the sampling error, squared.
_MOST_PRODUCTS = 1.5
# Products of both models' errors count so often: confounding aligns them.
ALIGNED = 2.0
# The models' check rejects where what shrinkage left exceeds so many of its standard deviations: in an effect, and in
# either of two means that are compared.
REJECTS, _REJECTS_MEAN = 1.645, 1.96


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Features and the split of the budget over the releases, with expected squared errors; all public."""

    rows: PublicRows
    plan: Plan
    sampling: float
    products: float
    length: float  # the expected squared length of the interval, in units of outcomes

    @property
    def is_feasible(self) -> bool:
        """Whether products of the models' errors are expected to be small enough."""
        return self.products <= _MOST_PRODUCTS * self.sampling


def choices(
    table: Table, budget: Budget, numbers: int = 1, outcomes: Sequence[Table] | None = None
) -> list[Choice]:
    """Return the best split for each set of features, the plainest first; reads covariates alone.

    So many numbers share the rows: effects of groups. Several `outcomes` are tables of each.
    """
    found, on = [], [searched(one.study) for one in outcomes or (table,)]
    arms = len(table.study.arms or (0, 1))
    released = 2 * len(on) if arms == 2 else 2 * arms
    released += int(arms == 2 and known_propensities(table) is None)
    # Pure noise hides curves; whether models suffice for parts of the rows, as for all, is not judged beforehand.
    hidden = ((NONLINEAR, INTERACTIONS) if budget.pure else ()) + ((LINEAR,) if numbers > 1 else ())
    candidates = feature_sets(table)
    for candidate in candidates:
        rows = replace(candidate, hidden=hidden)
        omitted = rows.order.max() == LINEAR < candidates[-1].order.max()
        known, sizes = (table.study.unconfounded, omitted), (released, numbers, arms / 2, len(on))
        splits = []
        for part, vector in product(MODEL_PARTS, _vectors(budget)):
            plan = plan_of(budget, part, on, vector=vector)
            cases = [
                _expected(rows, plan, known, sizes, one) for one in (_SPREAD, *(() if any(on) else _EVENTS))
            ]
            length = exp(sum(log(case.length) for case in cases) / len(cases))
            splits.append(replace(cases[0], length=length))
        found.append(min(splits, key=lambda choice: (not choice.is_feasible, choice.length)))
    return found


def chosen(table: Table, budget: Budget, numbers: int = 1, outcomes: Sequence[Table] | None = None) -> Choice:
    """Return the richest features of about the shortest expected length; refuses where errors would exceed sampling."""
    found = choices(table, budget, numbers, outcomes)
    if not found:
        raise refusal("CV-P407", features=len(table.study.covariates), rows=table.rows)
    feasible = [choice for choice in found if choice.is_feasible]
    if not feasible:
        raise refusal(
            "CV-P408",
            features=found[0].rows.z.shape[1] - 1,
            budget=budget,
            rows=table.rows,
            ratio=f"{sqrt(found[0].products / found[0].sampling):.2g}",
        )
    shortest = min(choice.length for choice in feasible)
    return next(choice for choice in reversed(feasible) if choice.length <= _LONGER**2 * shortest)


def searched(study: Study) -> bool:
    """Whether the place of outcomes is looked for: not that of events."""
    low, high = study.outcome_range
    return low != 0 or high != 1


def known_propensities(table: Table) -> Floats | None:
    """Return every row's probability of treatment where the design says it."""
    share = table.study.treated_share
    return table.score if share is None else np.full(table.rows, float(share))


def _vectors(budget: Budget) -> tuple[Kind, ...]:
    """Return the noises that models may have: pure noise of few numbers is the smaller one, whatever delta is."""
    return (Kind.VECTOR,) if budget.pure else (Kind.NORMAL, Kind.VECTOR)


def plan_of(
    budget: Budget, part: Fraction, on: Sequence[bool], last: str = "score", vector: Kind | None = None
) -> Plan:
    """Return the split: places that are searched, the models' part of the rest, and the score, or a vector.

    Of several outcomes places are named by their number.
    """
    rest = 1 - PLACE_PART if any(on) else Fraction(1)
    ends = [f" {place}" if len(on) > 1 else "" for place, one in enumerate(on, 1) if one]
    shares = {name + end: PLACE_PART * share / len(ends) for end in ends for name, share in PLACES.items()}
    shares |= {"models": part * rest, last: (1 - part) * rest}
    vector = vector or _vectors(budget)[0]
    # Normal noise of places and of vectors is paid for together: squares of mus add up, with one delta.
    place = Kind.NORMAL if vector is Kind.NORMAL else Kind.CELLS
    kinds = {name + end: place for end in ends for name in PLACES}
    kinds |= {"models": vector, last: Kind.CELLS if last == "score" else vector}
    return Plan.split(budget, shares, "laplace", kinds)


def _expected(
    rows: PublicRows, plan: Plan, known: tuple[bool, bool], sizes: tuple[int, int, float, int], spread: float
) -> Choice:
    (unconfounded, omitted), (released, numbers, crowd, outcomes) = known, sizes
    p, n = rows.z.shape[1], len(rows.z) / numbers / crowd
    amount, score = dict(plan.amounts)["models"], float(dict(plan.amounts)["score"])
    length = pair_sensitivity(rows)
    ball = released * p + 1 if plan.kind("models") is Kind.VECTOR else 1
    own = outcomes * float(length / amount) ** 2 * ball / rows.scale**2
    half = _CURVATURE * np.array([rows.weight @ column**2 for column in rows.z.T]) / crowd
    treated = own / outcomes / float(TREATED) ** 2 / half**2 + 1 / half
    arms = own / (2 * half) ** 2 + spread / (2 * half)
    sized = _SIGNAL[0], tuple(size * spread / _SPREAD for size in _SIGNAL[1])
    signal = [_assumed(rows, most) for most in sized]
    left = [treated / 4 / (treated / 4 + signal[0]), arms / (arms + signal[1])]
    aligned = _ALIGNMENT * np.sqrt(signal[0] * signal[1]) * left[0] * left[1]
    by_lines, by_curves = (float(aligned[at].sum()) for at in (rows.order == LINEAR, rows.order > LINEAR))
    # Curves that are left out are left out entirely.
    by_curves = _ALIGNMENT * sqrt(sized[0][1] * sized[1][1]) if omitted else by_curves
    errors = treated * signal[0] / (treated + signal[0]), arms * signal[1] / (arms + signal[1])
    products = 0.0 if unconfounded else float(errors[0] @ errors[1]) + by_lines**2
    curves = 0.0 if unconfounded else (by_lines + by_curves) ** 2 - by_lines**2
    sampling = _WEIGHTS * spread / n
    # Mean outcomes that are not known enlarge the scores.
    worse = sampling * float(errors[1].sum()) / spread if unconfounded else 0.0
    largest_score = LARGEST_WEIGHT * (_SEARCHED_FARTHER if len(plan.parts) > 2 else 1.0)
    noise = 8 * (largest_score * outcomes / (score * n)) ** 2 + worse
    return Choice(rows, plan, sampling, products, sampling + noise + products + curves)


def _assumed(rows: PublicRows, sizes: tuple[float, ...]) -> Floats:
    """Return squared coefficients that features are supposed to have: of covariates, and of all others together."""
    lines, others = rows.order == LINEAR, rows.order > LINEAR
    found = np.full(len(rows.order), 10.0)
    found[lines], found[others] = sizes[0] / max(int(lines.sum()), 1), sizes[1] / max(int(others.sum()), 1)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PairEffect:
    """A released effect and its uncertainty, in units of the outcome."""

    estimate: float
    uncertainty: Uncertainty
    details: dict[str, float | str]
    ends: OutcomesAtEnds | None = None


def place_of(gate: Gate, table: Table, choice: Choice, which: str = "") -> Spread:
    """Return where outcomes lie: released where it is searched, the whole range for events."""
    pure = Kind.NORMAL not in dict(choice.plan.kinds).values()
    return find_place(gate, table, pure, which) if searched(table.study) else Spread(WHOLE, 0.0)


def release_models(gate: Gate, tables: Sequence[Table], choice: Choice) -> list[tuple[Models, Spread]]:
    """Return models of treatment and of every table's outcome, and where it lies: places, then one vector.

    The tables are the same rows with one outcome each.
    """
    first, rows, count = tables[0], choice.rows, len(tables)
    spreads = [
        place_of(gate, table, choice, f" {place}" if count > 1 else "")
        for place, table in enumerate(tables, 1)
    ]
    known, trial = known_propensities(first), first.study.randomised is True
    outcomes = [(table.outcome, spread.place) for table, spread in zip(tables, spreads, strict=True)]
    released = gate.release_vector(
        "models",
        lambda: pair_sums(rows, first.treated, outcomes, known is not None),
        pair_sensitivity(rows, count),
    )
    columns, found = released.floats().reshape(-1, len(rows.scale)), []
    for spread, own in zip(spreads, np.split(columns[known is None :], count), strict=True):
        values = own if known is not None else np.vstack([columns[:1], own])
        sums = Sums.of(values, released.variance, rows, known, count)
        found.append((fit_models(rows, sums, spread, known, trial), spread))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTarget:
    """One number that scores tell: of which rows, how they weigh, and what was released of them."""

    table: Table
    spread: Spread
    places: Places
    target: Target
    models: Models
    form: Form = WHOLE_SCORES
    arm: int | None = None  # whose rows count as treated; None where there are two arms

    def sums(self, scores: Scores) -> list[Fraction]:
        """Return the sums of these scores and of their squares."""
        treated = self.table.treated if self.arm is None else self.table.arm == self.arm
        return scores.sums(treated[self.places], self.table.outcome[self.places], self.form)


def release_scores(gate: Gate, choice: Choice, numbers: Sequence[ScoreTarget]) -> list[PairEffect]:
    """Return numbers of which no row moves two, or those of all outcomes, further than the forms say; one release."""
    plan, form = choice.plan, min(one.form[1] for one in numbers)

    def of(one: ScoreTarget) -> tuple[PublicRows, Models]:
        return choice.rows.at(one.places), one.models.at(one.places)

    def noise(one: ScoreTarget) -> float:
        return plan.cells_noise("score", one.form[1]).variance

    scores = [best_scores(*of(one), one.spread, one.target, noise(one)) for one in numbers]

    def sums() -> list[Fraction]:
        both = zip(scores, numbers, strict=True)
        return [value * form / one.form[1] for score, one in both for value in one.sums(score)]

    found = []
    noisy = gate.release_cells("score", sums, form).floats().reshape(-1, 2)
    for score, one, own in zip(scores, numbers, noisy, strict=True):
        low, high = one.table.study.outcome_range
        sizes = one.models.fitted(one.target.arm), float(high - low) / 2
        found.append(effect_of(plan, *of(one), score, one, own * float(one.form[1] / form), sizes))
    return found


def pair_effect(gate: Gate, table: Table, choice: Choice, estimand: Estimand) -> PairEffect:
    """Return the effect: place, models, score, each released once."""
    (found,) = pair_effects(gate, table, choice, estimand, [slice(None)])
    return found


def pair_effects(
    gate: Gate, table: Table, choice: Choice, estimand: Estimand, groups: Sequence[Places]
) -> list[PairEffect]:
    """Return the effects of groups of rows, of which no two share one; all cost what one does."""
    ((models, spread),) = release_models(gate, [table], choice)
    numbers = [
        ScoreTarget(table, spread, own, Target(estimand, models.propensity[own]), models) for own in groups
    ]
    found = release_scores(gate, choice, numbers)
    sizes = [one.target.sizes() for one in numbers]
    return [
        replace(
            one,
            uncertainty=with_rare_events(one.uncertainty, table.study.outcome_range, own),
            ends=spread.ends,
        )
        for one, own in zip(found, sizes, strict=True)
    ]


def effect_of(
    plan: Plan,
    rows: PublicRows,
    models: Models,
    scores: Scores,
    score_target: ScoreTarget,
    released: Floats,
    sizes: tuple[float, float],
) -> PairEffect:
    """Return the number of released sums of scores, with every part of its error.

    `sizes` are by how much rows vary more than around models fitted to them, and half the range.
    """
    fitted, unit = sizes
    clip, middle = scores.clip, scores.middle
    target = score_target.target
    weight, sensitivity = score_target.form
    n, part = len(rows.z), unit / scores.size
    total, squares = float(released[0]), float(released[1]) / float(weight)
    estimate = scores.start * unit + (clip * total + n * middle) * part
    variance = fitted * (clip**2 * squares + 2 * middle * clip * total + n * middle**2) * part**2
    second, model_difference, model_difference_sd = models.products(target.errors, rows)
    second, model_difference, model_difference_sd = (
        ALIGNED * second * part**2,
        model_difference * part,
        model_difference_sd * part,
    )
    rejects = abs(model_difference) > (REJECTS if target.arm is None else _REJECTS_MEAN) * model_difference_sd
    likely = squares + sqrt(plan.cells_noise("score", sensitivity).variance) / float(weight)
    lost, capped = (scores.lost(likely) * part) ** 2, scores.capped * part**2
    # The variance holds the noise of both sums: that of squares, and that of scores around their middle.
    of_variance = fitted * clip * sqrt((clip / float(weight)) ** 2 + 4 * middle**2) * part**2
    noises = [plan.cells_noise("score", sensitivity * Fraction(one)) for one in (clip * part, of_variance)]
    cap = fitted * n * ((clip + abs(middle)) * part) ** 2
    bias = min(abs(model_difference), MOST_LEFT * models.sd * unit) if rejects else 0.0
    uncertainty = Uncertainty(noises[0], variance, cap, noises[1], second + lost + capped, bias)
    details: dict[str, float | str] = {
        "se_models": sqrt(second),
        "se_clipping": sqrt(lost),
        "se_capped_weights": sqrt(capped),
        "models_differ": model_difference,
        "models_differ_se": model_difference_sd,
        "models_differ_rejects": rejects,
    }
    return PairEffect(estimate, uncertainty, details)


def pairs(session: BaseSession, question: Question) -> Result:
    """Return the private effect; covariates and the order of rows are public, treatments and outcomes are not."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        effect = pair_effect(gate, table, choice, question.estimand)
        said = provenance(session, question, choice, effect.details, effect.ends)
        return Facts(said, estimate=effect.estimate, uncertainty=effect.uncertainty)

    return answer_request(Result, session, question, choice.plan, compute)


def pair_means(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of both arms' means, each with a score of its own."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        (means,) = released_numbers(gate, [table], choice, [ARM_SCORES], Estimand.ATE, means=True)
        assert isinstance(means, IndependentArmMeans)
        details: dict[str, float | str] = {"mean_treated": means.values[0], "mean_control": means.values[1]}
        said = provenance(session, question, choice, details)
        return Facts(said, measure=question.measure, numbers=means)

    return answer_request(MeasureResult, session, question, choice.plan, compute)


def pair_outcomes(session: BaseSession, question: Question, outcomes: Outcomes) -> OutcomesResult:
    """Return the private effects on all outcomes; covariates and the order of rows are public.

    One vector holds the models of all outcomes beside one propensity, and one release the scores of all: with k
    outcomes Gaussian noise of models grows by the root of k, that of scores by k; the propensity costs what it does
    with one.
    """
    tables, means = outcome_tables(session.table, outcomes), question.measure in OF_MEANS
    question, choice = asked(session, question, outcomes=tables)
    each = forms(outcomes, means=means)

    def compute(gate: Gate) -> Facts:
        found = released_numbers(gate, tables, choice, each, question.estimand, means=means)
        released = [OutcomeEffect(name, None, one) for name, one in zip(outcomes.names, found, strict=True)]
        said = provenance(session, question, choice, {})
        return Facts(said, released=tuple(released), measure=question.measure)

    said = {"question": "outcomes", "importance": [str(weight) for weight in outcomes.weights]}
    return answer_request(OutcomesResult, session, question, choice.plan, compute, said=said)


def outcome_tables(table: Table, outcomes: Outcomes) -> list[Table]:
    """Return the rows with each of the outcomes alone."""
    each = zip(outcomes.names, outcomes.ranges, outcomes.numbers(table), strict=True)
    return [
        replace(table, study=table.study._changed(outcome=name, outcome_range=ends, several=None), outcome=y)
        for name, ends, y in each
    ]


def forms(outcomes: Outcomes, *, means: bool) -> list[Form]:
    """Return what is released of every outcome's scores: as if each were alone, at the noise that it has."""
    total, (weight, moved) = sum(outcomes.weights, Fraction(0)), ARM_SCORES if means else WHOLE_SCORES
    return [(weight, moved * total / own) for own in outcomes.weights]


def released_numbers(
    gate: Gate,
    tables: Sequence[Table],
    choice: Choice,
    each: Sequence[Form],
    estimand: Estimand,
    *,
    means: bool,
) -> list[Numbers]:
    """Return the effect on every table's outcome, or both arms' means of it, by scores of these forms."""
    numbers, found = list[ScoreTarget](), list[Numbers]()
    for table, (models, spread), form in zip(tables, release_models(gate, tables, choice), each, strict=True):
        whole = Target(estimand, models.propensity)
        targets = [whole.of_arm(arm) for arm in (0, 1)] if means else [whole]
        numbers += [ScoreTarget(table, spread, slice(None), one, models, form) for one in targets]
    effects = release_scores(gate, choice, numbers)
    for place, table in enumerate(tables):
        low, high = map(float, table.study.outcome_range)
        sizes = Target(estimand, numbers[place * len(targets)].models.propensity).sizes()
        if means:
            one, other = effects[2 * place : 2 * place + 2]
            values = (low + high) / 2 + one.estimate, (low + high) / 2 - other.estimate
            found.append(
                IndependentArmMeans(values, (one.uncertainty, other.uncertainty), (low, high), sizes)
            )
        else:
            known = with_rare_events(effects[place].uncertainty, (low, high), sizes)
            found.append(Linear(effects[place].estimate, known, (low - high, high - low)))
    return found


def asked(
    session: BaseSession, question: Question, numbers: int = 1, outcomes: Sequence[Table] | None = None
) -> tuple[Question, Choice]:
    """Return the question with its noise, and features and split from public numbers; so many numbers share rows."""
    if session.study.randomised is not True:
        require_covariates(session.study, question.method)
    choice = chosen(session.table, question.budget, numbers, outcomes)
    return replace(question, mechanism="laplace"), choice


def provenance(
    session: BaseSession,
    question: Question,
    choice: Choice,
    details: dict[str, float | str],
    ends: OutcomesAtEnds | None = None,
) -> dict[str, Any]:
    """Return what every answer of this level says of itself; `ends` is how many outcomes crowd at those of ranges."""
    study, pure = session.study, choice.plan.kind("models") is Kind.VECTOR
    pages = PAGES if len(choice.plan.parts) > 2 else PAGES[1:]
    laplace = ("laplace",) if Kind.CELLS in dict(choice.plan.kinds).values() else ()
    drawn = ("ball" if pure else "gaussian", *laplace)
    squares, products = (bool((choice.rows.order == one).any()) for one in (NONLINEAR, INTERACTIONS))
    return {
        "guarantee": question.guarantee(session, pages, mechanisms=drawn),
        "method": "doubly robust score with public covariates",
        "releases": _releases(choice.plan),
        "not_covered": tuple(
            ends if ends is not None and one is Caveat.CLAMPING else one for one in _not_covered(study)
        ),
        "details": {"rows": len(choice.rows.z), "features": len(choice.rows.order) - 1} | details,
        "assumptions": design_says(study) if study.unconfounded else LinearScores(False, squares, products),
    }


_WORDS = PLACE_WORDS | {
    "models": "sums of features with treatment and with outcomes of both arms",
    "score": "sums of scores and of their squares",
    "effects": "sums of functions of covariates with scores, and of squared scores",
}


_NOISES = {Kind.CELLS: "Laplace", Kind.NORMAL: "Gaussian", Kind.VECTOR: "l2-ball"}


def _releases(plan: Plan) -> tuple[tuple[str, str], ...]:
    return tuple(
        (_WORDS[name.split()[0]], f"{part:.3g} of the budget; {_NOISES[plan.kind(name)]} noise")
        for name, part in plan.parts.items()
    )


def _not_covered(study: Study) -> tuple[Fact, ...]:
    if study.unconfounded:
        return Caveat.CLAMPING, Caveat.CLIPPED_SCORES
    models = Caveat.UNDECLARED_COVARIATES, Caveat.OTHER_THAN_FEATURES
    return (*models, Caveat.CLAMPING, Caveat.CLIPPED_SCORES, Caveat.COVERAGE_MEASURED)


# Proof: pair_moments.proof.md, pair_scores.proof.md
#
# A row is in one of several arms: a replaced pair moves the sums of two at most, however many there are.


def pair_arms(session: BaseSession, question: Question) -> ArmsResult:
    """Return the private means of all arms; covariates and the order of rows are public."""
    table, (question, choice) = session.table, asked(session, question)

    def compute(gate: Gate) -> Facts:
        return Facts(
            provenance(session, question, choice, {}),
            means=released_arms(gate, table, choice, question.level),
        )

    return answer_request(ArmsResult, session, question, choice.plan, compute, said={"question": "arms"})


def released_arms(gate: Gate, table: Table, choice: Choice, level: float) -> tuple[Effect, ...]:
    """Return what everybody's mean outcome would be in each arm: place, models and scores, each released once."""
    study, spread = table.study, place_of(gate, table, choice)
    numbers = arm_numbers(gate, table, choice, spread)
    found, means = release_scores(gate, choice, numbers), []
    low, high = map(float, study.outcome_range)
    for label, one, number in zip(study.treatment_labels, found, numbers, strict=True):
        size, _ = Target(Estimand.ATE, number.models.propensity).sizes()
        known = with_rare_events(one.uncertainty, study.outcome_range, (size,))
        means.append(Effect(label, Linear((low + high) / 2 + one.estimate, known, (low, high)), level))
    return tuple(means)


def arm_numbers(gate: Gate, table: Table, choice: Choice, spread: Spread) -> list[ScoreTarget]:
    """Return what scores tell of every arm beside all others together, from one vector for all of them."""
    rows, arms, study = choice.rows, len(table.study.treatment_labels), table.study
    released = gate.release_vector(
        "models",
        lambda: arm_sums(rows, table.arm, arms, table.outcome, spread.place),
        pair_sensitivity(rows),
    )
    inside, outcomes = released.floats().reshape(2, arms, -1) / rows.scale
    noise, everyone, found = released.variance / rows.scale**2, slice(None), list[ScoreTarget]()
    for arm in range(arms):
        values = np.stack([inside[arm], outcomes[arm], outcomes.sum(axis=0) - outcomes[arm]])
        sums = Sums(values, np.outer((1.0, 1.0, arms - 1.0), noise))
        models = fit_models(rows, sums, spread, None, study.randomised is True)
        target = Target(Estimand.ATE, models.propensity).of_arm(0)
        found.append(ScoreTarget(table, spread, everyone, target, models, ARM_SCORES, arm))
    return found


# Proof: pair_scores.proof.md
#
# Scores of the effect are regressed on public functions, so that weights are a public linear map of them: one vector
# beside the models. Lineage: the doubly robust learner (Kennedy 2023), as a series (Semenova and Chernozhukov 2021).


EFFECTS = "effects"
# The part of the budget that is left for functions, and of it that of models.
_MODELS = Fraction(3, 10)
# Variances that a covariate's weights may have, in units of the supposed variance of effects; and the least part that
# scores may vary of what models say, and events of their average.
_SCALES, _LEAST_PART = (0.003, 0.03, 0.3, 1.0), 0.25
# Supposed clip of scores, in parts of the outcome's range and of the largest weight: of events, and of numbers whose
# place is searched.
_CLIPS = 0.5, 2 * TYPICAL_SD
# A function of mean square one moves by so much where a pair is replaced.
_PAIR = 2


@dataclass(frozen=True, slots=True, eq=False)
class _White:
    """The values of functions at every row, made white: made whenever some rows are read, and not held."""

    basis: Basis
    columns: Mapping[str, Floats]
    back: Floats
    shape: tuple[int, int]

    def __getitem__(self, part: slice) -> Floats:
        return self.basis.features(self.columns, part) @ self.back


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """A basis, its values at every row made white (`rows`), and the map from white weights to those of the basis."""

    basis: Basis
    rows: PublicRows
    back: Floats
    mean: Floats

    @classmethod
    def of(cls, table: Table, basis: Basis) -> Functions:
        """Return the functions of a table's public covariates."""
        gram, total = np.zeros((basis.size, basis.size)), np.zeros(basis.size)
        for part in blocks(table.rows):
            values = basis.features(table.covariates, part)
            gram, total = gram + values.T @ values, total + values.sum(axis=0)
        sizes, vectors = np.linalg.eigh(gram / table.rows)
        kept = sizes > 1e-9 * float(sizes[-1])
        back = vectors[:, kept] / np.sqrt(sizes[kept])
        order = np.ones(back.shape[1], dtype=np.int64)
        white = cast("Floats", _White(basis, table.covariates, back, (table.rows, len(order))))
        return cls(basis, shortened(white, order, np.ones(len(order))), back, total / table.rows)


def function_pays(session: BaseSession, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    table = session.table
    if largest_basis(table, Series()) is None:
        return False
    first = first_size(table)
    return is_worthwhile(_noise(first, table, question.budget), first, table.rows)


def _noise(size: int, table: Table, budget: Budget) -> float:
    """Return the expected noise of effects, in parts of the outcome's range."""
    on = searched(table.study)
    own = float(dict(plan_of(budget, _MODELS, [on], EFFECTS).amounts)[EFFECTS])
    each = sqrt(size + 2) if budget.pure else 1.0
    return _PAIR * each * size * LARGEST_WEIGHT * _CLIPS[on] / (own * table.rows)


def best_basis(table: Table, budget: Budget, settings: Series) -> Basis | None:
    """Return the functions of the degree that is expected to err least; reads public numbers."""
    found: list[tuple[float, Basis]] = []
    for degree in (settings.degree,) if settings.degree else (1, 2, 3):
        basis = largest_basis(table, replace(settings, degree=degree))
        if basis is None or basis.size * table.rows > MOST_NUMBERS:
            continue
        # Intervals allow for orders beyond the last as for those of a function with a kink.
        left = (
            PLAUSIBLE**2 * degree ** (2 - FALL) * sum(order**-2.0 for order in range(degree + 1, degree + 7))
        )
        sampling = (2 * TYPICAL_SD) ** 2 * basis.size / table.rows
        found.append((_noise(basis.size, table, budget) ** 2 + sampling + left, basis))
    return min(found, key=lambda one: one[0])[1] if found else None


def pair_series(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, treatments and outcomes being private."""
    table = session.table
    settings = question.settings if isinstance(question.settings, Series) else Series()
    basis = best_basis(table, question.budget, settings)
    if basis is None:
        raise too_many(session)
    own, choice = asked(session, question)
    assert isinstance(own, CateQuestion)
    choice = replace(choice, plan=plan_of(question.budget, _MODELS, [searched(session.study)], EFFECTS))
    functions = Functions.of(table, basis)

    def compute(gate: Gate) -> CateModel:
        return _released(gate, session, own, choice, functions)

    return answer_request(CateModel, session, own, choice.plan, compute)


def function_sums(
    rows: PublicRows, scores: Scores, treated: NDArray[np.bool_], outcome: Integers
) -> list[Fraction]:
    """Return the sums of functions times v, and of v^2 times the longest row's length, as exact numbers."""
    total, one, squares = WholeSum(), 1 << SCORE_BITS, 0
    for part in blocks(len(outcome)):
        v = scores.values(treated, outcome, part)
        total.add(rows.steps(part).T @ v[:, None])
        squares += int((v * v).sum())
    found = [Fraction(int(value), one << FEATURE_BITS) for value in total.whole()[:, 0]]
    return [*found, rows.length * Fraction(squares, one * one)]


def function_sensitivity(rows: PublicRows) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced pair moves these sums."""
    return _PAIR * rows.length


def _released(
    gate: Gate, session: BaseSession, question: CateQuestion, choice: Choice, functions: Functions
) -> CateModel:
    table, rows = session.table, functions.rows
    ((models, spread),) = release_models(gate, [table], choice)
    target = Target(Estimand.ATE, models.propensity)
    size = float(function_sensitivity(rows) / dict(choice.plan.amounts)[EFFECTS])
    noise = size**2 * (rows.z.shape[1] + 2 if question.budget.pure else 1)
    scores = best_scores(choice.rows, models, spread, target, noise)
    found = gate.release_vector(
        EFFECTS,
        lambda: function_sums(rows, scores, table.treated, table.outcome),
        function_sensitivity(rows),
    )
    known = _known(choice.rows, models, spread, functions, scores, found.floats(), found.variance)
    unit = float(session.study.outcome_range[1] - session.study.outcome_range[0]) / 2
    scaled = tuple(one * unit**k for one, k in zip(known, (1, 2, 2), strict=True))
    return _model(session, question, choice, functions, scaled)


def _known(
    features: PublicRows,
    models: Models,
    spread: Spread,
    functions: Functions,
    scores: Scores,
    released: Floats,
    noise: float,
) -> tuple[Floats, Floats, Floats]:
    """Return white weights, their covariance, and its part that is noise, in halves of the range."""
    rows, clip, middle, e = functions.rows, scores.clip, scores.middle, models.propensity
    inverse = np.linalg.inv(rows.gram(rows.weight))
    said = rows.along(rows.weight * (models.treated - models.control + middle)) + clip * released[:-1]
    weights = inverse @ said
    # How rows vary is what the models say, as far as squared scores, with what noise may hide of them, allow: scores
    # add up to about nothing.
    own = [np.full(len(e), models.sd**2)] * 2
    if spread.distances is None:
        own = [np.maximum(1 - m**2, _LEAST_PART * models.sd**2) for m in (models.treated, models.control)]
    varies = e * scores.slopes[0] ** 2 * own[0] + (1 - e) * scores.slopes[1] ** 2 * own[1]
    found = (float(released[-1]) + sqrt(noise)) / float(rows.length)
    squares = clip**2 * found - len(e) * middle**2
    varies *= models.fitted(None) * max(squares / float(varies.sum()), _LEAST_PART)
    sampling = rows.gram(rows.weight**2 * varies)
    # Products of both models' errors, what a clip loses and weights that are capped: as large along every function.
    second, left, left_sd = models.products(Target(Estimand.ATE, e).errors, features)
    left = left if abs(left) > REJECTS * left_sd else 0.0
    extra = (ALIGNED * second + scores.lost(found) ** 2 + scores.capped + left**2) * np.eye(len(weights))
    drawn = clip**2 * noise * np.eye(len(weights))
    return weights, inverse @ (drawn + sampling + extra) @ inverse, inverse @ drawn @ inverse


def _model(
    session: BaseSession,
    question: CateQuestion,
    choice: Choice,
    functions: Functions,
    known: tuple[Floats, ...],
) -> CateModel:
    white, white_covariance, white_noise = known
    basis, back = functions.basis, functions.back
    weights, covariance, noise = back @ white, back @ white_covariance @ back.T, back @ white_noise @ back.T
    covariance = covariance + (BALL_TAIL - 1.0) * noise if question.budget.pure else covariance
    forth = np.linalg.pinv(back)
    information = forth.T @ np.linalg.inv(white_covariance) @ forth
    steady = information + 1e-10 * np.trace(information) / len(information) * np.eye(len(information))
    width = float(session.study.outcome_range[1] - session.study.outcome_range[0])
    groups = basis_groups(basis)
    sparse = spike_and_slab(steady, information @ weights, groups, slab(basis, width), _SCALES)
    spread = sqrt(float(np.trace(white_noise)))
    said = provenance(session, question, choice, {"functions": basis.size, "noise_of_effects": spread})
    said["method"] = "series regression of doubly robust scores"
    said["not_covered"] = (Caveat.NOT_POLYNOMIAL, *said["not_covered"])
    found = CateModel(
        study=session.study,
        basis=basis,
        weights=sparse.weights,
        covariance=covariance,
        noise_covariance=noise,
        shrinkage=weights - sparse.weights,
        level=question.level,
        spent=question.budget,
        higher=higher(basis, sparse.weights**2 + np.minimum(np.diag(covariance), sparse.variances)),
        **said,
    )
    measured = Unshrunk(weights, covariance, basis.orders, functions.mean)
    return fall_back_to_average(found, measured, question.method == "auto" and question.settings is None)
