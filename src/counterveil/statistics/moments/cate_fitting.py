"""From released moments to weights: passes over the residuals, each refining the last, then shrinkage by groups.

With Gram matrix G, a pass over residuals around weights w releases G (w* - w) + noise. Adding the released G times w
gives the products G w* again, wrong by (released G - G)(w* - w): the better w is, the less the noise of
the Gram matrix enters, and the smaller the clip of the residuals. All passes are averaged by their variances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

import numpy as np

from counterveil.data import Range, Study
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, make_basis
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.shrinkage import Normal, Prior, Shrunken, shrink, upper_variances
from counterveil.privacy import Budget
from counterveil.privacy.caveats import Caveat, Fact, NotExpressed
from counterveil.results.cate_model import CateModel
from counterveil.results.cate_question import CateQuestion
from counterveil.results.one_effect import Unshrunk, decided, pays
from counterveil.session import Plan, Session
from counterveil.settings import Cate
from counterveil.statistics.moments.cate_releases import Gradient, Moments
from counterveil.statistics.moments.doubly_robust_models import LONGEST_RESIDUAL, carried_by_few
from counterveil.statistics.moments.kernels.unit_rows import higher_functions, higher_variances

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
class Fit:
    """Parameters, what is known of their error, and the mean squared residual."""

    shrunken: Shrunken
    normal: Normal
    residual: float

    @property
    def theta(self) -> Floats:
        """The parameters."""
        return self.shrunken.weights


@dataclass(frozen=True, slots=True)
class Passes:
    """Products G w* as seen so far, the privacy variance of each, and what the Gram's noise adds to it."""

    products: tuple[Floats, ...]
    noise: tuple[float, ...]
    extra: tuple[float, ...]

    def and_(self, products: Floats, noise: float, extra: float) -> Passes:
        """Return the passes with one more."""
        return Passes((*self.products, products), (*self.noise, noise), (*self.extra, extra))

    def averaged(self) -> tuple[Floats, float, float]:
        """Return the average by variances, and the two parts of its variance."""
        inverse = np.array([1.0 / (a + b) for a, b in zip(self.noise, self.extra, strict=True)])
        share = inverse / inverse.sum()
        mean = np.einsum("i,ij->j", share, np.array(self.products))
        return mean, float(share**2 @ np.array(self.noise)), float(share**2 @ np.array(self.extra))


def positive(matrix: Floats, sd: float) -> Floats:
    """Return the matrix with eigenvalues raised to a part of the noise of an entry."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, _FLOOR * sd)) @ vectors.T)


def first_fit(system: System, moments: Moments, guess: float) -> tuple[Fit, Passes]:
    """Return the fit to the moments themselves; `guess` is the squared length of weights before any is seen."""
    products = np.concatenate(moments.products)
    length, residual = guess, min(max(moments.square, _LEAST_RESIDUAL), _LARGEST_RESIDUAL)
    for _ in range(_ROUNDS):
        passes = Passes((products,), (moments.product_sd**2,), (system.entry_variance * length,))
        fit = fitted(system, passes, residual)
        weights = system.mixing @ fit.theta
        length = float(weights @ weights) / len(system.grams)
        left = moments.square - 2 * float(weights @ products) + float(weights @ system.gram @ weights)
        residual = min(max(left, 0.02), _LARGEST_RESIDUAL)
    return Fit(fit.shrunken, fit.normal, residual), passes


def mean_outcome(moments: Moments, constant: float) -> float:
    """Return the mean outcome as released, in units of half its range around the middle.

    `constant` is the first feature, which is the same in every row before rows are shortened.
    """
    level = sum(float(products[0]) for products in moments.products)
    size = sum(float(gram[0, 0]) for gram in moments.grams)
    return constant * level / size if size > 0 else 0.0


def next_clip(system: System, fit: Fit, reach: float, level: float) -> float:
    """Return the clip of the next pass: `reach` standard deviations of what its residuals are expected to be.

    `level` is the mean outcome: near an end of the range nothing is clipped.
    """
    if carried_by_few(level):
        return LONGEST_RESIDUAL
    variance = fit.residual + max(system.prediction_error(fit.shrunken.posterior), 0.0)
    return min(LONGEST_RESIDUAL, max(reach * sqrt(variance), 0.01))


def refined(system: System, fit: Fit, passes: Passes, found: Gradient) -> tuple[Fit, Passes]:
    """Return the fit with one more pass, over residuals around the last weights."""
    products = found.products + system.gram @ system.mixing @ fit.theta
    error = fit.shrunken.posterior
    more = passes.and_(products, found.sd**2, system.entry_variance * system.length(error))
    residual = found.square - max(system.prediction_error(error), 0.0) / 2
    return fitted(system, more, min(max(residual, _LEAST_RESIDUAL), _LARGEST_RESIDUAL)), more


def fitted(system: System, passes: Passes, residual: float) -> Fit:
    """Return the parameters that all passes agree on, shrunk by groups."""
    mean, noise, extra = passes.averaged()
    covariance = (noise + extra) * np.eye(len(mean)) + residual / system.rows * system.gram
    normal = Normal.of(system.gram @ system.mixing, mean, covariance)
    return Fit(shrink(normal, system.prior), normal, residual)


@dataclass(frozen=True, slots=True)
class EffectWeights:
    """Weights of the effect, the covariance of their error, and the part of it that is privacy noise."""

    values: Floats
    covariance: Floats
    noise: Floats


def effect_weights(system: System, fit: Fit, passes: Passes) -> EffectWeights:
    """Return the effect's weights; true weights may be as large as upper limits of their groups' scales."""
    mean, noise, extra = passes.averaged()
    covariance = (noise + extra) * np.eye(len(mean)) + residual_part(system, fit)
    shrunken = fit.shrunken
    # theta = gain @ mean, with the gain of the posterior.
    gain = shrunken.posterior @ np.linalg.solve(covariance, system.gram @ system.mixing).T
    upper = upper_variances(fit.normal, system.prior, shrunken.scales, EFFECT)
    left = np.eye(len(upper)) - shrunken.response
    total = gain @ covariance @ gain.T + (left * upper) @ left.T
    own = slice(len(upper) - system.effects, None)
    private = gain @ gain.T * (noise + extra)
    return EffectWeights(fit.theta[own], total[own, own], private[own, own])


def unshrunk(system: System, fit: Fit, orders: Floats) -> Unshrunk:
    """Return the effect's weights by generalised least squares, without a prior.

    Mean features, in parts of the first one, which is constant, are the first column of the released Gram matrices.
    """
    information = fit.normal.information
    ridge = _RIDGE * np.trace(information) / len(information)
    covariance = np.linalg.inv(information + ridge * np.eye(len(information)))
    own = slice(len(covariance) - system.effects, None)
    column = sum((gram[: system.effects, 0] for gram in system.grams), np.zeros(system.effects))
    return Unshrunk((covariance @ fit.normal.score)[own], covariance[own, own], orders, column / column[0])


def residual_part(system: System, fit: Fit) -> Floats:
    """Return the sampling covariance of the mean products."""
    return np.asarray(fit.residual / system.rows * system.gram)


# Released weights as a model, in the outcome's units, with its guarantee and what it does not cover.


def half_range(session: Session) -> float:
    """Return half the outcome's range, the unit in which everything is computed."""
    low, high = session.study.outcome_range
    return float(high - low) / 2


def effect_model(
    session: Session,
    question: CateQuestion,
    method: str,
    basis: Basis,
    weights: EffectWeights,
    measured: Unshrunk,
    scale: float,
    plan: Plan,
    pages: tuple[str, ...],
    details: dict[str, float | str],
) -> CateModel:
    """Return the model of weights that belong to basis functions times `scale`, in the outcome's units.

    `measured` are the same without a prior; where `auto` chose the method, they decide between function and one number.
    """
    unit = half_range(session) * scale
    values, covariance = weights.values * unit, weights.covariance * unit**2
    beyond = higher_functions(basis)
    mechanism = "l2-ball noise" if question.budget.pure else "Gaussian noise"
    mechanisms = ("ball" if question.budget.pure else "gaussian",)
    found = CateModel(
        study=session.study,
        method=method,
        basis=basis,
        weights=values,
        covariance=covariance,
        noise_covariance=weights.noise * unit**2,
        level=question.level,
        guarantee=question.guarantee(session, pages, mechanisms=mechanisms),
        spent=question.budget,
        releases=tuple((name, mechanism) for name, _ in plan.amounts),
        not_covered=not_covered(basis),
        details=details | {"budget_split": plan.shares},
        higher=None if beyond is None else (beyond, higher_variances(basis, values, covariance)),
    )
    mean = measured.mean * float(basis.scale[0])
    scaled = replace(
        measured, weights=measured.weights * unit, covariance=measured.covariance * unit**2, mean=mean
    )
    return decided(found, scaled, question.method == "auto" and question.settings is None)


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


# Which functions are released: chosen from declarations, the number of rows and the budget, never from rows.


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
class Design:
    """A basis, the length to which rows are shortened, and whether it is expected to be closer than one number."""

    basis: Basis
    length: float
    pays: bool


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


def choose_design(study: Study, rows: int, budget: Budget, settings: Cate) -> Design:
    """Return the largest basis that is expected to pay, from public numbers, or the smallest one if none is."""
    if settings.degree is not None or settings.basis == "spline":
        return _design(_basis(study, settings.degree or _SPLINE_DEGREE, settings), pays=True)
    products = _products(study, settings)
    smallest = _basis(study, 1, settings)
    if not products and rows < _ROWS_A_FUNCTION * smallest.size:
        return _design(smallest, pays=False)
    for degree, least in _WITH_PRODUCTS if products else _WITHOUT:
        basis = _basis(study, degree, settings)
        enough = strength(rows, budget, basis.size) >= least
        if (
            enough
            and basis.size <= MOST_FEATURES
            and pays(_noise(rows, budget, basis.size), basis.size, rows)
        ):
            return _design(basis, pays=True)
    return _design(smallest, pays=False)


def design_of(session: Session, question: CateQuestion) -> Design:
    """Return the basis that a function is released in, or raise CV-P526 where it is too large."""
    settings = question.settings or Cate()
    design = choose_design(session.study, session.batches.rows, question.budget, settings)
    if design.basis.size > MOST_FEATURES:
        raise _too_many(design.basis.size)
    return design


def _noise(rows: int, budget: Budget, features: int) -> float:
    """Return the noise of effects that is expected in functions of so many features, in parts of the range."""
    size = _PURE_NOISE if budget.pure else _NOISE
    return size / sqrt(features) / strength(rows, budget, features)


def _design(basis: Basis, pays: bool) -> Design:
    # The root mean squared length under the uniform mechanism is a public number of the basis.
    return Design(basis, _LENGTH * sqrt(float(basis.squares.sum())), pays)


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


def _too_many(features: int) -> CounterveilError:
    return refusal("CV-P526b", most_features=MOST_FEATURES, features=features)
