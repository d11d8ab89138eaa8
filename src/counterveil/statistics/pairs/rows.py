"""Public features of rows, and their sums with the private pair of treatment and outcome.

Covariates being public, sums of features with treatments are all that a logistic regression needs, and sums with the
outcomes of either arm all that a linear one needs: one noisy vector holds three models.
"""

# Proof: pair_moments.proof.md

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Range, Table
from counterveil.data.features import covariate_features
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.products import WholeSum, blocks
from counterveil.statistics.outcome_place import OUTCOME_BITS, Place

# Fractional digits of features.
FEATURE_BITS = 16
# A rational just below the root of two: what a change of treatment weighs.
TREATED = Fraction(181, 128)
# What a step of an outcome is.
_OUTCOME = Fraction(1, 1 << OUTCOME_BITS)
# How far a change of treatment and outcome moves (TREATED A, A y, (1 - A) y), or arms' indicators and outcomes in them.
PAIR_LENGTH = Fraction(2)
# Orders of features: the constant, covariates, squares and hinges of numbers, products.
CONSTANT, LINES, CURVES, PRODUCTS = range(4)
# Standard deviations at which numbers are cut, before squares and before products.
_CUT, _PRODUCT_CUT = 4.0, 3.0
# A column counts where the columns before it leave this part of its length, and where no few rows carry it.
_LEAST_NEW, _MOST_CARRIED = 0.05, 0.05
# Scale of curves and products, the most that either take beside the squared scales of covariates, and the squared scale
# of the constant beside all others: noise is least on the constant and most on products.
_SCALE, _ROOM, _CONSTANT_PART = 0.7, 0.35, 0.5
# Most features, fewest rows for each of them, and most numbers in all: they are held in memory.
MOST_FEATURES, ROWS_A_FEATURE, MOST_NUMBERS = 250, 5, 40_000_000


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """Features z (n, p) with sum z z' = n I, their orders and scales, and every row's weight.

    `steps` are the whole numbers nearest to 2**16 times weight, scale and z; no row of them is longer than `length`
    times 2**16.
    """

    z: Floats
    order: Integers
    scale: Floats
    weight: Floats
    steps: Integers
    length: Fraction

    @property
    def weighted(self) -> Floats:
        """Every row's weight times its features."""
        return self.z * self.weight[:, None]

    def at(self, places: Integers) -> PublicRows:
        """Return some of the rows."""
        return replace(self, z=self.z[places], weight=self.weight[places], steps=self.steps[places])

    def gram(self, weights: Floats) -> Floats:
        """Return the sum of weights times z z'."""
        rooted = self.z * np.sqrt(weights)[:, None]
        return np.asarray(rooted.T @ rooted)


def ladder(table: Table) -> tuple[PublicRows, ...]:
    """Return the features by their richness: covariates, with curves, with products, as far as rows suffice."""
    most = min(MOST_FEATURES, table.rows // ROWS_A_FEATURE, MOST_NUMBERS // max(table.rows, 1))
    columns = list(_columns(table, most))
    orders = [order for order, _ in columns]
    richest = [one for one in (LINES, CURVES, PRODUCTS) if sum(order <= one for order in orders) <= most]
    if not richest:
        return ()
    z, order = _white([(own, values) for own, values in columns if own <= richest[-1]])
    found: dict[int, PublicRows] = {}
    for one in richest:
        kept = order <= one
        found.setdefault(int(kept.sum()), _public_rows(z[:, kept], order[kept]))
    return tuple(found.values())


def _columns(table: Table, most: int) -> Iterator[tuple[int, Floats]]:
    """Yield the columns and their orders: the constant, covariates, squares and hinges, products if not too many."""
    yield CONSTANT, np.ones(table.rows)
    if not table.study.covariates:
        return
    features = covariate_features(table)
    spread = features.values.std(axis=0)
    usual = features.values[:, spread > 0] / spread[spread > 0]
    numeric = [isinstance(domain, Range) for domain in np.array(features.domains, dtype=object)[spread > 0]]
    lines = np.where(numeric, np.clip(usual, -_CUT, _CUT), usual)
    for column in lines.T:
        yield LINES, column
    for column in lines[:, numeric].T:
        low, high = np.quantile(column, (1 / 3, 2 / 3))
        yield CURVES, column**2
        yield CURVES, np.maximum(column - high, 0.0)
        yield CURVES, np.maximum(low - column, 0.0)
    bounded, size = np.clip(usual, -_PRODUCT_CUT, _PRODUCT_CUT), usual.shape[1]
    if 1 + size + 3 * sum(numeric) + size * (size - 1) // 2 > most:
        return
    for place in range(size):
        for other in range(place):
            yield PRODUCTS, bounded[:, place] * bounded[:, other]


def _white(columns: list[tuple[int, Floats]]) -> tuple[Floats, Integers]:
    """Return the columns in turn, each without what those before it hold, at mean square one, and their orders."""
    matrix, order = np.column_stack([c for _, c in columns]), np.array([o for o, _ in columns])
    q, r = np.linalg.qr(matrix)
    length = np.sqrt((matrix**2).sum(axis=0))
    z = q * sqrt(len(matrix)) * np.where(np.diag(r) < 0, -1.0, 1.0)
    kept = np.abs(np.diag(r)) > _LEAST_NEW * length
    kept &= ((z * z) ** 2).mean(axis=0) < max(_MOST_CARRIED * len(matrix), 3.0)
    kept[0] = True
    return z[:, kept], order[kept]


def _public_rows(z: Floats, order: Integers) -> PublicRows:
    scale = np.ones(len(order))
    lines = order == LINES
    for more in (order == CURVES, order == PRODUCTS):
        room = _ROOM * int(lines.sum()) / max(int(more.sum()), 1)
        scale[more] = min(_SCALE, sqrt(room))
    scale[0] = max(1.0, sqrt(_CONSTANT_PART * float((scale[1:] ** 2).sum())))
    return shortened(z, order, scale)


def shortened(z: Floats, order: Integers, scale: Floats) -> PublicRows:
    """Return features of these scales, with less weight for rows that are longer than rows are on average."""
    longest = sqrt(float((scale**2).sum()))
    lengths = np.sqrt(((z * scale) ** 2).sum(axis=1))
    weight = np.minimum(1.0, longest / np.maximum(lengths, 1e-9))
    steps = np.rint(z * scale * weight[:, None] * 2**FEATURE_BITS).astype(np.int64)
    return PublicRows(z, order, scale, weight, steps, row_length(steps))


def row_length(steps: Integers) -> Fraction:
    """Return the length of the longest row in units of 2**16 steps, rounded up; rows are public."""
    squares = int((steps * steps).sum(axis=1).max())
    return sqrt_up(Fraction(squares, 1 << 2 * FEATURE_BITS))


def pair_sums(
    rows: PublicRows, treated: NDArray[np.bool_], outcome: Integers, place: Place, known: bool = False
) -> list[Fraction]:
    """Return sums of features times (TREATED A, A y, (1 - A) y), as exact numbers, block after block.

    Where propensities are `known`, those with A are left out.
    """

    def pairs(part: slice) -> Integers:
        own, y = treated[part], place.fixed(outcome[part])
        return np.column_stack([own.astype(np.int64), np.where(own, y, 0), np.where(own, 0, y)])

    found = _summed(rows, pairs, (TREATED, _OUTCOME, _OUTCOME))
    return found[len(found) // 3 :] if known else found


def arm_sums(
    rows: PublicRows, arm: NDArray[np.intp], arms: int, outcome: Integers, place: Place
) -> list[Fraction]:
    """Return sums of features times every arm's indicator, then times indicator and outcome, as exact numbers."""

    def pairs(part: slice) -> Integers:
        inside = (arm[part, None] == np.arange(arms)).astype(np.int64)
        return np.column_stack([inside, inside * place.fixed(outcome[part])[:, None]])

    return _summed(rows, pairs, (Fraction(1),) * arms + (_OUTCOME,) * arms)


def _summed(
    rows: PublicRows, pairs: Callable[[slice], Integers], units: Sequence[Fraction]
) -> list[Fraction]:
    """Return sums of features times columns of whole numbers in these units, column by column."""
    total = WholeSum()
    for part in blocks(len(rows.steps)):
        total.add(rows.steps[part].T @ pairs(part))
    each = [unit / (1 << FEATURE_BITS) for unit in units]
    return [unit * int(value) for unit, column in zip(each, total.whole().T, strict=True) for value in column]


def pair_sensitivity(rows: PublicRows) -> Fraction:
    """Return a bound on the Euclidean length by which a replaced pair moves the sums."""
    return PAIR_LENGTH * rows.length
