"""Public features of rows whose treatment and outcome are private together, and the weights of rows.

Features z are the constant, covariates, then squares and hinges of numbers, then products of two covariates,
each without what those before it explain, and at mean square one (white):

    sum_i z_i z_i' = n I.

In: public covariates alone. Out: z (n, p), without units; a scale for each feature, which says how the noise
of a released sum is shared among features; and a weight for each row, less for rows whose scaled features are
longer than average. The longest weighted row bounds what a replaced pair moves:
`rows/pairs/pair_moments.proof.md`. Which sets are used is chosen by `budget.py`.

Numbers of this module were set on designs of `experiments/third_level`; privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.linalg import qr

from counterveil.data import Range
from counterveil.data.features import covariate_features
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import blocks
from counterveil.rows.pairs.scores import Places
from counterveil.rows.pairs.vectors import WeightedVectors, shortened
from counterveil.rows.public import PublicRows

# Orders of features: the constant; covariates; squares and hinges of numbers; products of two covariates.
CONSTANT, LINEAR, NONLINEAR, INTERACTIONS = range(4)
# Standard deviations at which numbers are cut, before squares and before products.
_CUT = 4.0
_PRODUCT_CUT = 3.0
# A column counts where the columns before it leave this part of its length.
_LEAST_NEW = 0.05
# And where its mean fourth power is below this part of the rows: else few rows carry it.
_MOST_CARRIED = 0.05
# A column that those before it leave less of depends on them but for rounding.
_DEPENDENT = 1e-9
# Scale of curves and products beside covariates: noise is least on the constant and most on products.
_SCALE = 0.7
# The most that squared scales of either add up to, in parts of those of covariates.
_ROOM = 0.35
# The squared scale of the constant, in parts of all others.
_CONSTANT_PART = 0.5
MOST_FEATURES = 250
# Fewest rows for each feature.
ROWS_A_FEATURE = 5
# Most numbers in all: they are held in memory.
MOST_NUMBERS = 40_000_000
Orders = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PublicFeatures(WeightedVectors):
    """Features with weights of rows, and sums of them that need no private row."""

    def along(self, weights: Floats) -> Floats:
        """Return the sum of weights times z."""
        return np.asarray(sum(weights[span] @ self.z[span] for span in blocks(len(self.weight))))

    def gram(self, weights: Floats) -> Floats:
        """Return the sum of weights times z z'."""
        total = np.zeros((self.z.shape[1],) * 2)
        for span in blocks(len(self.weight)):
            rooted = self.z[span] * np.sqrt(weights[span])[:, None]
            total += rooted.T @ rooted
        return total


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures(PublicFeatures):
    """White features z, held as an array (n, p), with the order of each.

    Attributes
    ----------
    z : ndarray of float, shape (n, p)
        Features with sum z z' = n I.
    scale, weight, length
        As for `WeightedVectors`.
    order : ndarray of int, shape (p,)
        CONSTANT, LINEAR, NONLINEAR or INTERACTIONS.
    hidden : tuple of int
        Orders of which models are supposed to have what noise hides of their coefficients.
    """

    z: Floats
    order: Integers
    hidden: Orders = ()

    @classmethod
    def of(cls, z: Floats, order: Integers, scale: Floats) -> PairFeatures:
        """Return features of these scales, with less weight for rows that are longer than rows are on average."""
        vectors = shortened(z, scale)
        return cls(z=z, scale=scale, weight=vectors.weight, length=vectors.length, order=order)

    def at(self, rows: Places) -> PairFeatures:
        """Return some of the rows."""
        return replace(self, z=self.z[rows], weight=self.weight[rows])


def feature_sets(public: PublicRows) -> tuple[PairFeatures, ...]:
    """Return the features by their richness: covariates, with curves, with products, as far as rows suffice."""
    most = min(MOST_FEATURES, public.rows // ROWS_A_FEATURE, MOST_NUMBERS // max(public.rows, 1))
    columns = list(_columns(public, most))
    if len(columns) > most:
        return ()
    order = np.array([column_order for column_order, _ in columns])
    matrix = np.array([values for _, values in columns]).T
    del columns
    z, order = _white(matrix, order)
    sizes = sorted({int((order <= highest).sum()) for highest in (LINEAR, NONLINEAR, INTERACTIONS)})
    return tuple(_scaled(z[:, :size], order[:size]) for size in sizes)


def _columns(public: PublicRows, most: int) -> Iterator[tuple[int, Floats]]:
    """Yield the columns and their orders: the constant, covariates, squares and hinges, products if not too many."""
    yield CONSTANT, np.ones(public.rows)
    if not public.study.covariates:
        return
    features = covariate_features(public)
    lines = features.values
    domains = np.array(features.domains, dtype=object)
    spread = np.array([column.std() for column in lines.T])
    if not spread.all():
        lines = lines[:, spread > 0]
        domains = domains[spread > 0]
        spread = spread[spread > 0]
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
    for index in range(size):
        for earlier in range(index):
            yield INTERACTIONS, bounded[:, index] * bounded[:, earlier]


def _white(matrix: Floats, order: Integers) -> tuple[Floats, Integers]:
    """Return the columns in turn, each without what those before it hold, at mean square one, and their orders.

    They take the matrix's place.
    """
    length = np.array([sqrt(float(column @ column)) for column in matrix.T])
    z, r = qr(matrix, overwrite_a=True, mode="economic")
    if (dependent := np.abs(np.diag(r)) <= _DEPENDENT * length).any():
        # Near-dependent columns leave a residual of rounding error. Drop them before the QR so that it does
        # not become a basis vector.
        return _white(z @ r[:, ~dependent], order[~dependent])
    z *= sqrt(len(matrix)) * np.where(np.diag(r) < 0, -1.0, 1.0)
    chosen = np.abs(np.diag(r)) > _LEAST_NEW * length
    chosen &= [float(((c * c) ** 2).mean()) < max(_MOST_CARRIED * len(matrix), 3.0) for c in z.T]
    chosen[0] = True
    return (z, order) if chosen.all() else (z[:, chosen], order[chosen])


def _scaled(z: Floats, order: Integers) -> PairFeatures:
    scale = np.ones(len(order))
    lines = order == LINEAR
    for richer in (order == NONLINEAR, order == INTERACTIONS):
        room = _ROOM * int(lines.sum()) / max(int(richer.sum()), 1)
        scale[richer] = min(_SCALE, sqrt(room))
    scale[0] = max(1.0, sqrt(_CONSTANT_PART * float((scale[1:] ** 2).sum())))
    return PairFeatures.of(z, order, scale)
