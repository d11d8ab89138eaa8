"""Rows of features brought to a length of at most one, and exact sums of their products.

A row longer than `length` is shortened to it, and its outcome with it: a weight in a regression that depends
on covariates alone. Then all rows are divided by `length`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Axis, Basis, Term
from counterveil.numerics.products import WholeSum, projected, squared_lengths, sums, whole_gram

# Rows of length at most one, the arm of each, and outcomes in [-1, 1].
Block = tuple[Floats, NDArray[np.intp], Floats]

# Rows and outcomes are taken in steps of 2**-STATISTIC_BITS, residuals and rows beside them of 2**-TERM_BITS.
STATISTIC_BITS = 20
TERM_BITS = 20


def shortened(features: Floats, length: float) -> tuple[Floats, Floats]:
    """Return features / length, no row longer than one but for rounding, and the factor of every row's outcome."""
    size = lengths(features)
    factor = length / np.maximum(size, length)
    return features * (factor / length)[:, None], factor


def lengths(rows: Floats) -> Floats:
    """Return the Euclidean length of every row."""
    return np.asarray(np.sqrt(squared_lengths(rows)))


def _predicted(u: Floats, arm: NDArray[np.intp], weights: Floats) -> Floats:
    """Return u.weights[arm] of every row."""
    found = [projected(u, line) for line in weights]
    return found[0] if len(found) == 1 else np.asarray(np.choose(arm, found))


def _steps(values: Floats, bits: int) -> Floats:
    """Return the values in whole steps of 2**-bits, truncated towards zero; scaling by a power of two is exact."""
    found = values * 2.0**bits
    return np.trunc(found, out=found)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Exact sums over the rows of every arm, in units of 4**-STATISTIC_BITS: u u', u v, and v v of all arms."""

    grams: tuple[list[list[int]], ...]
    products: tuple[list[int], ...]
    square: int


def statistics(row_blocks: Iterable[Block], arms: int) -> Statistics:
    """Return the sums of u u' and u v by arm and of v v, every factor truncated towards zero."""
    total = [WholeSum() for _ in range(arms)]
    for u, arm, v in row_blocks:
        stacked = _steps(np.column_stack((u, v)), STATISTIC_BITS)
        for place in range(arms):
            total[place].add(whole_gram(stacked[arm == place] if arms > 1 else stacked))
    found = [each.whole().tolist() for each in total]
    return Statistics(
        tuple([row[:-1] for row in each[:-1]] for each in found),
        tuple([row[-1] for row in each[:-1]] for each in found),
        sum(each[-1][-1] for each in found),
    )


def gradient(row_blocks: Iterable[Block], weights: Floats, clip: float) -> tuple[list[int], int]:
    """Return the sums of u rho by arm, one after another, and of rho rho, in units of 4**-TERM_BITS.

    rho is (v - u.weights[arm]) / clip, clipped to [-1, 1]; `weights` has one row an arm.
    """
    arms, size = weights.shape
    total = [0] * (arms * size)
    square = 0
    for u, arm, v in row_blocks:
        residual = v - _predicted(u, arm, weights)
        rho = np.trunc(np.clip(residual / clip, -1.0, 1.0) * 2.0**TERM_BITS)
        direction = _steps(u, TERM_BITS)
        # Whole numbers whose sums stay below 2**53: exact in doubles, in any order.
        by_arm = (
            np.array([np.where(arm == place, rho, 0.0) for place in range(arms)]) if arms > 1 else rho[None]
        )
        for place, value in enumerate(sums(direction, by_arm).ravel()):
            total[place] += int(value)
        square += int((rho.astype(np.int64) ** 2).sum())
    return total, square


def sizes(row_blocks: Iterable[Block], weights: Floats, edges: Floats) -> NDArray[np.int64]:
    """Return how many rows have |v - u.weights[arm]| in each cell between the edges; one cell lies above the last."""
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for u, arm, v in row_blocks:
        residual = np.abs(v - _predicted(u, arm, weights))
        counts += np.bincount(np.searchsorted(edges, residual), minlength=len(counts))
    return counts


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
