"""The variance of a weighted sum from the spread of outcomes around a line in public features.

For each arm the outcomes' squares around their mean are added up, less what a few public directions
explain: Q = sum (y_i - mean)^2 - sum_k (g_k . y)^2. With S the arm's sum of squared weights, V adds up
S Q / (degrees of freedom), the estimate of S times the variance of an outcome of that arm. Directions
are shrunk as in ridge regression, g_k = sqrt(q_k) u_k with u_k orthonormal: without any, Q is the plain
sum of squares; with all in full, that of the residuals of a regression.

Directions are integers, and so are outcomes; Q is exact. How far one outcome can move V is a property
of those very integers: `kernels/residual_variance.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.linear_form import COEFFICIENT_BITS, exact_dot
from counterveil.kernels.thin_products import gram, times

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Arms of at most this many rows have their largest row found by trying all; larger ones by a bound.
_EXACT_ROWS = 2048
_BLOCK = 128
# Covers the rounding of the bounds below, which are computed in double precision.
_ROUNDING = 1 + Fraction(1, 10**6)
# Directions whose share of the features' variance is below this are rounding.
_NO_VARIANCE = 1e-10


@dataclass(frozen=True, slots=True)
class ArmResidual:
    """One arm's part of V: `factor` times (squares around the mean less what the directions explain).

    `units`: (q, n) directions in steps of 2**-bits, one a row of the array. `largest_move`: a bound on what
    one outcome of the arm can move, in units of the range squared.
    """

    rows: Rows
    units: NDArray[np.int32]
    bits: int
    factor: Fraction
    largest_move: Fraction

    @classmethod
    def of(cls, rows: Rows, units: NDArray[np.int32], bits: int, factor: Fraction) -> ArmResidual:
        """Return the part with its largest move, found from the integers themselves."""
        return cls(rows, units, bits, factor, factor * _largest_move(units, bits))

    def value(self, outcome: NDArray[np.int64]) -> Fraction:
        """Return the arm's part for integer outcomes in [0, 2**24], in squared steps; exact."""
        y = outcome[self.rows]
        squares = Fraction(exact_dot(y, y)) - Fraction(int(y.sum()) ** 2, len(y))
        explained = sum(exact_dot(np.asarray(g, np.int64), y) ** 2 for g in self.units)
        return self.factor * (squares - Fraction(explained) / Fraction(4) ** self.bits)


def _largest_move(units: NDArray[np.int32], bits: int) -> Fraction:
    """Return a bound on what one outcome can move at factor one; see the proof page."""
    n = units.shape[1]
    if not len(units):
        return Fraction(n - 1, n)
    G = np.ldexp(units.T.astype(np.float64), -bits)
    lengths = np.einsum("ij,ij->i", G, G)
    off = _row_sums(G, lengths) if n <= _EXACT_ROWS else _row_bounds(G, lengths)
    uneven = np.abs(G @ G.sum(axis=0))
    worst = float((np.maximum(off, (n - 1) / n - lengths) + uneven).max())
    return Fraction(worst) * _ROUNDING


def _row_sums(G: Floats, lengths: Floats) -> Floats:
    """Return sum over j != i of |1/n + g_i . g_j| for every row i, from all pairs of rows in blocks."""
    n = len(G)
    sums = np.empty(n)
    for start in range(0, n, _BLOCK):
        here = slice(start, start + _BLOCK)
        sums[here] = np.abs(1 / n + times(G, G[here].T)).sum(axis=0)
    return np.asarray(sums - np.abs(1 / n + lengths))


def _row_bounds(G: Floats, lengths: Floats) -> Floats:
    """Return a bound on the same by Cauchy and Schwarz: sqrt(n - 1) times the root of the sum of squares."""
    n = len(G)
    total = G.sum(axis=0)
    squares = (
        1 / n + (2 / n) * (G @ total) + np.einsum("ij,ij->i", times(G, gram(G)), G) - (1 / n + lengths) ** 2
    )
    return np.asarray(np.sqrt((n - 1) * np.maximum(squares, 0.0)))


@dataclass(frozen=True, slots=True)
class ResidualVariance:
    """V: the sum of both arms' parts. `loading` is what V holds of a mean outcome of variance one.

    With S the sum of squared weights, E V = S (variance around the mean) + loading (variance of the mean)
    when the mean outcome is linear in the features in a random direction.
    """

    arms: tuple[ArmResidual, ...]
    loading: float

    def largest_row(self, rows: int) -> Fraction:  # noqa: ARG002 - other forms of variance need it
        """Return twice the bound on what one outcome can move; an outcome is in one arm."""
        return 2 * max(arm.largest_move for arm in self.arms)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return V for integer outcomes in [0, 2**steps_bits], in units of the whole range squared."""
        return sum((arm.value(outcome) for arm in self.arms), Fraction(0)) / Fraction(4) ** steps_bits


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The principal directions of one arm's features: centre (p,), variances (p,), vectors (p, p) in columns."""

    rows: Rows
    centre: Floats
    variances: Floats
    vectors: Floats
    weight: float

    @classmethod
    def of(cls, features: NDArray[np.floating], weights: Floats, inside: NDArray[np.bool_]) -> Spectrum:
        """Return the directions of the rows `inside`, with the sum of their squared weights."""
        rows = np.flatnonzero(inside)
        arm = features[rows]
        centre = np.asarray(arm.mean(axis=0, dtype=np.float64))
        arm -= centre.astype(arm.dtype)
        variances, vectors = np.linalg.eigh(gram(arm) / len(rows))
        kept = variances > _NO_VARIANCE * max(float(variances.sum()), 1e-300)
        squares = float(weights[rows] @ weights[rows])
        return cls(rows, centre, variances[kept], vectors[:, kept], squares)

    def shrinkage(self, strength: float) -> Floats:
        """Return q_k = strength l_k / (1 + strength l_k) for the directions' variances l_k."""
        size = strength * self.variances
        return np.asarray(size / (1 + size))

    def freedom(self, strength: float) -> float:
        """Return the degrees of freedom that the shrunk directions leave."""
        return len(self.rows) - 1 - float(self.shrinkage(strength).sum())

    def loading(self, strength: float) -> float:
        """Return the part of V per unit of variance of a mean outcome in a random direction."""
        left = len(self.rows) * float(((1 - self.shrinkage(strength)) * self.variances).sum())
        return self.weight * left / self.freedom(strength)

    def typical_move(self, strength: float) -> float:
        """Return about what `largest_move` will be, from the spectrum alone."""
        explained = float(self.shrinkage(strength).sum())
        return self.weight / self.freedom(strength) * sqrt(1 + 1.5 * explained)

    def residual(self, features: NDArray[np.floating], strength: float) -> ArmResidual:
        """Return the arm's part of V with all directions shrunk."""
        shrunk = self.shrinkage(strength)
        factor = Fraction(self.weight / self.freedom(strength))
        used = shrunk > 0
        if not used.any():
            return ArmResidual.of(self.rows, np.empty((0, len(self.rows)), np.int32), 0, factor)
        arm = features[self.rows].astype(np.float64) - self.centre
        scale = np.sqrt(shrunk[used] / (len(self.rows) * self.variances[used]))
        G = times(arm, self.vectors[:, used] * scale).T
        bits = COEFFICIENT_BITS - int(np.frexp(float(np.abs(G).max()))[1])
        return ArmResidual.of(self.rows, np.trunc(np.ldexp(G, bits)).astype(np.int32), bits, factor)


def residual_variance(
    features: NDArray[np.floating], spectra: tuple[Spectrum, ...], strength: float
) -> ResidualVariance:
    """Return V for (n, p) features, with the arms' directions shrunk by `strength` (0: none is used)."""
    return ResidualVariance(
        tuple(spectrum.residual(features, strength) for spectrum in spectra),
        sum(spectrum.loading(strength) for spectrum in spectra),
    )
