"""Which weights a release measures, with noise of which shape, and what all releases say together.

Before a release everything but the outcomes is public: candidates are compared by the expected error of what will be
known afterwards. Each measures the weights of some functions by the public map A = (Z'Z + Lambda)^-1 Z', with the noise
shaped to the error of predictions. What was measured is a normal observation A Z theta of all weights theta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.noise_shape import largest_move, matrix_power, noise_shape
from counterveil.numerics.posterior import spike_and_slab
from counterveil.statistics.linear.function_design import FEW, Functions, Places

# Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`;
# `python -m experiments.cate.tuning` compares some of them there.
# Supposed standard deviations of effects over people and of their level, as parts of the outcome's range.
_VARIES, _LEVEL = 1 / 5, 1 / 4
# Weights of order k have variances that fall with this power of it.
FALL = 4.0
# Variances that a group of weights may have, in units of the supposed variance of effects.
_SCALES = (0.003, 0.03, 0.3, 1.0)
# The part of what is unknown that clipping may hide from a release, for each unit of the share that is clipped.
_HIDDEN = 0.1
# Rounds in which the shape of a noise is improved, for candidates and for the one that is taken; rows for candidates.
_ROUNDS, _LAST_ROUNDS, _FEW_ROWS = 3, 12, 500
# Numbers of covariates whose effects are measured, beside all.
_COVARIATES = (1, 2, 4, 8, 16)
# Highest degrees of the first look, with products of covariates and without.
_FIRST, _FIRST_WITHOUT = 3, 2
# A variance this far below the supposed one stands for zero.
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What releases said so far about all weights: information, score, variances, means, and which were measured.

    `before` are the variances that were supposed before any release, `variances` what is supposed by now, and `least`
    the least that intervals suppose, lest a covariate that was passed over count as known not to matter.
    """

    information: Floats
    score: Floats
    before: Floats
    least: Floats
    variances: Floats
    weights: Floats
    measured: NDArray[np.bool_]

    @property
    def posterior(self) -> Floats:
        """The covariance of the weights, as far as they are known."""
        return self._given(self.variances)

    @property
    def cautious(self) -> Floats:
        """The same where no weight counts as known to be zero."""
        return self._given(np.maximum(self.variances, self.least))

    def _given(self, variances: Floats) -> Floats:
        root = np.sqrt(variances)
        inner = np.eye(len(root)) + self.information * np.outer(root, root)
        return np.asarray(root[:, None] * np.linalg.inv(inner) * root)


def nothing(functions: Functions, width: float) -> Known:
    """Return what is known before any release: supposed variances, from the range of the outcome."""
    size = 2 * functions.size
    before, least = supposed(functions, width), _SCALES[0] * _slab(functions, width)
    unseen = np.zeros(size, np.bool_)
    return Known(np.zeros((size, size)), np.zeros(size), before, least, before, np.zeros(size), unseen)


def _slab(functions: Functions, width: float) -> Floats:
    """Return the variances of weights whose covariate matters, up to a scale."""
    return np.asarray((_VARIES * width) ** 2 / np.maximum(functions.orders, 1.0) ** FALL)


def supposed(functions: Functions, width: float) -> Floats:
    """Return the variances of all weights before anything is seen; each order shares its part evenly."""
    orders = functions.basis.orders
    found = np.full(len(orders), (_LEVEL * width) ** 2)
    for order in np.unique(orders[orders > 0]):
        own = orders == order
        found[own] = (_VARIES * width) ** 2 * order**-FALL / np.count_nonzero(own)
    return np.tile(found, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Which columns are fitted, the rows of the inverse that are released, the loss, and the noise's shape.

    `solve` (k, columns) maps Z' residuals to what is measured; `measured` are the places of those weights among all.
    """

    columns: Places
    measured: Places
    solve: Floats
    loss: Floats
    shape: Floats

    def design(self, functions: Functions) -> Floats:
        """Return A Z, (k, 2q): how what is measured depends on all weights."""
        return np.asarray(self.solve @ functions.gram[self.columns])

    def sampling(self, functions: Functions, squares: Floats) -> Floats:
        """Return the sampling covariance, for residuals with these mean squares of control and treated."""
        own = np.ix_(self.columns, self.columns)
        inner = squares[0] * functions.squared[0][own] + squares[1] * functions.squared[1][own]
        return np.asarray(self.solve @ inner @ self.solve.T)


def best_look(functions: Functions, known: Known, variance: float, noise: NoiseSize, effects: bool) -> Look:
    """Return the look after which predictions, or the effects alone, are expected to err least."""
    posterior, best, least = known.posterior, None, np.inf
    for kept in _candidates(functions, known, effects):
        look = _look(functions, known, kept, variance, effects, _ROUNDS)
        design = look.design(functions)
        covariance = look.shape * noise.variance(len(look.solve)) + look.sampling(
            functions, np.full(2, variance)
        )
        gain = posterior @ design.T
        left = posterior - gain @ np.linalg.solve(design @ gain + covariance, gain.T)
        loss = functions.plain / functions.rows
        if effects:
            own = slice(functions.size, None)
            left, loss = left[own, own], loss[: functions.size, : functions.size]
        error = float(np.einsum("ij,ji->", loss, left))
        if best is None or error < least:
            best, least = kept, error
    assert best is not None  # constants alone are a candidate
    return _look(functions, known, best, variance, effects, _LAST_ROUNDS)


@dataclass(frozen=True, slots=True)
class NoiseSize:
    """The variance of each number of a vector whose moves have length one: Gaussian, or of the l2 ball."""

    reach: float
    amount: float
    pure: bool

    def variance(self, size: int) -> float:
        """Return the variance for a vector of this size."""
        return (size + 1 if self.pure else 1) * (self.reach / self.amount) ** 2


def _candidates(functions: Functions, known: Known, effects: bool) -> Iterator[Places]:
    """Yield sets of functions, by places in the basis, the constant always among them."""
    orders, groups = functions.basis.orders, functions.groups[: functions.size]
    few = len(functions.basis.axes) <= FEW
    seen = bool(known.measured.any())
    highest = int(orders.max()) if seen else (_FIRST if few else _FIRST_WITHOUT)
    for degree in range(0 if effects else 1, highest + 1):
        low = orders <= degree
        if few or not seen or not degree:
            yield np.flatnonzero(low)
            continue
        ranked = _ranked(functions, known)
        for count in (*(number for number in _COVARIATES if number < len(ranked)), len(ranked)):
            yield np.flatnonzero(low & ((groups == 0) | np.isin(groups, ranked[:count])))


def _ranked(functions: Functions, known: Known) -> Places:
    """Return the groups of covariates by how much their effects may still vary, the largest first."""
    size = functions.size
    groups, variances = functions.groups[:size], known.variances[size:]
    each = np.bincount(groups, variances)
    names = np.unique(groups[groups > 0])
    return np.asarray(names[np.argsort(-each[names], kind="stable")])


def _look(
    functions: Functions, known: Known, kept: Places, variance: float, effects: bool, rounds: int
) -> Look:
    """Return the look at some functions: of both parts, or of the effect with the outcome's part fitted beside it."""
    size, orders = functions.size, functions.orders
    beside = kept
    if effects:
        beside = np.flatnonzero(orders[:size] <= float(orders[kept].max()) + 1)
    columns = np.concatenate((beside, kept + size))
    gram = functions.gram[np.ix_(columns, columns)]
    # Constants are not penalised; nor are effects much, lest their intervals be those of shrunken weights.
    prior = known.before if effects else known.variances
    penalty = np.where(orders[columns] == 0, 0.0, variance / prior[columns])
    ridge = penalty + 1e-9 * np.trace(gram) / len(gram)
    inverse: Floats = np.asarray(np.linalg.inv(gram + np.diag(ridge)), dtype=np.float64)
    solve = inverse[len(beside) :] if effects else inverse
    measured = columns[len(beside) :] if effects else columns
    averaged = kept if effects else measured
    loss = functions.plain[np.ix_(averaged, averaged)] / functions.rows
    rows = (
        functions.sample
        if rounds > _ROUNDS
        else functions.sample[:: max(1, len(functions.sample) // _FEW_ROWS)]
    )
    shape = noise_shape(rows[:, columns] @ solve.T, loss, rounds)
    longest = largest_move(functions.sample[:, columns] @ solve.T, matrix_power(shape, -0.5))
    return Look(columns, measured, solve, loss, shape * longest**2)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One look as released: values, their covariance and its part that is noise, and how they depend on weights."""

    places: Places
    values: Floats
    covariance: Floats
    noise: Floats
    design: Floats


def learned(functions: Functions, known: Known, found: Measured, width: float, clipped: float) -> Known:
    """Return what is known with one more look; `clipped` is the share of residuals that may have been clipped."""
    hidden = _HIDDEN * clipped * found.design @ known.posterior @ found.design.T
    solved = np.linalg.solve(found.covariance + hidden, np.column_stack((found.design, found.values)))
    information = known.information + found.design.T @ solved[:, :-1]
    score = known.score + found.design.T @ solved[:, -1]
    groups = functions.groups
    jitter = 1e-10 * np.trace(information) / len(information)
    steady = information + jitter * np.eye(len(information))
    sparse = spike_and_slab(steady, score, groups, _slab(functions, width), _SCALES)
    measured = known.measured.copy()
    measured[found.places] = True
    # Weights that no look has measured may be as large as was supposed, if their covariate matters.
    smallest = np.where(measured, _NOTHING, sparse.included) * known.before
    variances = np.where(groups == 0, known.before, np.maximum(sparse.variances, smallest))
    return Known(information, score, known.before, known.least, variances, sparse.weights, measured)
