"""Functions of public covariates that an effect is a sum of: polynomials, contrasts of labels, products.

    effect(x) = sum_j theta_j phi_j(x),    sd of theta_j supposed = (range / 5) order_j^-2 up to a constant,

with the constant, Legendre polynomials of numbers, contrasts of labels, and for up to 3 covariates their
products, each of mean square one under the uniform distribution, so that theta is in units of the outcome.
The range is that of outcomes; smooth functions have weights that fall with the order. Products are those
whose orders plus one multiply to at most the degree plus one (a hyperbolic cross).

In: covariates, which are public, and the number of rows. Out: a `Basis`, and supposed variances of weights.
Axes run between the extremes that columns have, and the degree is the largest that leaves 8 rows for each
fitted weight. Beyond the last order, weights are supposed to fall as one over the order, as those of a
function with a kink do: intervals allow for these orders. No outcome is read here: bases and supposed
variances cost no privacy.

Numbers of this module that are choices were set on seeds below 100 of the designs of `experiments/cate`, some
of them by `python -m experiments.cate.tuning`; privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range
from counterveil.errors import CounterveilError, refusal
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, Term
from counterveil.rows.public import PublicRows
from counterveil.settings import Series

Places = NDArray[np.intp]

# Features of the largest basis: two covariances of their weights stay below 100 kB of text.
MOST_FEATURES = 100
# Covariates up to which functions of several are multiplied.
FEW = 3
# The largest degrees with products and without.
_DEGREE_WITH_PRODUCTS = 6
_DEGREE_WITHOUT = 3
# Rows for each weight that is fitted.
_ROWS_A_WEIGHT = 8
# Rows in which values of a covariate are counted.
_COUNTED = 20_000
# Orders beyond the last that intervals allow for.
_BEYOND = 6
# The power of the order with which weights of these fall, as those of a function with a kink do.
_BEYOND_FALL = 1.0
# Supposed standard deviation of effects over people, as a part of the outcome's range.
_EFFECT_SD = 1 / 5
# Supposed standard deviation of the level of effects, in the same.
_LEVEL_SD = 1 / 4
# Weights of order k have variances that fall with this power of it.
FALL = 4.0
# Variances of what intervals allow for beyond normal noise: noise of the l2 ball has longer tails.
BALL_TAIL = 1.25


def largest_basis(public: PublicRows, settings: Series) -> Basis | None:
    """Return the functions of the largest degree that rows afford; None where not even the first is."""
    products = len(public.study.covariates) <= FEW if settings.products is None else settings.products
    highest = settings.degree or (_DEGREE_WITH_PRODUCTS if products else _DEGREE_WITHOUT)
    for degree in range(highest, 0, -1):
        basis = series_basis(_axes(public, degree), degree, products)
        if basis.size <= MOST_FEATURES and 2 * basis.size * _ROWS_A_WEIGHT <= public.rows:
            return basis if basis.terms else None
    return None


def first_size(public: PublicRows) -> int:
    """Return the number of functions of first degree, the constant among them."""
    return series_basis(_axes(public, 1), 1, False).size


def _axes(public: PublicRows, degree: int) -> tuple[Axis, ...]:
    """Return an axis for every covariate that varies: polynomials between its extremes, or contrasts of labels."""
    axes = []
    for name, domain in public.study.covariates.items():
        column = public.covariates[name]
        low = float(column.min())
        high = float(column.max())
        if not high > low:
            continue
        if not isinstance(domain, Range):
            axes.append(Axis(name, "labels", len(domain.labels)))
            continue
        values = len(np.unique(column[:_COUNTED]))
        axes.append(
            Axis(
                source=name,
                family="legendre",
                size=max(1, min(degree, values - 1)),
                low=low,
                width=high - low,
            )
        )
    return tuple(axes)


def series_basis(axes: tuple[Axis, ...], degree: int, products: bool) -> Basis:
    """Return functions of mean square one under the uniform mechanism, up to a degree.

    With products, those whose orders plus one multiply to at most the degree plus one (a hyperbolic cross).
    """
    terms = []
    choices = [[None, *range(len(axis.groups))] for axis in axes] if products else []
    for picked in product(*choices) if products else _single(axes):
        used_axes = tuple(index for index, group in enumerate(picked) if group is not None)
        orders = [axes[index].groups[picked[index] or 0][0] for index in used_axes]
        alone = len(used_axes) == 1 and axes[used_axes[0]].family == "labels"
        if used_axes and (alone or prod(order + 1 for order in orders) <= degree + 1):
            groups = tuple(group for group in picked if group is not None)
            terms.append(Term(used_axes, groups, sum(orders)))
    terms.sort(key=lambda term: (term.order, term.axes, term.groups))
    return _scaled(axes, tuple(terms))


def _single(axes: tuple[Axis, ...]) -> Iterator[tuple[int | None, ...]]:
    for varied, axis in enumerate(axes):
        for group in range(len(axis.groups)):
            yield tuple(group if index == varied else None for index in range(len(axes)))


def _scaled(axes: tuple[Axis, ...], terms: tuple[Term, ...]) -> Basis:
    plain = Basis(axes, terms, (1.0,) * (len(terms) + 1))
    squares = np.split(plain.squares, np.cumsum(plain.sizes)[:-1])
    return Basis(axes, terms, tuple(1.0 / sqrt(float(group.mean())) for group in squares))


def basis_groups(basis: Basis) -> Places:
    """Return the group of every function: 0 for the constant, one a covariate, and one more for all products."""
    several = len(basis.axes) + 1
    groups = (0, *(1 + term.axes[0] if len(term.axes) == 1 else several for term in basis.terms))
    return np.repeat(np.array(groups, dtype=np.intp), basis.sizes)


def slab(basis: Basis, width: float) -> Floats:
    """Return variances of weights whose covariate matters, up to a scale, for a range of this width."""
    return np.asarray((_EFFECT_SD * width) ** 2 / np.maximum(basis.orders, 1.0) ** FALL)


def supposed(basis: Basis, width: float) -> Floats:
    """Return the variances of all weights before anything is seen; each order shares its part evenly."""
    orders = basis.orders
    variances = np.full(len(orders), (_LEVEL_SD * width) ** 2)
    for order in np.unique(orders[orders > 0]):
        inside = orders == order
        variances[inside] = (_EFFECT_SD * width) ** 2 * order**-FALL / np.count_nonzero(inside)
    return np.tile(variances, 2)


def beyond(basis: Basis) -> tuple[Basis, Floats, Places] | None:
    """Return the next orders of every covariate's own polynomials, the order of each, and its covariate's group.

    A covariate of so few values that it has fewer polynomials than others has no next ones.
    """
    axes = []
    terms = []
    groups = []
    highest = max((axis.size for axis in basis.axes if axis.family == "legendre"), default=0)
    for index, axis in enumerate(basis.axes):
        if axis.family != "legendre" or axis.size < highest:
            continue
        axes.append(
            Axis(
                source=axis.source,
                family=axis.family,
                size=axis.size + _BEYOND,
                low=axis.low,
                width=axis.width,
            )
        )
        added_orders = range(axis.size, axis.size + _BEYOND)
        terms += [Term((len(axes) - 1,), (order,), order + 1) for order in added_orders]
        groups += [index + 1] * _BEYOND
    if not terms:
        return None
    scaled = _scaled(tuple(axes), tuple(terms))
    # The constant is a function of every basis; its weight is zero here.
    further = Basis(scaled.axes, scaled.terms, (0.0, *scaled.weights[1:]))
    return further, further.orders, np.array([0, *groups], dtype=np.intp)


def higher(basis: Basis, squares: Floats) -> tuple[Basis, Floats] | None:
    """Return functions beyond the basis and the variance of each, from the expected squares of its own weights.

    Weights of a covariate go on from the larger of its last two, falling with a power of the order: as those
    of a function with a kink do.
    """
    next_orders = beyond(basis)
    if next_orders is None:
        return None
    further, orders, groups = next_orders
    group_of = basis_groups(basis)
    variances = np.zeros(len(orders))
    for group in np.unique(groups[groups > 0]):
        last = float(basis.orders[group_of == group].max())
        ends = (group_of == group) & (basis.orders >= last - 1)
        in_group = groups == group
        variances[in_group] = squares[ends].max() * (last / orders[in_group]) ** (2 * _BEYOND_FALL)
    return further, variances


def too_many(public: PublicRows) -> CounterveilError:
    """Return CV-P526, for fewer rows than functions of first degree need."""
    size = first_size(public)
    return refusal("CV-P526", most_features=MOST_FEATURES, size=size, rows=public.rows)
