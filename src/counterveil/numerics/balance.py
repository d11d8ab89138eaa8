"""Balance and overlap of arms, column by column.

Weights are those of an estimate: for the coefficients c_i of a linear estimate pass |c_i|. Within
each arm they are scaled to sum to one. Differences are divided by the standard deviation of the
unweighted data, sqrt((v_1 + v_0)/2) with v the unbiased variances, before and after weighting alike,
so that the two columns can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.standard_columns import RowSource, strips

# Numbers read at once.
_NUMBERS = 1 << 18
# A variance below this part of the squares it was taken from is rounding.
_ROUNDING = 1e-12
_CENTRED = 1e-9


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
    even, weighted = balances(X, treated, np.ones(len(X)) if weights is None else weights)
    return even if weights is None else weighted


def balances(X: NDArray[np.floating], treated: Flags, weights: Floats) -> tuple[Balance, Balance]:
    """Return the balance of the columns of X (n, d) under equal weights, and under the given ones (n,)."""
    return compared(_moments(X, treated, weights))


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


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """Mean (d,), variance (d,) and effective size of one arm under some weights."""

    mean: Floats
    variance: Floats
    size: float

    @property
    def unbiased(self) -> Floats:
        """The variance times size/(size - 1); 0 for a single unit."""
        return self.variance * (self.size / (self.size - 1)) if self.size > 1 else np.zeros_like(self.mean)


def compared(moments: Sequence[ArmMoments]) -> tuple[Balance, Balance]:
    """Return the balance under equal weights and under others, from moments of treated and control rows under both."""
    even_treated, even_control, treated, control = moments
    scale = np.sqrt((even_treated.unbiased + even_control.unbiased) / 2)
    return _compared(even_treated, even_control, scale), _compared(treated, control, scale)


def _compared(treated: ArmMoments, control: ArmMoments, scale: Floats) -> Balance:
    gap = treated.mean - control.mean
    treated_variance = treated.unbiased
    control_variance = control.unbiased
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(gap == 0, 0.0, gap / scale)
        ratio = np.where(treated_variance == control_variance, 1.0, treated_variance / control_variance)
    return Balance(difference, ratio)


def _moments(X: NDArray[np.floating], treated: Flags, weights: Floats) -> list[ArmMoments]:
    """Return the moments of treated and control rows under equal weights, then under the given ones.

    Squares are taken once, around the mean of all rows. What remains of them when the squared distance of an arm's
    mean is taken off counts as nothing where it is rounding alone.
    """
    w = np.stack([used * inside for used in (1.0, weights) for inside in (treated, ~treated)])
    totals = w.sum(axis=1)
    sizes = np.einsum("ij,ij->i", w, w)
    share = np.divide(w, totals[:, None], out=np.zeros_like(w), where=totals[:, None] > 0)
    rows = [int(np.count_nonzero(w[arm])) for arm in range(2)]
    mean, squares = _sums(X, share, np.zeros(X.shape[1]))
    centre = (rows[0] * mean[0] + rows[1] * mean[1]) / max(sum(rows), 1)
    # Columns with a mean of zero but for rounding are squared as they are.
    if (np.abs(centre) > _CENTRED).any():
        squares = _sums(X, share, centre)[1]
    else:
        centre = np.zeros_like(centre)
    squared_shift = (totals[:, None] > 0) * (mean - centre) ** 2
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return [
        ArmMoments(m, v, size)
        for m, v, size in zip(mean, variance_from_squares(squares, squared_shift), effective, strict=True)
    ]


def variance_from_squares(squares: Floats, squared_mean: Floats) -> Floats:
    """Return mean squares less the square of a mean; what rounding leaves counts as nothing."""
    return np.where(squares - squared_mean <= _ROUNDING * squares, 0.0, squares - squared_mean)


def _sums(X: NDArray[np.floating], share: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return the sums of X - centre, and of its squares, (4, d), under the weights `share` (4, n)."""
    sums, squares = np.zeros((4, X.shape[1])), np.zeros((4, X.shape[1]))
    step = max(1, _NUMBERS // max(X.shape[1], 1))
    for start in range(0, len(X), step):
        deviations = X[start : start + step] - centre
        weights = share[:, start : start + step]
        sums += weights @ deviations
        squares += weights @ (deviations * deviations)
    return sums, squares


def column_balances(
    raw: RowSource, labels: Sequence[int], treated: NDArray[np.bool_], weights: Floats
) -> tuple[Balance, Balance]:
    """Return the balance of columns under equal weights and under non-negative weights (n,).

    `raw` is (d, n), a row for each covariate. `labels` says of each how many codes it holds, which become one
    column each in its place; 0 stands for numbers.
    """
    share = np.zeros((4, len(weights)))
    share[0][treated] = share[1][~treated] = 1.0
    np.multiply(weights, share[:2], out=share[2:])
    totals = share.sum(axis=1)
    sizes = np.einsum("ij,ij->i", share, share)
    np.divide(share, totals[:, None], out=share, where=totals[:, None] > 0)
    mean, variance = _weighted_moments(raw, share)
    by_covariate = [
        _levels(raw[j], count, share) if count else (mean[:, j : j + 1], variance[:, j : j + 1])
        for j, count in enumerate(labels)
    ]
    means, variances = (np.concatenate([moments[k] for moments in by_covariate], axis=1) for k in (0, 1))
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return compared([ArmMoments(*arm) for arm in zip(means, variances, effective, strict=True)])


def _weighted_moments(raw: RowSource, share: Floats) -> tuple[Floats, Floats]:
    """Return covariates' means (4, d), less their first entries, and variances (4, d), under four weights (4, n)."""
    means, squares = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    for k in range(len(raw)):
        column = raw[k]
        for rows in strips(len(column)):
            deviations = column[rows] - column[0]
            means[:, k] += share[:, rows] @ deviations
            squares[:, k] += share[:, rows] @ (deviations * deviations)
    return means, variance_from_squares(squares, means**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    level = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(level, weights, count).astype(np.float64) for weights in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(level, minlength=count) / len(level)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, variance_from_squares(squares, (mean - centre) ** 2)
