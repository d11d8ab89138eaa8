"""Residuals of the two models row by row, their orthogonal score, and exact sums of both.

All parameters are public or were released before; a row's terms depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.bases import Axis, Basis, Term
from counterveil.numerics.products import (
    WholeSum,
    exact_arm_grams,
    projected,
    squared_lengths,
    steps,
    sums,
)

Sums = tuple[NDArray[Any], ...]  # of whole numbers
Block = tuple[Floats, Floats, Floats]  # u (rows, m), treatment 0 or 1 or the place of an arm, outcome

# Terms of a row are taken in steps of 2**-TERM_BITS of their bound.
TERM_BITS = 20
_ONE = 1 << TERM_BITS
# A propensity beyond these ends is noise.
LOWEST, _HIGHEST = -1.0, 2.0


@dataclass(frozen=True, slots=True)
class LinearModels:
    """Two linear models on u = (1, z), around the share treated and the mean outcome.

    `treatment` is unshrunk, `shrunk` the same shrunk; `outcome` is for y - effect * t.
    """

    share: float
    mean: float
    treatment: Floats
    shrunk: Floats
    outcome: Floats
    effect: float

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return y - effect t less its model, for every row."""
        return np.asarray(y - self.mean - self.effect * (t - self.share) - projected(u, self.outcome))

    def treatment_residual(self, u: Floats, t: Floats) -> Floats:
        """Return t less its unshrunk model, for every row."""
        return np.asarray(t - np.clip(self.share + projected(u, self.treatment), LOWEST, _HIGHEST))

    def score(self, u: Floats) -> Floats:
        """Return the shrunk propensity of every row, unclipped."""
        return np.asarray(self.share + projected(u, self.shrunk))


def residual_sums(
    row_blocks: Iterable[Block], models: LinearModels | ArmLines, clip: float, max_norm: float
) -> Sums:
    """Return the sums of u rho / (max_norm clip) and of (rho / clip)^2, rho being clipped to [-clip, clip].

    Lines by arm have the first by arm too, the reference first. Both are in units of 4**-TERM_BITS; |u| <= max_norm.
    """
    total = WholeSum()
    square = 0
    for u, t, y in row_blocks:
        rho = _whole(models.residual(u, t, y) / clip)
        arms = len(models.values) if isinstance(models, ArmLines) else 1
        total.add(_sums_by_arm(rho.astype(np.float64), t, arms, steps(u / max_norm, TERM_BITS)))
        square += int((rho * rho).sum())
    return np.atleast_1d(total.whole()), np.array([square], dtype=object)


def _sums_by_arm(rho: Floats, arm: NDArray[Any], arms: int, direction: Floats) -> NDArray[np.int64]:
    """Return the sums of rho times a direction over the rows of every arm, one arm after another.

    Both are whole numbers up to 2**20, so that sums of 4096 products stay below 2**53: doubles add them exactly.
    """
    by_arm = np.where(arm == np.arange(arms)[:, None], rho, 0.0) if arms > 1 else rho[None]
    return sums(direction, by_arm).ravel().astype(np.int64)


def _whole(part: Floats) -> NDArray[np.int64]:
    """Return parts of a bound in whole steps, inside [-1, 1] whatever was computed; what is no number counts as 0."""
    found: NDArray[np.int64] = np.trunc(np.clip(np.nan_to_num(part), -1.0, 1.0) * _ONE).astype(np.int64)
    return found


# Exact sums of bounded contributions: parts of [-1, 1], truncated towards zero to whole parts of 2**-GRID_BITS.


GRID_BITS = 24
# Rows a pass: the squares, below 2**48 each, then sum to less than 2**63.
_PASS = 1 << 14


@dataclass(frozen=True, slots=True)
class RowSums:
    """Exact sums of contributions (in 2**-GRID_BITS) and of their squares, and the number treated."""

    total: int
    squares: int
    treated: int
    rows: int


def moments(contributions: Integers, treated: NDArray[np.bool_]) -> RowSums:
    """Return the exact sums over rows."""
    total = squares = 0
    for start in range(0, len(contributions), _PASS):
        part = contributions[start : start + _PASS]
        total += int(part.sum())
        squares += int((part * part).sum())
    return RowSums(total, squares, int(np.count_nonzero(treated)), len(contributions))


def counts_between(
    edges: Floats, values: Iterable[Floats], side: Literal["left", "right"] = "right"
) -> NDArray[np.int64]:
    """Return how many values lie below the first edge, between every two, and from the last upwards.

    A value on an edge lies above it, or below it where the `side` is "left".
    """
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for block in values:
        total += np.bincount(np.searchsorted(edges, np.nan_to_num(block), side), minlength=len(total))
    return total


# Rows of several arms: exact sums of their second moments and residuals, and the score of every row.
#
# All parameters are public or were released before; a row's terms depend on that row alone. Outcomes are in units of
# a released scale, around a released centre.


@dataclass(frozen=True, slots=True)
class ArmLines:
    """Lines on u = (1, z) that predict the outcome in each arm, (arms, m): the reference first."""

    values: Floats

    def residual(self, u: Floats, t: Floats, y: Floats) -> Floats:
        """Return every row's outcome less the prediction for its own arm."""
        return np.asarray(y - of_own_arm(u, t.astype(np.intp), self.values))


# Lines that all rows are put through: looking each row's weights up takes as long as so many.
_FEW = 2


def of_own_arm(u: Floats, arm: NDArray[np.intp], lines: Floats) -> Floats:
    """Return for every row the value of its own arm's line, added up as `projected` does."""
    if len(lines) <= _FEW:
        values = [projected(u, line) for line in lines]
        return np.asarray(np.choose(arm, values) if len(values) > 1 else values[0])
    found = np.zeros(len(u))
    for column, weights in zip(u.T, np.ascontiguousarray(lines.T), strict=True):
        found += column * weights.take(arm)
    return found


# Rows of features brought to a length of at most one, and exact sums of their products.
#
# A row longer than `length` is shortened to it, and its outcome with it: a weight in a regression that depends on
# covariates alone. Then all rows are divided by `length`.


# Rows of length at most one, the arm of each, and outcomes in [-1, 1].
UnitBlock = tuple[Floats, NDArray[np.intp], Floats]

# Rows and outcomes are taken in steps of 2**-STATISTIC_BITS, residuals and rows beside them of 2**-TERM_BITS.
STATISTIC_BITS = 20


def shortened(features: Floats, length: float) -> tuple[Floats, Floats]:
    """Return features / length, no row longer than one but for rounding, and the factor of every row's outcome."""
    size = lengths(features)
    factor = length / np.maximum(size, length)
    return features * (factor / length)[:, None], factor


def lengths(rows: Floats) -> Floats:
    """Return the Euclidean length of every row."""
    return np.asarray(np.sqrt(squared_lengths(rows)))


def statistic_sums(row_blocks: Iterable[UnitBlock], arms: int) -> Sums:
    """Return the sums of u u' and u v by arm and of v v in units of 4**-STATISTIC_BITS, all factors truncated."""
    rows = ((arm, np.column_stack((u, v))) for u, arm, v in row_blocks)
    found = np.stack(exact_arm_grams(rows, STATISTIC_BITS, arms))
    return found[:, :-1, :-1], found[:, :-1, -1], np.array([found[:, -1, -1].sum()], dtype=object)


def gradient_sums(row_blocks: Iterable[UnitBlock], weights: Floats, clip: float) -> Sums:
    """Return the sums of u rho by arm, one after another, and of rho rho, in units of 4**-TERM_BITS.

    rho is (v - u.weights[arm]) / clip, clipped to [-1, 1]; `weights` has one row an arm.
    """
    total = WholeSum()
    square = 0
    arms = len(weights)
    for u, arm, v in row_blocks:
        residual = v - of_own_arm(u, arm, weights)
        rho = np.trunc(np.clip(residual / clip, -1.0, 1.0) * 2.0**TERM_BITS)
        total.add(_sums_by_arm(rho, arm, arms, steps(u, TERM_BITS)))
        square += int((rho.astype(np.int64) ** 2).sum())
    return np.atleast_1d(total.whole()), np.array([square], dtype=object)


def size_counts(row_blocks: Iterable[UnitBlock], weights: Floats, edges: Floats) -> Sums:
    """Return how many rows have |v - u.weights[arm]| in each cell between the edges; one cell lies above the last."""
    residuals = (np.abs(v - of_own_arm(u, arm, weights)) for u, arm, v in row_blocks)
    return (counts_between(edges, residuals, "left"),)


# The linear space in which matrices of second moments of given features lie, found at public points.
#
# Products of polynomials repeat: of the entries of a matrix of second moments fewer are free than there are. Noise
# outside the space of possible matrices can be taken out without looking at any row.


_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True)
class MomentSpan:
    """An orthonormal basis (rank, entries) of the possible upper triangles, off-diagonal entries times root two."""

    size: int
    rows: Floats

    @classmethod
    def of(cls, features: Floats) -> MomentSpan:
        """Return the space spanned by f f' over the rows f of features at public points."""
        size = features.shape[1]
        i, j = np.triu_indices(size)
        _, values, vectors = np.linalg.svd(
            features[:, i] * features[:, j] * np.where(i == j, 1.0, sqrt(2.0)), full_matrices=False
        )
        return cls(size, vectors[values > _NEGLIGIBLE * values[0]])

    @property
    def part(self) -> float:
        """Share of symmetric noise that stays when it is projected: the rank over the number of entries."""
        return len(self.rows) / (self.size * (self.size + 1) / 2)

    def project(self, matrix: Floats) -> Floats:
        """Return the nearest symmetric matrix in the space."""
        i, j = np.triu_indices(self.size)
        weight = np.where(i == j, 1.0, sqrt(2.0))
        found = np.zeros_like(matrix)
        found[i, j] = (self.rows.T @ (self.rows @ (matrix[i, j] * weight))) / weight
        return np.asarray(found + np.triu(found, 1).T)


# What a basis of finite degree leaves out, judged by the size of its highest functions.
#
# Weights of smooth and of kinked functions fall off with the order. Beyond the last order of a covariate they are
# taken to go on from the larger of the last two, falling like the power -3/2 of the order, with random signs.


_FALL = 1.5  # coefficients are supposed to fall with this power of their order
_MORE = 6  # further orders that are counted
_FAMILIES = ("legendre", "cosine")


def higher_functions(basis: Basis) -> Basis | None:
    """Return the next orders of every covariate's own functions, all of weight one; None where there are none."""
    axes, terms = [], []
    for axis in basis.axes:
        if axis.family in _FAMILIES:
            axes.append(replace(axis, size=axis.size + _MORE))
            last = len(axes) - 1
            terms += [Term((last,), (axis.size + more,), axis.size + more + 1) for more in range(_MORE)]
    return Basis(tuple(axes), tuple(terms), (0.0, *(1.0,) * len(terms))) if terms else None


def higher_variances(basis: Basis, weights: Floats, covariance: Floats) -> Floats:
    """Return the variance of every function of `higher_functions`, the constant (which has none) first."""
    squares = (weights**2 + np.diag(covariance)) * basis.scale**2
    starts = np.cumsum((0, *basis.sizes))
    found = [0.0]
    for place, axis in enumerate(basis.axes):
        if axis.family not in _FAMILIES:
            continue
        last = max((_square(basis, squares, starts, place, axis, back) for back in (1, 2)), default=0.0)
        orders = np.arange(axis.size + 1, axis.size + _MORE + 1)
        found += list(last * (axis.size / orders) ** (2 * _FALL))
    return np.array(found)


def _square(
    basis: Basis, squares: Floats, starts: NDArray[np.int64], place: int, axis: Axis, back: int
) -> float:
    """Return the squared weight of a covariate's own function `back` orders from the end, 0 if there is none."""
    for number, term in enumerate(basis.terms):
        if term.axes == (place,) and term.groups == (axis.size - back,):
            return float(squares[starts[number + 1]])
    return 0.0
