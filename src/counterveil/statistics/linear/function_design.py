"""Public functions of covariates for an effect as a function, where only outcomes are private.

Rows are (phi(x), (a - p(x)) phi(x)): functions for the outcome, and the same times treatment minus its propensity for
the effect. Covariates and treatments are public, so that the functions, the propensity and all sums over rows may be
taken from the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Table
from counterveil.data.features import covariate_features
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, Term
from counterveil.numerics.products import Gram, blocks
from counterveil.numerics.propensity import fit_propensity
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
    features = covariate_features(table)
    fit = fit_propensity(features.values, table.treated, 1 / table.rows)
    least = settings.least_propensity
    residual: Floats = table.treated - np.clip(fit.scores, least, 1 - least)
    # Averages over rows that steer choices and the sampling error are taken over every so manieth of many.
    stride = max(1, table.rows // _AVERAGED)
    plain = Gram(2 * basis.size)
    for _, z in _rows(table, basis, residual):
        plain.add(z[::stride])
    weights = _weights(table, basis, residual, plain.whole() * stride)
    gram, squared = Gram(2 * basis.size), [Gram(2 * basis.size) for _ in range(2)]
    for part, z in _rows(table, basis, residual):
        own, treated = weights[part, None], table.treated[part]
        gram.add(z * np.sqrt(own))
        some, arms = (z * own)[::stride], treated[::stride]
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
