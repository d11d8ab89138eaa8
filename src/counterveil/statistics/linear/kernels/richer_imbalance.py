"""How far weights are from balance in functions of covariates that they were not made to balance."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import blocks

# Products of up to three columns are looked at, of as many columns as make no more of them than the second number.
DEGREE, _MOST = 3, 120
# Standard deviations at which columns are cut.
_CUT = 3.0
# Rows on which covariances of functions are computed, and the least part of a function that counts as new.
_SAMPLE, _LEAST_NEW = 20_000, 0.02
# Standard deviations of the imbalance beyond its mean that chance explains.
_CHANCE = 1.0


def richer_imbalance(
    columns: Floats, logit: Floats, balanced: NDArray[np.floating], weights: Floats
) -> float:
    """Return the imbalance beyond chance in products of up to three columns, less what balanced features hold of them.

    It is that in the worst direction, for a function of mean square one, beside the root of the sum of squared weights:
    0 where chance explains it. `columns` is (n, d), `balanced` (n, p), and `weights` (n,) have one sign in each arm.
    """
    usual = _usual(columns, logit)
    if not usual.shape[1]:
        return 0.0
    powers = [
        power
        for degree in range(1, DEGREE + 1)
        for power in combinations_with_replacement(range(usual.shape[1]), degree)
    ]
    rows = slice(None, None, max(1, len(usual) // _SAMPLE))
    known = np.column_stack([np.ones(len(usual[rows])), balanced[rows]])
    made = _products(usual[rows], powers)
    scale = made.std(axis=0)
    made, powers = made[:, scale > 0] / scale[scale > 0], [p for p, s in zip(powers, scale, strict=True) if s]
    fit = np.linalg.lstsq(known, made, rcond=1e-6)[0]
    left = made - known @ fit
    values, vectors = np.linalg.eigh(left.T @ left / len(left))
    kept = values > _LEAST_NEW
    gaps = np.zeros(len(powers))
    for part in blocks(len(usual)):
        gaps += weights[part] @ _products(usual[part], powers)
    gaps = gaps / scale[scale > 0] - np.append(weights.sum(), weights @ balanced) @ fit
    squares = (gaps @ vectors[:, kept]) ** 2 / values[kept]
    directions = int(kept.sum())
    found = float(squares.sum() / (weights @ weights))
    return sqrt(max(found - directions - _CHANCE * sqrt(2.0 * directions), 0.0))


def _usual(columns: Floats, logit: Floats) -> Floats:
    """Return the columns that go with the score most, in standard deviations, cut."""
    spread = columns.std(axis=0)
    usual = (columns - columns.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    count = max(k for k in range(usual.shape[1] + 1) if comb(k + DEGREE, DEGREE) - 1 <= _MOST)
    order = np.argsort(-np.abs(usual.T @ (logit - logit.mean())), kind="stable")
    return np.asarray(np.clip(usual[:, np.sort(order[:count])], -_CUT, _CUT))


def _products(usual: Floats, powers: list[tuple[int, ...]]) -> Floats:
    return np.column_stack([usual[:, list(power)].prod(axis=1) for power in powers])
