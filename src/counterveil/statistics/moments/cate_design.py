"""Which functions are released: chosen from declarations, the number of rows and the budget, never from rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

from counterveil.data import Range, Study
from counterveil.errors import ParameterError
from counterveil.numerics.bases import Axis, Basis, make_basis
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget
from counterveil.settings import Cate

# Features of the largest basis: two covariances of their weights stay below 100 kB of text.
MOST_FEATURES = 100
# Rows longer than this part of the root mean squared length of rows under the uniform mechanism are shortened to it.
_LENGTH = 0.92
# Covariates up to which functions of several are multiplied.
_FEW = 3
_SPLINE_DEGREE = 4
# Strength (rows times mu a feature) from which a degree is taken, with products of covariates and without; the
# last one is where effects that differ between people begin to pay.
_WITH_PRODUCTS = ((6, 150.0), (5, 60.0), (4, 12.0), (3, 10.0), (2, 7.0), (1, 4.0))
_WITHOUT = ((4, 400.0), (3, 150.0), (2, 9.0), (1, 8.0))
# Rows times mu below which one number for all is closer to the effects than any function, measured.
_LEAST = 65.0
# Rows for each function of first degree below which, with more than a few covariates, shrunken fits adjust for
# confounding so much worse than one adjusted effect for all that this is closer to the effects.
_ROWS_A_FUNCTION = 80


@dataclass(frozen=True, slots=True)
class Design:
    """A basis, the length to which rows are shortened, and whether the public numbers afford it."""

    basis: Basis
    length: float
    affordable: bool


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
    """Return the largest basis that rows and budget afford, or the smallest one marked as not affordable."""
    if settings.degree is not None or settings.basis == "spline":
        degree = settings.degree or _SPLINE_DEGREE
        basis = _basis(study, degree, settings)
        if basis.size > MOST_FEATURES:
            raise _too_many(basis.size)
        return _design(basis, affordable=True)
    products = _products(study, settings)
    smallest = _basis(study, 1, settings)
    if not products and rows < _ROWS_A_FUNCTION * smallest.size:
        return _design(smallest, affordable=False)
    for degree, least in _WITH_PRODUCTS if products else _WITHOUT:
        basis = _basis(study, degree, settings)
        enough = max(least, _LEAST / basis.size)
        if basis.size <= MOST_FEATURES and strength(rows, budget, basis.size) >= enough:
            return _design(basis, affordable=True)
    return _design(basis, affordable=False)


def _design(basis: Basis, affordable: bool) -> Design:
    # The root mean squared length under the uniform mechanism is a public number of the basis.
    return Design(basis, _LENGTH * sqrt(float(basis.squares.sum())), affordable)


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


def _too_many(features: int) -> ParameterError:
    return ParameterError(
        "CV-P526",
        "too many basis functions for one release",
        expected=f"at most {MOST_FEATURES} functions of the covariates",
        got=f"{features}",
        fix="lower the degree or the number of knots, set products=False, or declare fewer covariates",
    )
