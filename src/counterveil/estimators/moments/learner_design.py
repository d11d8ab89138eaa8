"""Which functions of covariates an effect is released in where records are private, and their prior.

The basis is the largest whose released function is expected to be closer to effects than one number, from the
number of rows and the budget alone. Its strength is rows times mu over the number of features. All of this is
public.

Numbers of this module were set on the designs of `experiments/cate`; privacy does not depend on them.

Features are the basis functions of a row's covariates, divided by a public length and shortened to length one
where they are longer, which bounds what a row adds to a release. mu is the parameter of Gaussian differential
privacy of the budget; under pure noise epsilon takes its place, divided by the root of the number of released
numbers. Nothing is released here, so that no proof is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Study
from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, make_basis
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.numerics.shrinkage import Prior
from counterveil.privacy import Budget
from counterveil.results.functions import CateQuestion, is_worthwhile
from counterveil.rows.public import PublicData
from counterveil.settings import Cate

# Features of the largest basis: two covariances of their weights stay below 100 kB of text.
MOST_FEATURES = 100
# Rows longer than this part of the root mean squared length of rows under the uniform mechanism are shortened
# to it.
_LENGTH = 0.92
# Covariates up to which functions of several are multiplied.
_FEW = 3
_SPLINE_DEGREE = 4
# Degrees, and the strength from which each is taken, with products of covariates and without.
_WITH_PRODUCTS = ((6, 150.0), (5, 60.0), (4, 0.0), (3, 0.0), (2, 0.0), (1, 0.0))
_WITHOUT = ((4, 400.0), (3, 150.0), (2, 0.0), (1, 0.0))
# Noise of effects in parts of the outcome's range, times strength and the root of the number of features,
# measured: Gaussian noise,
_NOISE = 6.5
# and pure noise.
_PURE_NOISE = 13.0
# Rows for each function of first degree below which, with more than a few covariates, shrunken fits adjust
# for confounding so much worse than one adjusted effect for all that this is closer to the effects.
_ROWS_A_FUNCTION = 80
# Standard deviation of the mean outcome and of the mean effect, in units of half the range.
_LEVEL = 0.5


@dataclass(frozen=True, slots=True)
class LearnerDesign:
    """A basis, the length to which rows are shortened, and whether it is expected to be closer than one number."""

    basis: Basis
    length: float
    is_worthwhile: bool

    @property
    def constant(self) -> float:
        """The first feature, the same in every row, before rows are shortened."""
        return float(self.basis.scale[0]) / self.length


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


def design_of(public: PublicData, question: CateQuestion) -> LearnerDesign:
    """Return the basis that a function is released in, or raise CV-P526 where it is too large."""
    settings = question.settings or Cate()
    design = choose_design(public.study, public.rows, question.budget, settings)
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
    axes = []
    for name, domain in study.covariates.items():
        if not isinstance(domain, Range):
            if len(domain.labels) > 1:
                axes.append(Axis(name, "labels", len(domain.labels)))
            continue
        low, high = domain.floats()
        axis = Axis(source=name, family=settings.basis, size=degree, low=low, width=high - low)
        if settings.basis == "spline":
            knots = tuple((place + 1) / (settings.knots + 1) for place in range(settings.knots))
            axis = replace(axis, size=settings.knots, knots=knots)
        axes.append(axis)
    return axes


def effect_prior(common: Basis, effect: Basis, common_length: float, effect_length: float) -> Prior:
    """Return the prior of the weights of the common part and of the effect.

    A function of order k has standard deviation scale/k; functions of the same covariates share a scale.
    `common_length` and `effect_length` are what the features were divided by.
    """
    common_base, common_groups, count = prior_block(common, common_length, 0)
    effect_base, effect_groups, total = prior_block(effect, effect_length, count)
    blocks = np.concatenate((np.zeros(count, np.intp), np.ones(total - count, np.intp)))
    base = np.concatenate((common_base, effect_base))
    return Prior(base, np.concatenate((common_groups, effect_groups)), blocks)


def prior_block(basis: Basis, length: float, start: int) -> tuple[Floats, NDArray[np.intp], int]:
    """Return variances of a basis's weights, their groups counted from `start`, and the next number."""
    orders = np.maximum(basis.orders, 1.0)
    base = (length / basis.scale / orders) ** 2
    base[0] *= _LEVEL**2
    places: dict[tuple[int, ...], int] = {}
    groups = [-1]
    for term, size in zip(basis.terms, basis.sizes[1:], strict=True):
        groups += [places.setdefault(term.axes, start + len(places))] * size
    return base, np.array(groups, dtype=np.intp), start + len(places)
