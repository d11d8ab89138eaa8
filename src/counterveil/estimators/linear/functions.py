"""Effects as functions of covariates where only outcomes are private.

Treatment minus its propensity times functions of the covariates makes the rows of the effect, beside the same
functions for the outcome (an R-learner in one regression): rows are (phi(x), (a - p(x)) phi(x)). Covariates
and treatments are public, so that the functions, the propensity and all sums over rows may be taken from the
data, and the weights are a public linear map of the outcomes. They are released in three looks, each around
the predictions of the last, with residuals clipped at a size that was released before: mean outcomes of the
arms, a first model, and the effects.

Before a release everything but the outcomes is public: candidates are compared by the expected error of what
will be known afterwards. Each measures the weights of some functions by the public map A = (Z'Z + Lambda)^-1
Z', with the noise shaped to the error of predictions. What was measured is a normal observation A Z theta of
all weights theta. Proof: `linear_map.proof.md`.

Lineage: Robinson (1988); the R-learner (Nie and Wager 2021); the matrix mechanism (Li et al. 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Range, Table
from counterveil.errors import CounterveilError, refusal
from counterveil.estimators.linear.matching_design import scored
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.bases import Axis, Basis, Term
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.noise_shape import largest_move, matrix_power, noise_shape
from counterveil.numerics.products import Gram, blocks, sums
from counterveil.numerics.shrinkage import spike_and_slab
from counterveil.privacy.caveats import Caveat
from counterveil.results.answering import answer_request
from counterveil.results.functions import (
    TYPICAL_SD,
    CateModel,
    CateQuestion,
    Unshrunk,
    fall_back_to_average,
    is_worthwhile,
)
from counterveil.rows.linear.sensitivity import LinearMap
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.settings import Series

Places = NDArray[np.intp]

# Features of the largest basis: two covariances of their weights stay below 100 kB of text.
MOST_FEATURES = 100
# Covariates up to which functions of several are multiplied, and the largest degrees with products and without.
FEW, _WITH_PRODUCTS, _WITHOUT = 3, 6, 3
# Rows for each weight that is fitted.
_ROWS_A_WEIGHT = 8
# Rows in which values of a covariate are counted, and rows that stand for all in the choice of a noise's shape.
_COUNTED, _SAMPLE = 20_000, 2000
# Rows over which averages that steer choices are taken.
_AVERAGED = 100_000
# Propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.05
# Leverage beside the average from which rows weigh less; set on seeds below 100 of `experiments/cate`.
_MOST_LEVERAGE = 1.0
# Orders beyond the last that intervals allow for.
_BEYOND = 6


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """A basis, for every row its treatment residual and weight, sums of products over rows, and a sample of rows.

    `plain` (2q, 2q) is Z'Z of the rows Z, `gram` the same with every row weighted, and `squared` (2, 2q, 2q) with
    squared weights, over control and over treated rows. `sample` are some rows of Z, weighted.
    """

    table: Table
    basis: Basis
    residual: Floats
    weights: Floats
    plain: Floats
    gram: Floats
    squared: Floats
    sample: Floats

    @property
    def size(self) -> int:
        """Number of functions, q."""
        return self.basis.size

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.table.rows

    @property
    def orders(self) -> Floats:
        """Order of every weight, (2q,)."""
        return np.tile(self.basis.orders, 2)

    @property
    def groups(self) -> Places:
        """Group of every weight, (2q,): 0 for the constants, else one a covariate and block, and one for products."""
        own = basis_groups(self.basis)
        others = np.where(own > 0, own + int(own.max(initial=0)), 0)
        return np.concatenate((own, others))

    def weighted_blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows and their (b, 2q) rows Z times their weights."""
        for part, z in _rows(self.table, self.basis, self.residual):
            yield part, z * self.weights[part, None]

    def predicted(self, coefficients: Floats) -> Floats:
        """Return Z @ coefficients for every row."""
        found = np.empty(self.rows)
        for part, z in _rows(self.table, self.basis, self.residual):
            found[part] = z @ coefficients
        return found

    def products(self, values: Floats) -> Floats:
        """Return the weighted sum of Z_i values_i, (2q,)."""
        total = np.zeros(2 * self.size)
        for part, z in self.weighted_blocks():
            total += values[part] @ z
        return total


def _rows(table: Table, basis: Basis, residual: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of rows and their (b, 2q) rows Z."""
    for part in blocks(table.rows):
        yield part, _joined(basis.features(table.covariates, part), residual[part])


def _joined(phi: Floats, residual: Floats) -> Floats:
    return np.concatenate((phi, phi * residual[:, None]), axis=1)


def basis_groups(basis: Basis) -> Places:
    """Return the group of every function: 0 for the constant, one a covariate, and one more for all products."""
    several = len(basis.axes) + 1
    each = (0, *(1 + term.axes[0] if len(term.axes) == 1 else several for term in basis.terms))
    return np.repeat(np.array(each, dtype=np.intp), basis.sizes)


def functions_of(table: Table, settings: Series) -> Functions | None:
    """Return the functions for a table, the largest degree that its rows afford; None where not even the first is."""
    basis = largest_basis(table, settings)
    if basis is None:
        return None
    residual: Floats = table.treated - np.clip(scored(table).score, _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
    # Averages over rows that steer choices and the sampling error are taken over every so manieth of many.
    stride = max(1, table.rows // _AVERAGED)
    plain = Gram(2 * basis.size)
    for _, z in _rows(table, basis, residual):
        plain.add(z[::stride])
    weights = _weights(table, basis, residual, plain.whole() * stride)
    gram = Gram(2 * basis.size)
    squared = [Gram(2 * basis.size) for _ in range(2)]
    for part, z in _rows(table, basis, residual):
        own = weights[part, None]
        treated = table.treated[part]
        gram.add(z * np.sqrt(own))
        some = (z * own)[::stride]
        arms = treated[::stride]
        for arm in (0, 1):
            squared[arm].add(some[arms == bool(arm)])
    places = np.unique(np.linspace(0, table.rows - 1, min(table.rows, _SAMPLE)).astype(np.intp))
    picked = {name: column[places] for name, column in table.covariates.items()}
    sample = _joined(basis.features(picked), residual[places]) * weights[places, None]
    both = np.array([each.whole() * stride for each in squared])
    return Functions(table, basis, residual, weights, plain.whole() * stride, gram.whole(), both, sample)


def _weights(table: Table, basis: Basis, residual: Floats, gram: Floats) -> Floats:
    """Return a weight for every row: one, or less where its leverage is a multiple of the average.

    Few rows at the ends of a covariate would otherwise set the noise of all. Weights depend on covariates and
    treatment alone, so that a right model stays right.
    """
    values, vectors = np.linalg.eigh(gram)
    inverse = vectors / np.sqrt(np.maximum(values, 1e-9 * float(values[-1])))
    leverage = np.empty(table.rows)
    for part, z in _rows(table, basis, residual):
        white = z @ inverse
        leverage[part] = np.einsum("ij,ij->i", white, white)
    most = _MOST_LEVERAGE * 2 * basis.size / table.rows
    return np.asarray(most / np.maximum(leverage, most))


def largest_basis(table: Table, settings: Series) -> Basis | None:
    """Return the functions of the largest degree that rows afford; None where not even the first is."""
    products = len(table.study.covariates) <= FEW if settings.products is None else settings.products
    highest = settings.degree or (_WITH_PRODUCTS if products else _WITHOUT)
    for degree in range(highest, 0, -1):
        basis = series_basis(_axes(table, degree), degree, products)
        if basis.size <= MOST_FEATURES and 2 * basis.size * _ROWS_A_WEIGHT <= table.rows:
            return basis if basis.terms else None
    return None


def first_size(table: Table) -> int:
    """Return the number of functions of first degree, the constant among them."""
    return series_basis(_axes(table, 1), 1, False).size


def _axes(table: Table, degree: int) -> tuple[Axis, ...]:
    """Return an axis for every covariate that varies: polynomials between its extremes, or contrasts of labels."""
    found = []
    for name, domain in table.study.covariates.items():
        column = table.covariates[name]
        low, high = float(column.min()), float(column.max())
        if not high > low:
            continue
        if not isinstance(domain, Range):
            found.append(Axis(name, "labels", len(domain.labels)))
            continue
        values = len(np.unique(column[:_COUNTED]))
        found.append(Axis(name, "legendre", max(1, min(degree, values - 1)), low, high - low))
    return tuple(found)


def series_basis(axes: tuple[Axis, ...], degree: int, products: bool) -> Basis:
    """Return functions of mean square one under the uniform mechanism, up to a degree.

    With products, those whose orders plus one multiply to at most the degree plus one (a hyperbolic cross).
    """
    terms = []
    choices = [[None, *range(len(axis.groups))] for axis in axes] if products else []
    picked_all = product(*choices) if products else _single(axes)
    for picked in picked_all:
        places = tuple(place for place, group in enumerate(picked) if group is not None)
        orders = [axes[place].groups[picked[place] or 0][0] for place in places]
        alone = len(places) == 1 and axes[places[0]].family == "labels"
        if places and (alone or prod(order + 1 for order in orders) <= degree + 1):
            groups = tuple(group for group in picked if group is not None)
            terms.append(Term(places, groups, sum(orders)))
    terms.sort(key=lambda term: (term.order, term.axes, term.groups))
    return _scaled(axes, tuple(terms))


def _single(axes: tuple[Axis, ...]) -> Iterator[tuple[int | None, ...]]:
    for place, axis in enumerate(axes):
        for group in range(len(axis.groups)):
            yield tuple(group if other == place else None for other in range(len(axes)))


def _scaled(axes: tuple[Axis, ...], terms: tuple[Term, ...]) -> Basis:
    plain = Basis(axes, terms, (1.0,) * (len(terms) + 1))
    squares = np.split(plain.squares, np.cumsum(plain.sizes)[:-1])
    return Basis(axes, terms, tuple(1.0 / sqrt(float(own.mean())) for own in squares))


def beyond(basis: Basis) -> tuple[Basis, Floats, Places] | None:
    """Return the next orders of every covariate's own polynomials, the order of each, and its covariate's group.

    A covariate of so few values that it has fewer polynomials than others has no next ones.
    """
    axes, terms, groups = [], [], []
    highest = max((axis.size for axis in basis.axes if axis.family == "legendre"), default=0)
    for place, axis in enumerate(basis.axes):
        if axis.family != "legendre" or axis.size < highest:
            continue
        axes.append(Axis(axis.source, axis.family, axis.size + _BEYOND, axis.low, axis.width))
        more = range(axis.size, axis.size + _BEYOND)
        terms += [Term((len(axes) - 1,), (order,), order + 1) for order in more]
        groups += [place + 1] * _BEYOND
    if not terms:
        return None
    found = _scaled(tuple(axes), tuple(terms))
    # The constant is a function of every basis; its weight is zero here.
    basis_of = Basis(found.axes, found.terms, (0.0, *found.weights[1:]))
    return basis_of, basis_of.orders, np.array([0, *groups], dtype=np.intp)


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
class Posterior:
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


def nothing(functions: Functions, width: float) -> Posterior:
    """Return what is known before any release: supposed variances, from the range of the outcome."""
    size = 2 * functions.size
    before = supposed(functions, width)
    least = _SCALES[0] * np.tile(slab(functions.basis, width), 2)
    unseen = np.zeros(size, np.bool_)
    return Posterior(np.zeros((size, size)), np.zeros(size), before, least, before, np.zeros(size), unseen)


def slab(basis: Basis, width: float) -> Floats:
    """Return the variances of weights whose covariate matters, up to a scale."""
    return np.asarray((_VARIES * width) ** 2 / np.maximum(basis.orders, 1.0) ** FALL)


def supposed(functions: Functions, width: float) -> Floats:
    """Return the variances of all weights before anything is seen; each order shares its part evenly."""
    orders = functions.basis.orders
    found = np.full(len(orders), (_LEVEL * width) ** 2)
    for order in np.unique(orders[orders > 0]):
        own = orders == order
        found[own] = (_VARIES * width) ** 2 * order**-FALL / np.count_nonzero(own)
    return np.tile(found, 2)


@dataclass(frozen=True, slots=True, eq=False)
class SeriesLook:
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


def best_look(
    functions: Functions, known: Posterior, variance: float, noise: NoiseSize, effects: bool
) -> SeriesLook:
    """Return the look after which predictions, or the effects alone, are expected to err least."""
    posterior = known.posterior
    best = None
    least = np.inf
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
            left = left[own, own]
            loss = loss[: functions.size, : functions.size]
        error = float(np.einsum("ij,ji->", loss, left))
        if best is None or error < least:
            best, least = kept, error
    assert best is not None  # constants alone are a candidate
    return _look(functions, known, best, variance, effects, _LAST_ROUNDS)


@dataclass(frozen=True, slots=True)
class NoiseSize:
    """The variance of each number of a vector whose moves have length one: Gaussian, or of the l2 ball."""

    max_norm: float
    amount: float
    pure: bool

    def variance(self, size: int) -> float:
        """Return the variance for a vector of this size."""
        return (size + 1 if self.pure else 1) * (self.max_norm / self.amount) ** 2


def _candidates(functions: Functions, known: Posterior, effects: bool) -> Iterator[Places]:
    """Yield sets of functions, by places in the basis, the constant always among them."""
    orders = functions.basis.orders
    groups = functions.groups[: functions.size]
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


def _ranked(functions: Functions, known: Posterior) -> Places:
    """Return the groups of covariates by how much their effects may still vary, the largest first."""
    size = functions.size
    groups = functions.groups[:size]
    variances = known.variances[size:]
    each = np.bincount(groups, variances)
    names = np.unique(groups[groups > 0])
    return np.asarray(names[np.argsort(-each[names], kind="stable")])


def _look(
    functions: Functions, known: Posterior, kept: Places, variance: float, effects: bool, rounds: int
) -> SeriesLook:
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
    return SeriesLook(columns, measured, solve, loss, shape * longest**2)


@dataclass(frozen=True, slots=True, eq=False)
class LookWeights:
    """One look as released: values, their covariance and its part that is noise, and how they depend on weights."""

    places: Places
    values: Floats
    covariance: Floats
    noise: Floats
    design: Floats


def learned(
    functions: Functions, known: Posterior, found: LookWeights, width: float, clipped: float
) -> Posterior:
    """Return what is known with one more look; `clipped` is the share of residuals that may have been clipped."""
    hidden = _HIDDEN * clipped * found.design @ known.posterior @ found.design.T
    solved = np.linalg.solve(found.covariance + hidden, np.column_stack((found.design, found.values)))
    information = known.information + found.design.T @ solved[:, :-1]
    score = known.score + found.design.T @ solved[:, -1]
    groups = functions.groups
    jitter = 1e-10 * np.trace(information) / len(information)
    steady = information + jitter * np.eye(len(information))
    sparse = spike_and_slab(steady, score, groups, np.tile(slab(functions.basis, width), 2), _SCALES)
    measured = known.measured.copy()
    measured[found.places] = True
    # Weights that no look has measured may be as large as was supposed, if their covariate matters.
    smallest = np.where(measured, _NOTHING, sparse.included) * known.before
    variances = np.where(groups == 0, known.before, np.maximum(sparse.variances, smallest))
    return Posterior(information, score, known.before, known.least, variances, sparse.weights, measured)


# Entries of a map are whole steps, and no column is longer than 2**17 of them: sums of a block stay below 2**53.
_ROOM = 1.5
MAP_STEP = _ROOM / 2.0**17
# Steps of the search for a size of residuals, on a grid of powers of it from this part of the range.
SEARCH_STEPS = 5
_FINEST = 1.0 / 128
# Standard deviations of a noisy count that are left above the size that is searched for.
_SAFE = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Outcomes minus a public prediction, in whole steps, and the clip in steps."""

    table: Table
    steps: Integers
    clip_steps: int

    @classmethod
    def of(cls, table: Table, prediction: Floats, clip: float | None = None) -> Residuals:
        """Return the residuals around a prediction in the outcome's units, clipped at `clip` or not at all."""
        low = float(table.study.outcome_range[0])
        unit = float(table.outcome_unit)
        predicted = np.clip(np.rint((prediction - low) / unit), 0, OUTCOME_STEPS).astype(np.int64)
        most = OUTCOME_STEPS if clip is None else max(1, min(OUTCOME_STEPS, ceil(clip / unit)))
        return cls(table, np.clip(table.outcome - predicted, -most, most), most)

    @property
    def clip(self) -> float:
        """The clip in the outcome's units."""
        return float(self.clip_steps * self.table.outcome_unit)

    def bound(self, longest: Fraction) -> LinearMap:
        """Return the sensitivities of maps of these residuals, in the outcome's units."""
        unit = self.table.outcome_unit
        return LinearMap(OUTCOME_STEPS * unit, self.clip_steps * unit, longest)


def release_levels(gate: Gate, name: str, table: Table) -> Floats:
    """Return the mean outcomes of control and treated, each from the sum over its arm."""
    low, high = table.study.outcome_range
    everybody = Residuals.of(table, np.full(table.rows, float(low + high) / 2))
    # A row is in one arm: its vector has length one.
    sums_by_arm = [int(everybody.steps[table.treated == arm].sum()) for arm in (False, True)]
    values = [Fraction(total) * table.outcome_unit for total in sums_by_arm]
    released = gate.release_vector(name, values, everybody.bound(Fraction(1)).values)
    treated = int(np.count_nonzero(table.treated))
    found = float(low + high) / 2 + released.floats() / np.array([table.rows - treated, treated])
    return np.asarray(np.clip(found, float(low), float(high)))


def search_names(name: str) -> tuple[str, ...]:
    """Return the names of the releases of one search for a size."""
    return tuple(f"{name}, step {step + 1}" for step in range(SEARCH_STEPS))


def share_above(share: float, rows: int, noise_variance: float) -> float:
    """Return the share of residuals that a search leaves above: the one asked for, or what noise hides."""
    return max(share, _SAFE * sqrt(noise_variance) / rows)


def release_size(gate: Gate, name: str, residuals: Residuals, share: float) -> float:
    """Return a size that all but about a share of the residuals stay below, by a noisy binary search of counts."""
    n = residuals.table.rows
    width = OUTCOME_STEPS
    size = np.abs(residuals.steps)
    grid = np.ceil(width * np.geomspace(_FINEST, 1.0, 2**SEARCH_STEPS)).astype(np.int64)
    low = 0
    high = len(grid) - 1
    for step in search_names(name):
        middle = (low + high) // 2
        count = int(np.count_nonzero(size <= grid[middle]))
        released = gate.release(step, Fraction(count), residuals.bound(Fraction(1)).counts)
        if float(released) >= n * (1 - share_above(share, n, released.noise.variance)):
            high = middle
        else:
            low = min(middle + 1, high)
    return float(int(grid[high]) * residuals.table.outcome_unit)


def release_squares(gate: Gate, name: str, residuals: Residuals) -> tuple[Floats, Floats]:
    """Return the mean squared residuals of control and treated and the standard deviation of the noise of each."""
    table = residuals.table
    unit = residuals.table.outcome_unit
    arms = [residuals.steps[table.treated == arm] for arm in (False, True)]
    values = [Fraction(exact_dot(steps, steps)) * unit**2 for steps in arms]
    released = gate.release_vector(name, values, residuals.bound(Fraction(1)).squares)
    rows = np.array([len(steps) for steps in arms], dtype=np.float64)
    return released.floats() / rows, sqrt(released.variance) / rows


def map_sums(
    functions: Functions, columns: Places, white: Floats, residuals: Residuals
) -> tuple[list[int], int]:
    """Return the sums of white @ Z_i[columns] times the residual, Z weighted, every column truncated to integers.

    They are in steps of `MAP_STEP`; with them comes the largest squared length of a column. Columns longer than
    `_ROOM` are shortened to it, which their bits hold; of the sample none is longer than one.
    """
    total = [0] * len(white)
    largest = 0
    for part, z in functions.weighted_blocks():
        moved = z[:, columns] @ white.T
        longer = np.sqrt(np.einsum("ij,ij->i", moved, moved)) / _ROOM
        # A little below one, so that rounding cannot carry an entry beyond its bits.
        steps = np.trunc(moved * ((1.0 - 2.0**-40) / MAP_STEP / np.maximum(longer, 1.0))[:, None])
        largest = max(largest, int(np.einsum("ij,ij->i", steps, steps).max()))
        found = sums(steps, residuals.steps[part].astype(np.float64))
        total = [whole + int(value) for whole, value in zip(total, found, strict=True)]
    return total, largest


def release_map(
    gate: Gate, name: str, functions: Functions, columns: Places, white: Floats, residuals: Residuals
) -> tuple[Floats, float]:
    """Return the sums of white @ Z_i[columns] times the residual, Z weighted, and the variance of the noise of each."""
    values, largest = map_sums(functions, columns, white, residuals)
    step = Fraction(MAP_STEP)
    unit = residuals.table.outcome_unit * step
    bound = residuals.bound(sqrt_up(Fraction(max(largest, 1))) * step)
    released = gate.release_vector(name, [value * unit for value in values], bound.values)
    return released.floats(), released.variance


PAGE = "rows/linear/linear_map.proof.md"
LEVELS, MODEL, EFFECTS = "arm levels", "model", "effects"
SIZE, SQUARES = "size of residuals", "squares of residuals"
# Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`;
# `python -m experiments.cate.tuning` compares some of them there.
# Parts of the budget in percent: levels, both searches for a size, both squares, the model; effects take the rest.
_FEW_COVARIATES, _MANY_COVARIATES, _PURE = (4, 7, 2, 20), (4, 7, 2, 45), (5, 18, 4, 25)
# The share of residuals that is clipped, times rows and mu a weight of first degree: in the first look and the last.
_CLIPPED, _MOST_CLIPPED = (2.4, 1.2), 0.12
# Nearer to an end of the range than this part of it, or than so many times the share that is clipped, a mean outcome
# may be carried by few people, whom clipping would cut off: nothing is clipped then.
_NEAR_END, _TIMES_CLIPPED = 0.05, 1.25
# A pure budget is worth about a mu of this part of its epsilon.
_PURE_MU = 0.25
# Rows for each function of first degree from which, with more than a few covariates, functions pay.
_ROWS_A_FUNCTION = 80
# Variances of what intervals allow for beyond normal noise: noise of the l2 ball has longer tails.
BALL_TAIL = 1.25
# Weights beyond the last order are supposed to fall with this power of it.
_BEYOND_FALL = 1.0
# The least squared residual, in parts of the squared clip.
_LEAST_SQUARE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class SeriesDesign:
    """The functions, the plan, and the shares of residuals that the two looks may clip."""

    functions: Functions
    plan: Plan
    clipped: tuple[float, float]
    width: float
    pure: bool


def function_pays(session: BaseSession, question: CateQuestion) -> bool:
    """Return whether a function is expected to be closer to effects that differ than one number; nothing is spent."""
    table = session.table
    largest = largest_basis(table, Series())
    first = first_size(table)
    if largest is None:
        return False
    few = len(table.study.covariates) <= FEW
    if not few and table.rows < _ROWS_A_FUNCTION * first:
        return False
    return is_worthwhile(_noise(table, question, largest.size, first), first, table.rows)


def _noise(table: Table, question: CateQuestion, largest: int, first: int) -> float:
    """Return the noise of effects that is expected of the last look, in parts of the outcome's range.

    Gaussian noise: that of the functions of first degree, with residuals clipped at a typical size. Pure noise is drawn
    for all functions together, so that each has more of it the more there are, and residuals are clipped less closely.
    """
    share = float(np.mean(table.treated))
    part = _effects_part(_parts(len(table.study.covariates), question.budget.pure)) / 100
    if question.budget.pure:
        size = largest
        sd = 3 * TYPICAL_SD * sqrt(largest) / (part * float(question.budget.epsilon))
    else:
        size = first
        sd = 2 * TYPICAL_SD / (_mu(question) * sqrt(part))
    return size * sd / (2 * share * (1 - share) * table.rows)


def series(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, only outcomes being private."""
    settings = question.settings if isinstance(question.settings, Series) else Series()
    functions = functions_of(session.table, settings)
    if functions is None:
        raise too_many(session)
    design = _design(functions, question)

    def compute(gate: Gate) -> CateModel:
        return _released(gate, session, question, design)

    return answer_request(CateModel, session, question, design.plan, compute)


def _design(functions: Functions, question: CateQuestion) -> SeriesDesign:
    low, high = functions.table.study.outcome_range
    size = first_size(functions.table)
    per_weight = functions.rows * _mu(question) / (2 * size)
    first, last = (min(_MOST_CLIPPED, part / per_weight) for part in _CLIPPED)
    return SeriesDesign(
        functions, _plan(functions, question), (first, last), float(high - low), question.budget.pure
    )


def _mu(question: CateQuestion) -> float:
    budget = question.budget
    return _PURE_MU * float(budget.epsilon) if budget.pure else float(mu_of(budget.epsilon, budget.delta))


def _parts(covariates: int, pure: bool) -> tuple[int, int, int, int]:
    """Return the parts of levels, sizes, squares and the model in percent, for this many covariates."""
    if pure:
        return _PURE
    return _FEW_COVARIATES if covariates <= FEW else _MANY_COVARIATES


def _effects_part(parts: tuple[int, int, int, int]) -> int:
    return 100 - sum(parts)


def _plan(functions: Functions, question: CateQuestion) -> Plan:
    parts = _parts(len(functions.table.study.covariates), question.budget.pure)
    levels, sizes, squares, model = parts
    shares = {LEVELS: Fraction(levels, 100), MODEL: Fraction(model, 100)}
    shares[EFFECTS] = Fraction(_effects_part(parts), 100)
    searched = [step for place in (1, 2) for step in search_names(f"{SIZE} {place}")]
    shares |= dict.fromkeys(searched, Fraction(sizes, 100 * len(searched)))
    shares |= {f"{SQUARES} {place}": Fraction(squares, 200) for place in (1, 2)}
    vectors = (LEVELS, MODEL, EFFECTS, f"{SQUARES} 1", f"{SQUARES} 2")
    return Plan.split(question.budget, shares, question.mechanism, dict.fromkeys(vectors, Kind.VECTOR))


def _released(gate: Gate, session: BaseSession, question: CateQuestion, design: SeriesDesign) -> CateModel:
    functions = design.functions
    table = design.functions.table
    low, high = (float(end) for end in table.study.outcome_range)
    middle = (low + high) / 2
    levels = release_levels(gate, LEVELS, table)
    prediction = levels[table.treated.astype(np.intp)]
    near = float(np.minimum(levels - low, high - levels).min()) / design.width
    known = nothing(functions, design.width)
    looked = _series_look(gate, design, known, prediction, 1, near)
    known = learned(functions, known, looked[0], design.width, design.clipped[0])
    prediction = np.clip(middle + functions.predicted(known.weights), low, high)
    before = known
    looked = _series_look(gate, design, known, prediction, 2, near)
    known = learned(functions, known, looked[0], design.width, design.clipped[1])
    return _model(session, question, design, before, known, *looked)


def _series_look(
    gate: Gate, design: SeriesDesign, known: Posterior, prediction: Floats, place: int, near: float
) -> tuple[LookWeights, float, Floats]:
    """Return what the first or the last look measures, around a prediction in the outcome's units.

    With it come its residuals' clip and mean squares of control and treated. `near` is how near a mean outcome lies
    to an end of the range.
    """
    functions = design.functions
    table = design.functions.table
    last = place == 2
    name = f"{SIZE} {place}"
    share = design.clipped[place - 1]
    size = release_size(gate, name, Residuals.of(table, prediction), share)
    noise_variance = design.plan.noise(search_names(name)[0], Fraction(1)).variance
    near_bound = near < max(_NEAR_END, _TIMES_CLIPPED * share_above(share, table.rows, noise_variance))
    residuals = Residuals.of(table, prediction, design.width if near_bound else size)
    squares, sds = release_squares(gate, f"{SQUARES} {place}", residuals)
    squares = np.clip(squares + sds, _LEAST_SQUARE * residuals.clip**2, residuals.clip**2)
    name = EFFECTS if last else MODEL
    max_norm = min(2 * residuals.clip, design.width)
    noise = NoiseSize(max_norm, float(design.plan.amount(name, Kind.VECTOR)), design.pure)
    look = best_look(functions, known, float(squares.mean()), noise, effects=last)
    measured = _measured(gate, name, functions, look, residuals, prediction, squares)
    return measured, residuals.clip, squares


def _measured(
    gate: Gate,
    name: str,
    functions: Functions,
    look: SeriesLook,
    residuals: Residuals,
    prediction: Floats,
    squares: Floats,
) -> LookWeights:
    root = matrix_power(look.shape, 0.5)
    inverse = matrix_power(look.shape, -0.5)
    white, variance = release_map(gate, name, functions, look.columns, inverse @ look.solve, residuals)
    low, high = (float(end) for end in functions.table.study.outcome_range)
    known = functions.products(prediction - (low + high) / 2)
    values = root @ white + look.solve @ known[look.columns]
    noise = root @ root * variance
    covariance = noise + look.sampling(functions, squares)
    return LookWeights(look.measured, values, covariance, noise, look.design(functions))


def _unshrunk(functions: Functions, before: Posterior, found: LookWeights) -> tuple[Floats, Floats, Floats]:
    """Return the weights of the effect that intervals are about, their covariance, and its part that is noise.

    A measured weight is A Z theta + noise. What A Z holds of other weights is taken off as far as they were known
    before, and the rest of it, with all that was not measured, has the covariance in which it was known.
    """
    size = functions.size
    picked = np.zeros_like(found.design)
    picked[np.arange(len(found.places)), found.places] = 1.0
    others = found.design - picked
    weights = before.weights[size:].copy()
    own = found.places - size
    weights[own] = found.values - others @ before.weights
    # How the error of every effect weight depends on the error of what was known before.
    carried = np.zeros((size, 2 * size))
    carried[np.arange(size), np.arange(size) + size] = 1.0
    carried[own] = -others
    covariance = carried @ before.cautious @ carried.T
    noise = np.zeros((size, size))
    noise[np.ix_(own, own)] = found.noise
    covariance[np.ix_(own, own)] += found.covariance
    return weights, covariance, noise


def _model(
    session: BaseSession,
    question: CateQuestion,
    design: SeriesDesign,
    before: Posterior,
    known: Posterior,
    looked: LookWeights,
    clip: float,
    squares: Floats,
) -> CateModel:
    functions = design.functions
    size = design.functions.size
    unshrunk, covariance, noise = _unshrunk(functions, before, looked)
    weights = known.weights[size:]
    tail = (BALL_TAIL - 1.0) * noise if design.pure else 0.0
    mechanism = "l2-ball noise" if design.pure else "Gaussian noise"
    used = ("ball", question.mechanism) if design.pure else ("gaussian",)
    found = CateModel(
        study=session.study,
        method="series regression (R-learner), noise shaped to its predictions",
        basis=functions.basis,
        weights=weights,
        covariance=covariance + tail,
        noise_covariance=noise,
        shrinkage=unshrunk - weights,
        level=question.level,
        guarantee=question.guarantee(session, (PAGE,), mechanisms=used),
        spent=question.budget,
        releases=_releases(mechanism),
        not_covered=_NOT_COVERED,
        details={
            "rows": functions.rows,
            "functions": size,
            "measured_functions": len(looked.places),
            "clip": clip,
            "residual_sd": sqrt(float(squares.mean())),
            "noise_of_effects": _mean_noise(functions, noise),
            "budget_split": _split(design.plan),
        },
        higher=higher(functions.basis, known.weights[size:] ** 2 + np.diag(known.cautious)[size:]),
    )
    mean = functions.plain[:size, 0] / functions.plain[0, 0] * float(functions.basis.scale[0])
    measured = Unshrunk(unshrunk, covariance + tail, functions.basis.orders, mean)
    return fall_back_to_average(found, measured, question.method == "auto" and question.settings is None)


def _mean_noise(functions: Functions, noise: Floats) -> float:
    """Return the root mean square over the rows of the noise in the unshrunk effects."""
    size = functions.size
    return sqrt(max(float(np.einsum("ij,ji->", functions.plain[:size, :size], noise)), 0.0) / functions.rows)


def higher(basis: Basis, squares: Floats) -> tuple[Basis, Floats] | None:
    """Return functions beyond the basis and the variance of each, from the expected squares of its own weights.

    Weights of a covariate go on from the larger of its last two, falling with a power of the order: as those of a
    function with a kink do.
    """
    found = beyond(basis)
    if found is None:
        return None
    further, orders, groups = found
    own = basis_groups(basis)
    variances = np.zeros(len(orders))
    for group in np.unique(groups[groups > 0]):
        last = float(basis.orders[own == group].max())
        ends = (own == group) & (basis.orders >= last - 1)
        more = groups == group
        variances[more] = squares[ends].max() * (last / orders[more]) ** (2 * _BEYOND_FALL)
    return further, variances


def _releases(mechanism: str) -> tuple[tuple[str, str], ...]:
    return (
        ("mean outcomes of the arms", mechanism),
        ("sizes of residuals", f"two searches of {len(search_names(''))} noisy counts each"),
        ("squares of residuals by arm", mechanism),
        ("a first model of outcomes and effects", f"{mechanism} in the shape of its predictions"),
        ("effects", f"{mechanism} in the shape of their predictions"),
    )


def _split(plan: Plan) -> str:
    """Return the parts of the budget in words, searches added up."""
    parts: dict[str, float] = {}
    for name, part in plan.parts.items():
        key = SIZE if name.startswith(SIZE) else SQUARES if name.startswith(SQUARES) else name
        parts[key] = parts.get(key, 0.0) + part
    return ", ".join(f"{name} {part:.0%}" for name, part in parts.items())


_NOT_COVERED = (
    Caveat.UNDECLARED_COVARIATES,
    Caveat.NOT_POLYNOMIAL,
    Caveat.UNEVEN_VARIANCE_WITHIN_ARM,
    Caveat.CLAMPING,
    Caveat.CLIPPED_RESIDUALS,
    Caveat.BEYOND_COVARIATES,
    Caveat.COVERAGE_MEASURED,
)


def too_many(session: BaseSession) -> CounterveilError:
    """Return CV-P526, for fewer rows than functions of first degree need."""
    size = first_size(session.table)
    return refusal("CV-P526", most_features=MOST_FEATURES, size=size, rows=session.table.rows)
