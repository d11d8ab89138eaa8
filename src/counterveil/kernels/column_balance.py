"""How alike two arms are in covariates kept column by column; see `balance`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.balance import ArmMoments, Balance, compared, left_of_squares
from counterveil.kernels.compilation import is_compiled, run

Floats = NDArray[np.float64]


def column_balances(
    raw: Floats, labels: Sequence[int], treated: NDArray[np.bool_], weights: Floats
) -> tuple[Balance, Balance]:
    """Return the balance of columns under equal weights and under non-negative weights (n,).

    `raw` is (d, n), a line for each covariate. `labels` says of each how many codes it holds, which become one
    column each in its place; 0 stands for numbers.
    """
    w = np.stack([used * inside for used in (1.0, weights) for inside in (treated, ~treated)])
    totals, sizes = w.sum(axis=1), np.einsum("ij,ij->i", w, w)
    share = np.divide(w, totals[:, None], out=np.zeros_like(w), where=totals[:, None] > 0)
    mean, variance = _moments(raw, share)
    parts = [
        _levels(raw[j], count, share) if count else (mean[:, j : j + 1], variance[:, j : j + 1])
        for j, count in enumerate(labels)
    ]
    means, variances = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return compared([ArmMoments(*each) for each in zip(means, variances, effective, strict=True)])


def _moments(raw: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the lines' means (4, d), less their first entries, and variances (4, d), under four weights (4, n)."""
    from counterveil.kernels.column_loops import add_moments

    first, second = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    if is_compiled(add_moments):
        run(add_moments, (raw, share), (first, second))
    else:
        away = raw - raw[:, :1]
        first, second = share @ away.T, share @ (away * away).T
    return first, left_of_squares(second, first**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    places = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(places, one, count).astype(np.float64) for one in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(places, minlength=count) / len(places)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, left_of_squares(squares, (mean - centre) ** 2)
