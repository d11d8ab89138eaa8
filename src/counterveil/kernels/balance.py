"""How alike two arms are: standardised differences, variance ratios, effective sizes, overlap counts.

Weights are those of an estimate: for the coefficients c_i of a linear estimate pass |c_i|. Within
each arm they are scaled to sum to one. Differences are divided by the standard deviation of the
unweighted data, sqrt((v_1 + v_0)/2) with v the unbiased variances, before and after weighting alike,
so that the two columns can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_BLOCK = 1 << 14  # rows read at once


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of d covariates; arrays are (d,).

    `difference`: standardised mean difference, treated minus control (0 where both arms are constant
    and equal, infinite where they are constant and differ). `variance_ratio`: treated over control
    (1 where both are zero).
    """

    difference: Floats
    variance_ratio: Floats


def balance(X: NDArray[np.floating], treated: Flags, weights: Floats | None = None) -> Balance:
    """Return the balance of the columns of X (n, d) under non-negative weights (n,), equal ones if None."""
    plain = [_moments(X, treated == arm, None) for arm in (True, False)]
    scale = np.sqrt((_unbiased(*plain[0]) + _unbiased(*plain[1])) / 2)
    used = plain if weights is None else [_moments(X, treated == arm, weights) for arm in (True, False)]
    gap = used[0][0] - used[1][0]
    top, bottom = _unbiased(*used[0]), _unbiased(*used[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(gap == 0, 0.0, gap / scale)
        ratio = np.where(top == bottom, 1.0, top / bottom)
    return Balance(difference, ratio)


def effective_size(treated: Flags, weights: Floats) -> tuple[float, float]:
    """Return (sum w)^2 / sum w^2 of the treated and of the control units; 0 for an arm without weight."""
    sizes = []
    for arm in (True, False):
        inside = weights[treated == arm]
        squares = float(inside @ inside)
        sizes.append(float(inside.sum()) ** 2 / squares if squares else 0.0)
    return sizes[0], sizes[1]


def overlap_counts(
    treated: Flags, score: Floats, edges: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of treated and control scores in the bins [e_0, e_1), ..., [e_{k-1}, e_k].

    Scores outside the edges are counted in the first or the last bin.
    """
    inner = np.asarray(edges, np.float64)[1:-1]
    bins = np.searchsorted(inner, score, side="right")
    both = np.bincount(2 * bins + treated, minlength=2 * (len(inner) + 1))
    return both[1::2].astype(np.int64), both[::2].astype(np.int64)


def _moments(X: NDArray[np.floating], rows: Flags, weights: Floats | None) -> tuple[Floats, Floats, float]:
    """Return weighted mean, weighted variance and effective size of some rows, in two passes over blocks."""
    total = squares = 0.0
    mean, variance = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block, w in _weighted_blocks(X, rows, weights):
        total += float(w.sum())
        squares += float(w @ w)
        mean += w @ block
    if total > 0:
        mean /= total
        for block, w in _weighted_blocks(X, rows, weights):
            variance += w @ (block - mean) ** 2
        variance /= total
    return mean, variance, total**2 / squares if squares else 0.0


def _weighted_blocks(
    X: NDArray[np.floating], rows: Flags, weights: Floats | None
) -> Iterator[tuple[Floats, Floats]]:
    """Yield some rows of X as float64 and their weights, block by block."""
    for first in range(0, len(X), _BLOCK):
        here = slice(first, first + _BLOCK)
        inside = rows[here]
        block = np.asarray(X[here][inside], np.float64)
        yield block, np.ones(len(block)) if weights is None else weights[here][inside]


def _unbiased(mean: Floats, variance: Floats, size: float) -> Floats:
    """Return the variance times size/(size - 1), size being the effective one; 0 for a single unit."""
    return variance * (size / (size - 1)) if size > 1 else np.zeros_like(mean)
