"""The releases behind a function: each one pass over blocks of rows, then the gate.

From released moments to weights: passes over the residuals, each refining the last, then shrinkage by groups.

With Gram matrix G, a pass over residuals around weights w releases G (w* - w) + noise. Adding the released G times w
gives the products G w* again, wrong by (released G - G)(w* - w): the better w is, the less the noise of
the Gram matrix enters, and the smaller the clip of the residuals. All passes are averaged by their variances.

T-learner: effects as the difference of two regressions, one in each arm, from noisy moments and residuals.

Lineage: the T-learner (Kuenzel et al. 2019) from noisy second moments.

R-learner: one regression of the outcome on functions of covariates and on their products with a - p(x).

If the propensity p is right, the second block is orthogonal to every function of covariates, so that the effect is
right even where the functions cannot express the outcome; if they can, p may be wrong.

Lineage: the R-learner (Nie and Wager 2021), after Robinson (1988).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Range, Study, Sums, Table
from counterveil.errors import refusal
from counterveil.estimators.histogram import HELD, beyond
from counterveil.estimators.moments.nuisance_models import LONGEST_RESIDUAL
from counterveil.estimators.moments.scaling import first_few, is_near_bound
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, make_basis
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.products import blocks, projected
from counterveil.numerics.public_choices import public_uniforms
from counterveil.numerics.shrinkage import Normal, Prior, RidgePosterior, shrink, upper_variances
from counterveil.privacy import Budget
from counterveil.privacy.caveats import Caveat, Fact, NotExpressed
from counterveil.results.answering import answer_request
from counterveil.results.functions import (
    CateModel,
    CateQuestion,
    Unshrunk,
    fall_back_to_average,
    is_worthwhile,
    require_gaussian,
    vector_plan,
)
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.residual_products import ResidualProducts, release_residual_products
from counterveil.rows.moments.scores import (
    STATISTIC_BITS,
    MomentSpan,
    UnitBlock,
    gradient_sums,
    higher_functions,
    higher_variances,
    lengths,
    shortened,
    size_counts,
    statistic_sums,
)
from counterveil.rows.moments.sensitivity import (
    DIAGONAL,
    SQUARE,
    arm_statistics,
)
from counterveil.session import BaseSession, Gate, Kind, Plan
from counterveil.settings import Cate

# Edges of the cells in which sizes of residuals are counted, each a fifth above the one before; no residual
# of an outcome in [-1, 1] needs to be larger than the last.
EDGES = np.geomspace(1.0 / 128, 2.0, 31)
# Part of the residuals that may be clipped, beside as many as the noise of the counts hides.
_CLIPPED = 0.002


@dataclass(frozen=True, slots=True)
class UnitPass:
    """A kernel over the rows that a form makes of a table, with what it is called with after them."""

    form: ArmForm | InteractedForm
    kernel: Callable[..., Sums]
    arguments: tuple[Any, ...]

    def __call__(self, block: Table, /) -> Sums:
        """Return the kernel's sums over a block."""
        return self.kernel(self.form.blocks(block), *self.arguments)


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows in a form, wherever they lie; `run` passes over all of them."""

    source: Backend
    form: ArmForm | InteractedForm

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.source.rows

    def run(self, kernel: Callable[..., Sums], *arguments: Any) -> Sums:
        """Return the kernel's sums over all rows."""
        return self.source.run(UnitPass(self.form, kernel, arguments))


@dataclass(frozen=True, slots=True)
class ArmProducts:
    """Released means over all rows: u u' and u v of every arm, v v; and their noise.

    `entry_sd` is the noise off the diagonals (on them it is larger by the root of two).
    """

    grams: tuple[Floats, ...]
    products: tuple[Floats, ...]
    square: float
    entry_sd: float
    product_sd: float


def release_statistics(gate: Gate, name: str, rows: UnitRows) -> ArmProducts:
    """Return the second moments of rows by arm, their products with the outcome, and its mean square."""
    n, size, arms = rows.count, rows.form.size, rows.form.arms

    def values() -> list[Fraction]:
        grams, products, square = rows.run(statistic_sums, arms)
        unit = Fraction(1, n * 4**STATISTIC_BITS)
        sums: list[Fraction] = []
        for place in range(arms):
            sums += [grams[place, i, i] * unit * DIAGONAL for i in range(size)]
            sums += [grams[place, i, j] * unit for i in range(size) for j in range(i + 1, size)]
            sums += [value * unit for value in products[place]]
        return [*sums, square[0] * unit * SQUARE]

    released = gate.release_vector(name, values, arm_statistics(n))
    found, sd = released.floats(), sqrt(released.variance)
    matrices, each = [], (len(found) - 1) // arms
    for place in range(arms):
        part = found[place * each : (place + 1) * each]
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size, 1)] = part[size : each - size]
        matrices.append(matrix + matrix.T + np.diag(part[:size] / float(DIAGONAL)))
    crossed = tuple(found[(place + 1) * each - size : (place + 1) * each] for place in range(arms))
    return ArmProducts(tuple(matrices), crossed, float(found[-1]) / float(SQUARE), sd, sd)


def release_gradient(gate: Gate, name: str, rows: UnitRows, weights: Floats, clip: float) -> ResidualProducts:
    """Return the mean of u times the residual at these weights (arms, size), clipped to [-clip, clip]."""
    sums = partial(rows.run, gradient_sums, weights, clip)
    return release_residual_products(gate, name, rows.count, sums, clip)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Noisy counts of sizes of residuals, as parts of all, between the edges; none is supposed beyond `largest`.

    Nearly all stay below `most`: skewed residuals that are clipped shift effects, so that few may be, as many as the
    noise of the counts hides.
    """

    counts: Floats
    sd: float
    most: float
    largest: float

    def lost(self, clip: float) -> float:
        """Return what a clip may take off a mean, as a standard deviation."""
        return float(self._lost(np.array([clip]))[0])

    def _lost(self, clips: Floats) -> Floats:
        low = np.append(0.0, EDGES)
        sizes = np.where(low < self.largest, (low + np.append(EDGES, EDGES[-1])) / 2, 0.0)
        return HELD * beyond(self.counts, self.sd, np.minimum(sizes, self.largest), clips)

    def clip(self, least: float, unit: float) -> float:
        """Return the clip of least error of a function whose noise is `unit` times the clip, no nearer than `least`."""
        clips = np.append(least, EDGES[least < EDGES])
        return float(clips[np.argmin((unit * clips) ** 2 + self._lost(clips) ** 2)])


def release_size(gate: Gate, name: str, rows: UnitRows, weights: Floats, level: float) -> Sizes:
    """Return sizes of residuals from a noisy histogram; `level` is the mean outcome."""
    released = release_counts(gate, name, lambda: rows.run(size_counts, weights, EDGES)[0], pure=False)
    edges, counts = np.append(EDGES, EDGES[-1]), released.floats()
    most = first_few(counts, released.variance, _CLIPPED * rows.count, -1.0, edges)[0]
    return Sizes(counts / rows.count, sqrt(released.variance) / rows.count, most, 1 + min(abs(level), 1.0))


_MIDDLE = OUTCOME_STEPS // 2


@dataclass(frozen=True, slots=True)
class ArmForm:
    """Rows by arm: the features of every row, and its outcome, shortened together."""

    basis: Basis
    length: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        return 2

    @property
    def size(self) -> int:
        """Length of a row."""
        return self.basis.size

    def blocks(self, table: Table, /) -> Iterator[UnitBlock]:
        """Yield all rows, a block at a time."""
        for part in blocks(table.rows):
            u, factor = shortened(self.basis.features(table.covariates, part), self.length)
            yield u, table.arm[part], factor * outcomes(table, part)


@dataclass(frozen=True, slots=True)
class InteractedForm:
    """Rows (psi, 2 (a - p) psi), p the released propensity, shortened by what covariates alone allow.

    `offset` are weights whose function times p is taken off the outcome, so that a look at residuals may
    start from two regressions by arm.
    """

    basis: Basis
    length: float
    propensity: LinearPropensity
    offset: Floats
    start: Floats
    clip: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart: all rows are one."""
        return 1

    @property
    def size(self) -> int:
        """Length of a row."""
        return 2 * self.basis.size

    def blocks(self, table: Table, /) -> Iterator[UnitBlock]:
        """Yield all rows, a block at a time."""
        for part in blocks(table.rows):
            psi = self.basis.features(table.covariates, part)
            p = self.propensity.of(psi)
            treatment_residual = 2.0 * (table.treated[part] - p)
            # The longest that a row with these covariates could be, in either arm: weights must not tell arms apart.
            longest = np.sqrt(1.0 + 4.0 * np.maximum(p, 1.0 - p) ** 2)
            size = lengths(psi) * longest
            factor = self.length / np.maximum(size, self.length)
            scaled = psi * (factor / self.length)[:, None]
            u = np.concatenate((scaled, scaled * treatment_residual[:, None]), axis=1)
            v = factor * (outcomes(table, part) - p * projected(psi, self.offset))
            arm = np.zeros(len(v), dtype=np.intp)
            if self.clip < np.inf:
                v = np.clip((v - projected(u, self.start)) / self.clip, -1.0, 1.0)
            yield u, arm, v


@dataclass(frozen=True, slots=True)
class LinearPropensity:
    """Probabilities of treatment from released weights of the features, kept `least` away from 0 and 1."""

    weights: Floats
    least: float

    def of(self, psi: Floats) -> Floats:
        """Return the probability of every row."""
        return np.clip(0.5 + 0.5 * projected(psi, self.weights), self.least, 1.0 - self.least)


def outcomes(table: Table, part: slice) -> Floats:
    """Return the outcomes of a block, in [-1, 1] (half the range is one)."""
    return np.asarray((table.outcome[part] - _MIDDLE) / _MIDDLE)


# Eigenvalues of a released matrix are kept above this many standard deviations of an entry.
_FLOOR = 0.5
_LEAST_RESIDUAL, _LARGEST_RESIDUAL = 1e-4, 1.0
_ROUNDS = 3
_RIDGE = 1e-12  # of the mean information, lest rounding make it singular
EFFECT = 1  # the block of groups of the effect; that of the outcome's other part is 0


@dataclass(frozen=True, slots=True)
class System:
    """Released Gram matrices, one an arm, and how observed weights are made of the parameters.

    The weights of all arms, one after another, are `mixing` @ theta; theta holds those of the outcome's
    common part and then the `effects` weights of the effect. `entry_variance` is that of the matrices' noise.
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
        found = np.zeros((size * len(self.grams),) * 2)
        for place, block in enumerate(self.grams):
            own = slice(place * size, (place + 1) * size)
            found[own, own] = block
        return found

    def weights(self, theta: Floats) -> Floats:
        """Return the weights (arms, size) of parameters."""
        return np.asarray((self.mixing @ theta).reshape(len(self.grams), -1))

    def prediction_error(self, covariance: Floats) -> float:
        """Return the mean squared error of predictions when parameters have this covariance."""
        each = self.mixing @ covariance @ self.mixing.T
        return float(np.einsum("ij,ji->", self.gram, each))

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
    """Products G w* as seen so far, the privacy variance of each, and what the Gram's noise adds to it.

    `lost` are standard deviations of what clips take off, which go together in all passes.
    """

    products: tuple[Floats, ...]
    noise: tuple[float, ...]
    extra: tuple[float, ...]
    lost: tuple[float, ...]

    def and_(self, products: Floats, noise: float, extra: float, lost: float) -> Passes:
        """Return the passes with one more."""
        more = (*self.products, products), (*self.noise, noise), (*self.extra, extra)
        return Passes(*more, (*self.lost, lost))

    def averaged(self) -> tuple[Floats, float, float, float]:
        """Return the average by variances, the two parts of its variance, and what clips take off it."""
        noise, extra, lost = np.array(self.noise), np.array(self.extra), np.array(self.lost)
        # Noise is in every coordinate, what clips take off in all together.
        inverse = 1.0 / (noise + extra + lost**2 / len(self.products[0]))
        share = inverse / inverse.sum()
        mean = np.einsum("i,ij->j", share, np.array(self.products))
        return mean, float(share**2 @ noise), float(share**2 @ extra), float(share @ lost)


def positive(matrix: Floats, sd: float) -> Floats:
    """Return the matrix with eigenvalues raised to a part of the noise of an entry."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, _FLOOR * sd)) @ vectors.T)


def first_fit(system: System, moments: ArmProducts, guess: float) -> tuple[LearnerFit, Passes]:
    """Return the fit to the moments themselves; `guess` is the squared length of weights before any is seen."""
    products = np.concatenate(moments.products)
    length, residual = guess, min(max(moments.square, _LEAST_RESIDUAL), _LARGEST_RESIDUAL)
    for _ in range(_ROUNDS):
        passes = Passes((products,), (moments.product_sd**2,), (system.entry_variance * length,), (0.0,))
        fit = fitted(system, passes, residual)
        weights = system.mixing @ fit.theta
        length = float(weights @ weights) / len(system.grams)
        left = moments.square - 2 * float(weights @ products) + float(weights @ system.gram @ weights)
        residual = min(max(left, 0.02), _LARGEST_RESIDUAL)
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
    return min(LONGEST_RESIDUAL, max(clip_sds * sqrt(variance), 0.01))


def refined(
    system: System, fit: LearnerFit, passes: Passes, found: ResidualProducts, lost: float
) -> tuple[LearnerFit, Passes]:
    """Return the fit with one more pass, over residuals around the last weights, of which a clip may take `lost`."""
    products = found.products + system.gram @ system.mixing @ fit.theta
    error = fit.shrunken.posterior
    more = passes.and_(products, found.sd**2, system.entry_variance * system.length(error), lost)
    residual = found.square - max(system.prediction_error(error), 0.0) / 2
    return fitted(system, more, min(max(residual, _LEAST_RESIDUAL), _LARGEST_RESIDUAL)), more


def fitted(system: System, passes: Passes, residual: float) -> LearnerFit:
    """Return the parameters that all passes agree on, shrunk by groups."""
    mean, covariance = measured(system, passes, residual)
    normal = Normal.of(system.gram @ system.mixing, mean, covariance)
    return LearnerFit(shrink(normal, system.prior), normal, residual)


def measured(system: System, passes: Passes, residual: float) -> tuple[Floats, Floats]:
    """Return what all passes say and its covariance; those of whom clips take off are like all people."""
    mean, noise, extra, lost = passes.averaged()
    own = (residual / system.rows + lost**2) * system.gram
    return mean, (noise + extra) * np.eye(len(mean)) + own


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
    left = np.eye(len(upper)) - shrunken.response
    total = gain @ covariance @ gain.T + (left * upper) @ left.T
    own = slice(len(upper) - system.effects, None)
    private = gain @ gain.T * (noise + extra)
    return fit.theta[own], total[own, own], private[own, own]


def unshrunk(system: System, fit: LearnerFit, orders: Floats) -> Unshrunk:
    """Return the effect's weights by generalised least squares, without a prior.

    Mean features, in parts of the first one, which is constant, are the first column of the released Gram matrices.
    """
    information = fit.normal.information
    ridge = _RIDGE * np.trace(information) / len(information)
    covariance = np.linalg.inv(information + ridge * np.eye(len(information)))
    own = slice(len(covariance) - system.effects, None)
    column = sum((gram[: system.effects, 0] for gram in system.grams), np.zeros(system.effects))
    return Unshrunk((covariance @ fit.normal.score)[own], covariance[own, own], orders, column / column[0])


def half_range(session: BaseSession) -> float:
    """Return half the outcome's range, the unit in which everything is computed."""
    low, high = session.study.outcome_range
    return float(high - low) / 2


def effect_model(
    session: BaseSession,
    question: CateQuestion,
    method: str,
    design: LearnerDesign,
    plan: Plan,
    system: System,
    fit: LearnerFit,
    passes: Passes,
    scale: float,
) -> CateModel:
    """Return the model of weights that belong to basis functions times `scale`, in the outcome's units.

    Weights without a prior decide between function and one number where `auto` chose the method.
    """
    basis, unit = design.basis, half_range(session) * scale
    weights, errors, noise = effect_weights(system, fit, passes)
    free = unshrunk(system, fit, basis.orders)
    values, covariance = weights * unit, errors * unit**2
    further = higher_functions(basis)
    mechanism = "l2-ball noise" if question.budget.pure else "Gaussian noise"
    mechanisms = ("ball" if question.budget.pure else "gaussian",)
    found = CateModel(
        study=session.study,
        method=method,
        basis=basis,
        weights=values,
        covariance=covariance,
        noise_covariance=noise * unit**2,
        level=question.level,
        guarantee=question.guarantee(session, PAGES, mechanisms=mechanisms),
        spent=question.budget,
        releases=tuple((name, mechanism) for name, _ in plan.amounts),
        not_covered=not_covered(basis),
        details={
            "rows": system.rows,
            "functions": basis.size,
            "residual_sd": sqrt(fit.residual) * half_range(session),
            "budget_split": plan.shares,
        },
        higher=None if further is None else (further, higher_variances(basis, values, covariance)),
    )
    mean = free.mean * float(basis.scale[0])
    scaled = replace(free, weights=free.weights * unit, covariance=free.covariance * unit**2, mean=mean)
    return fall_back_to_average(found, scaled, question.method == "auto" and question.settings is None)


def not_covered(basis: Basis) -> tuple[Fact, ...]:
    """Return what intervals do not cover."""
    families = tuple(dict.fromkeys(axis.family for axis in basis.axes))
    return (
        *((Caveat.FLAT_ENDS,) if "cosine" in families else ()),
        Caveat.UNDECLARED_COVARIATES,
        NotExpressed(families),
        Caveat.CLAMPING,
        Caveat.CLIPPED_RESIDUALS,
        Caveat.COVERAGE_MEASURED,
    )


# Features of the largest basis: two covariances of their weights stay below 100 kB of text.
MOST_FEATURES = 100
# Rows longer than this part of the root mean squared length of rows under the uniform mechanism are shortened to it.
_LENGTH = 0.92
# Covariates up to which functions of several are multiplied.
_FEW = 3
_SPLINE_DEGREE = 4
# Strength (rows times mu a feature) from which a degree is taken, with products of covariates and without.
_WITH_PRODUCTS = ((6, 150.0), (5, 60.0), (4, 0.0), (3, 0.0), (2, 0.0), (1, 0.0))
_WITHOUT = ((4, 400.0), (3, 150.0), (2, 0.0), (1, 0.0))
# Noise of effects in parts of the outcome's range, times strength and the root of the number of features: measured.
_NOISE, _PURE_NOISE = 6.5, 13.0
# Rows for each function of first degree below which, with more than a few covariates, shrunken fits adjust for
# confounding so much worse than one adjusted effect for all that this is closer to the effects.
_ROWS_A_FUNCTION = 80


@dataclass(frozen=True, slots=True)
class LearnerDesign:
    """A basis, the length to which rows are shortened, and whether it is expected to be closer than one number."""

    basis: Basis
    length: float
    is_worthwhile: bool


def strength(rows: int, budget: Budget, features: int) -> float:
    """Return rows times mu over the number of features, from public numbers."""
    if budget.pure:
        # One coordinate of l2-ball noise of k numbers has standard deviation (about) sqrt(k) / epsilon.
        released = (features + 1) * (features + 2)
        return rows * float(budget.epsilon) / sqrt(released) / features
    return rows * _mu(budget) / features


@lru_cache(maxsize=64)
def _mu(budget: Budget) -> float:
    return float(mu_of(budget.epsilon, budget.delta))


def choose_design(study: Study, rows: int, budget: Budget, settings: Cate) -> LearnerDesign:
    """Return the largest basis that is expected to pay, from public numbers, or the smallest one if none is."""
    if settings.degree is not None or settings.basis == "spline":
        return _design(_basis(study, settings.degree or _SPLINE_DEGREE, settings), is_worthwhile=True)
    products = _products(study, settings)
    smallest = _basis(study, 1, settings)
    if not products and rows < _ROWS_A_FUNCTION * smallest.size:
        return _design(smallest, is_worthwhile=False)
    for degree, least in _WITH_PRODUCTS if products else _WITHOUT:
        basis = _basis(study, degree, settings)
        enough = strength(rows, budget, basis.size) >= least
        if (
            enough
            and basis.size <= MOST_FEATURES
            and is_worthwhile(_noise(rows, budget, basis.size), basis.size, rows)
        ):
            return _design(basis, is_worthwhile=True)
    return _design(smallest, is_worthwhile=False)


def design_of(session: BaseSession, question: CateQuestion) -> LearnerDesign:
    """Return the basis that a function is released in, or raise CV-P526 where it is too large."""
    settings = question.settings or Cate()
    design = choose_design(session.study, session.batches.rows, question.budget, settings)
    if design.basis.size > MOST_FEATURES:
        raise refusal("CV-P526b", most_features=MOST_FEATURES, features=design.basis.size)
    return design


def _noise(rows: int, budget: Budget, features: int) -> float:
    """Return the noise of effects that is expected in functions of so many features, in parts of the range."""
    size = _PURE_NOISE if budget.pure else _NOISE
    return size / sqrt(features) / strength(rows, budget, features)


def _design(basis: Basis, is_worthwhile: bool) -> LearnerDesign:
    # The root mean squared length under the uniform mechanism is a public number of the basis.
    return LearnerDesign(basis, _LENGTH * sqrt(float(basis.squares.sum())), is_worthwhile)


def _basis(study: Study, degree: int, settings: Cate) -> Basis:
    return make_basis(tuple(axes_of(study, degree, settings)), degree, _products(study, settings))


def _products(study: Study, settings: Cate) -> bool:
    return len(study.covariates) <= _FEW if settings.products is None else settings.products


def axes_of(study: Study, degree: int, settings: Cate) -> list[Axis]:
    """Return one axis a covariate: functions of numbers, contrasts of labels."""
    found = []
    for name, domain in study.covariates.items():
        if not isinstance(domain, Range):
            if len(domain.labels) > 1:
                found.append(Axis(name, "labels", len(domain.labels)))
            continue
        low, high = domain.floats()
        axis = Axis(name, settings.basis, degree, low, high - low)
        if settings.basis == "spline":
            knots = tuple((place + 1) / (settings.knots + 1) for place in range(settings.knots))
            axis = replace(axis, size=settings.knots, knots=knots)
        found.append(axis)
    return found


# Standard deviation of the mean outcome and of the mean effect, in units of half the range.
_LEVEL = 0.5


def effect_prior(common: Basis, effect: Basis, common_length: float, effect_length: float) -> Prior:
    """Return the prior of the weights of the common part and of the effect.

    A function of order k has standard deviation scale/k; functions of the same covariates share a scale.
    `common_length` and `effect_length` are what the features were divided by.
    """
    first, groups, count = _block(common, common_length, 0)
    second, more, total = _block(effect, effect_length, count)
    blocks = np.concatenate((np.zeros(count, np.intp), np.ones(total - count, np.intp)))
    return Prior(np.concatenate((first, second)), np.concatenate((groups, more)), blocks)


def _block(basis: Basis, length: float, start: int) -> tuple[Floats, NDArray[np.intp], int]:
    orders = np.maximum(basis.orders, 1.0)
    base = (length / basis.scale / orders) ** 2
    base[0] *= _LEVEL**2
    places: dict[tuple[int, ...], int] = {}
    groups = [-1]
    for term, size in zip(basis.terms, basis.sizes[1:], strict=True):
        groups += [places.setdefault(term.axes, start + len(places))] * size
    return base, np.array(groups, dtype=np.intp), start + len(places)


PAGES = (
    "rows/moments/arm_statistics.proof.md",
    "rows/moments/orthogonal_score.proof.md",
    "rows/histogram.proof.md",
)
# Parts of the budget: the moments, the size of residuals; passes over residuals take the rest, the last one most of it.
_MOMENTS, _SIZE, _LAST = Fraction(20, 100), Fraction(4, 100), Fraction(46, 100)
_PASSES = 3
# Residuals are clipped at this many standard deviations before their size is known; where rows are few for every
# function, noise outweighs what clipping shifts, and they are clipped lower and always.
RESIDUAL_CLIP_SDS, _LOW_CLIP_SDS, _T_LEARNER_FEW = 3.0, 2.0, 60.0
SIZE = "size of residuals"
# Features up to which noise outside the space of possible moments is taken out.
_SPANNED = 36
_SPAN_SEED = 11


def t_learner(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, by a regression in each arm."""
    design = design_of(session, question)
    pass_names = [f"residuals {place + 1}" for place in range(_PASSES)]
    plan = vector_plan(question, _shares(pass_names))
    rows = UnitRows(session.batches, ArmForm(design.basis, design.length))
    few = strength(rows.count, question.budget, design.basis.size) < _T_LEARNER_FEW

    def compute(gate: Gate) -> CateModel:
        moments = release_statistics(gate, "moments", rows)
        system = arm_system(design, moments, rows.count)
        fit, passes = first_fit(system, moments, guess(system))
        level = mean_outcome(moments, constant_of(design))
        first, *later = pass_names
        clip_sds = _LOW_CLIP_SDS if few else RESIDUAL_CLIP_SDS
        clip = next_clip(system, fit, clip_sds, level)
        gradient = release_gradient(gate, first, rows, system.weights(fit.theta), clip)
        fit, passes = refined(system, fit, passes, gradient, 0.0)
        sizes = release_size(gate, SIZE, rows, system.weights(fit.theta), level)
        passes = replace(passes, lost=(0.0, sizes.lost(clip)))
        unit = sqrt(design.basis.size) * gradient.sd / clip * float(plan.amount(first, Kind.VECTOR))
        for name in later:
            least = min(sizes.most, next_clip(system, fit, clip_sds, level)) if few else sizes.most
            clip = sizes.clip(least, unit / float(plan.amount(name, Kind.VECTOR)))
            gradient = release_gradient(gate, name, rows, system.weights(fit.theta), clip)
            fit, passes = refined(system, fit, passes, gradient, sizes.lost(clip))
        return effect_model(
            session, question, "T-learner", design, plan, system, fit, passes, 1.0 / design.length
        )

    return answer_request(CateModel, session, question, plan, compute)


def _shares(passes: list[str]) -> dict[str, Fraction]:
    """Return the parts of the budget by name: of several passes the last takes most and the first least."""
    left, before = 1 - _MOMENTS - _SIZE, passes[:-1]
    total = sum(range(1, len(before) + 1))
    found = {"moments": _MOMENTS}
    found |= {name: (left - _LAST) * Fraction(place + 1, total) for place, name in enumerate(before)}
    return found | {passes[-1]: _LAST if before else left, SIZE: _SIZE}


def constant_of(design: LearnerDesign) -> float:
    """Return the first feature, the same in every row, before rows are shortened."""
    return float(design.basis.scale[0]) / design.length


def guess(system: System) -> float:
    """Return a squared length of an arm's weights before any is seen: a level of half the prior's."""
    return float(system.prior.base[0]) / 2


def arm_system(design: LearnerDesign, moments: ArmProducts, rows: int) -> System:
    """Return the normal equations of two arms in terms of a common part and an effect."""
    basis, size = design.basis, design.basis.size
    grams, part = list(moments.grams), 1.0
    if 1 < size <= _SPANNED:
        span = _span(basis)
        grams, part = [span.project(matrix) for matrix in grams], span.part
    sd = moments.entry_sd * sqrt(2 * part)
    identity = np.eye(size)
    mixing = np.block([[identity, -identity / 2], [identity, identity / 2]])
    prior = effect_prior(basis, basis, design.length, design.length)
    kept = tuple(positive(matrix, sd / 2) for matrix in grams)
    return System(kept, mixing, prior, size, rows, moments.entry_sd**2 * part)


# Seconds of decomposition for the largest bases, and the same for every question about one study.
@lru_cache(maxsize=1)
def _span(basis: Basis) -> MomentSpan:
    """Return the space of this basis's second moments; nothing in it depends on rows."""
    return MomentSpan.of(_public_features(basis))


def _public_features(basis: Basis) -> Floats:
    """Return features at public points of the domain, more than there are products of two of them."""
    count = 2 * basis.size * (basis.size + 1)
    uniform = public_uniforms(count, len(basis.axes), _SPAN_SEED)
    columns = {
        axis.source: np.floor(uniform[:, place] * axis.size)
        if axis.family == "labels"
        else axis.low + axis.width * uniform[:, place]
        for place, axis in enumerate(basis.axes)
    }
    return basis.features(columns)


# Parts of the budget: moments by arm, moments of the interacted rows, the size of residuals; steps take the rest,
# the last one half of it.
_R_LEARNER_MOMENTS, _INTERACTED, _R_LEARNER_SIZE = 15, 20, 3
_R_LEARNER_PASSES = 2
# Length to which rows are shortened, beside that of the features alone: both blocks are about as long.
_BOTH = sqrt(2.0)
# Propensities are kept this far from 0 and 1.
_LEAST_PROPENSITY = 0.05


def r_learner(session: BaseSession, question: CateQuestion) -> CateModel:
    """Return the effect as a function of the covariates, by one regression of both arms."""
    require_gaussian(question, "r_learner", session.batches.rows)
    design = design_of(session, question)
    steps = [f"step {place + 1}" for place in range(_R_LEARNER_PASSES)]
    plan = vector_plan(question, _r_learner_shares(steps))

    def compute(gate: Gate) -> CateModel:
        system, fit, passes = _fit(gate, session, design, plan, steps)
        scale = 2.0 / (design.length * _BOTH)
        return effect_model(session, question, "R-learner", design, plan, system, fit, passes, scale)

    return answer_request(CateModel, session, question, plan, compute)


def _r_learner_shares(steps: list[str]) -> dict[str, Fraction]:
    left = 100 - _R_LEARNER_MOMENTS - _INTERACTED - _R_LEARNER_SIZE
    parts = {"moments": _R_LEARNER_MOMENTS, "interacted moments": _INTERACTED, SIZE: _R_LEARNER_SIZE}
    found = {name: Fraction(part, 100) for name, part in parts.items()}
    for place, name in enumerate(steps):
        last = place == len(steps) - 1
        weight = Fraction(7, 10) if last else Fraction(3, 10) / (len(steps) - 1)
        found[name] = Fraction(left, 100) * (weight if len(steps) > 1 else 1)
    return found


def _fit(
    gate: Gate, session: BaseSession, design: LearnerDesign, plan: Plan, steps: list[str]
) -> tuple[System, LearnerFit, Passes]:
    """Return the normal equations of the interacted rows and what all passes say."""
    source, size = session.batches, design.basis.size
    moments = release_statistics(gate, "moments", UnitRows(source, ArmForm(design.basis, design.length)))
    by_arm = arm_system(design, moments, source.rows)
    start, _ = first_fit(by_arm, moments, guess(by_arm))
    propensity = propensity_of(session.study, design, by_arm, moments)
    length = design.length * _BOTH
    weights = by_arm.weights(start.theta)
    effect = (weights[1] - weights[0]) / design.length
    theta = np.concatenate((weights[0] / design.length, effect / 2)) * length
    level = mean_outcome(moments, constant_of(design))
    clip = next_clip(by_arm, start, RESIDUAL_CLIP_SDS, level)
    form = InteractedForm(design.basis, length, propensity, effect, theta, clip)
    found = release_statistics(gate, "interacted moments", UnitRows(source, form))
    gram = positive(found.grams[0], found.entry_sd * sqrt(2.0))
    prior = effect_prior(design.basis, design.basis, length, length / 2)
    system = System((gram,), np.eye(2 * size), prior, size, source.rows, found.entry_sd**2)
    error = start.shrunken.posterior * 2
    products = found.products[0] * clip + gram @ theta
    noise, extra = found.product_sd**2 * clip**2, found.entry_sd**2 * float(np.trace(error))
    passes = Passes((products,), (noise,), (extra,), (0.0,))
    residual = min(max(found.square * clip**2 / 2, 1e-4), 1.0)
    fit = fitted(system, passes, residual)
    plain = UnitRows(source, replace(form, clip=inf))
    sizes = release_size(gate, SIZE, plain, system.weights(fit.theta), level)
    passes = replace(passes, lost=(sizes.lost(clip),))
    unit = sqrt(design.basis.size) * found.product_sd * float(plan.amount("interacted moments", Kind.VECTOR))
    for name in steps:
        clip = sizes.clip(sizes.most, unit / float(plan.amount(name, Kind.VECTOR)))
        gradient = release_gradient(gate, name, plain, system.weights(fit.theta), clip)
        fit, passes = refined(system, fit, passes, gradient, sizes.lost(clip))
    return system, fit, passes


def propensity_of(
    study: Study, design: LearnerDesign, by_arm: System, moments: ArmProducts
) -> LinearPropensity:
    """Return the propensity as a function: the declared share of a trial, or a regression off the moments by arm.

    The first feature is constant, so that the first columns of the arms' matrices hold the products of
    the features with treatment.
    """
    basis = design.basis
    if study.treated_share is not None:
        weights = np.zeros(basis.size)
        weights[0] = (2 * float(study.treated_share) - 1) / basis.scale[0]
        return LinearPropensity(weights, _LEAST_PROPENSITY)
    gram = by_arm.grams[0] + by_arm.grams[1]
    constant = constant_of(design)
    products = (moments.grams[1] - moments.grams[0])[:, 0] / constant
    noise = 2 * by_arm.entry_variance * 2 / constant**2
    normal = Normal.of(gram, products, noise * np.eye(basis.size) + gram / by_arm.rows)
    base, groups, count = _block(basis, design.length, 0)
    found = shrink(normal, Prior(base, groups, np.zeros(count, np.intp)))
    return LinearPropensity(found.weights / design.length, _LEAST_PROPENSITY)
