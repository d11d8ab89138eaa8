"""Residuals of the two models row by row, their orthogonal score, and exact sums of both.

All parameters are public or were released before; a row's terms depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.products import (
    WholeSum,
    projected,
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
        total.add(sums_by_arm(rho.astype(np.float64), t, arms, steps(u / max_norm, TERM_BITS)))
        square += int((rho * rho).sum())
    return np.atleast_1d(total.whole()), np.array([square], dtype=object)


def sums_by_arm(rho: Floats, arm: NDArray[Any], arms: int, direction: Floats) -> NDArray[np.int64]:
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
