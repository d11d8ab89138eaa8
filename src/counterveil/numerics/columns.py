"""Products of tall matrices kept column by column with vectors and with themselves, on one thread.

`columns` is (p, n), one contiguous line for each column of an (n, p) matrix, in single or double precision; the
rows `start` to `stop` of that matrix count. Sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats
from counterveil.numerics.balance import ArmMoments, Balance, compared, left_of_squares
from counterveil.numerics.compiled import run
from counterveil.numerics.products import Kind

Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are turned into another precision at once: they stay in a core's cache.
_BLOCK = 1 << 16
# Rows and columns beside a sum of products, for the loops work on four at a time.
ROOM = 3


def scores(columns: Columns, start: int, stop: int, direction: NDArray[P]) -> NDArray[P]:
    """Return the rows' products with a direction (p,), in its precision, of shape (stop - start,)."""
    from counterveil.numerics.loops import add_scores

    found = np.zeros(stop - start, direction.dtype)
    add_scores(columns, start, stop, direction, found)
    return found


def totals(columns: Columns, start: int, stop: int, weights: NDArray[np.floating]) -> Floats:
    """Return the sum of the rows times their weights (stop - start,), of shape (p,).

    Where the weights are in single precision a thousand products are added up in it before they go to the total.
    """
    from counterveil.numerics.loops import add_totals

    found = np.zeros(len(columns))
    add_totals(columns, start, stop, weights, found)
    return found


def products(columns: Columns, start: int, stop: int, kind: Kind = np.float64) -> Floats:
    """Return the sum of the rows' products with themselves, (p, p).

    In single precision a few hundred products are added up before they go to the total, in half the time: for
    steps that later ones correct.
    """
    width, step = len(columns), max(_BLOCK // max(len(columns), 1), 1)
    total = np.zeros((width + ROOM, width + ROOM))
    if columns.dtype == kind:
        add_products(total, columns, start, stop)
    else:
        for first in range(start, stop, step):
            block: Columns = columns[:, first : min(first + step, stop)].astype(kind)
            add_products(total, block, 0, block.shape[1])
    whole = total[:width, :width]
    return np.tril(whole) + np.tril(whole, -1).T


def add_products(total: Floats, columns: Columns, start: int, stop: int, sign: float = 1.0) -> None:
    """Add `sign` times those sums to the lower triangle of `total`, which has ROOM more rows and columns.

    What stands in these, and above the diagonal, does not count.
    """
    from counterveil.numerics import loops as column_loops

    column_loops.add_products(columns, start, stop, sign, total)


# How alike two arms are in covariates kept column by column; see `balance`.


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
    from counterveil.numerics.loops import add_moments

    first, second = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    run(add_moments, (raw, share), (first, second))
    return first, left_of_squares(second, first**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    places = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(places, one, count).astype(np.float64) for one in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(places, minlength=count) / len(places)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, left_of_squares(squares, (mean - centre) ** 2)
