"""How much of the treatment each covariate explains beyond the others: partial R^2 of a linear regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# Beyond this many rows evenly spaced ones are read, beyond this many columns nothing is: an aid to judgement is not
# to take longer than an estimate.
_MOST_ROWS, _MOST_COLUMNS = 200_000, 200
# Rows expanded at once.
_AT_ONCE = 16_384
# Added to the diagonal of a correlation matrix, so that columns that repeat each other can be inverted.
_RIDGE = 1e-9


def partial_shares(raw: Sequence[Floats], labels: Sequence[int], treated: NDArray[np.bool_]) -> Floats | None:
    """Return (d,) the partial R^2 of each covariate with the treatment, given the others; None for very many columns.

    `raw` holds a column (n,) for each covariate. `labels` says of each how many codes it holds, which count together
    as one covariate; 0 stands for numbers. Constant covariates have 0.
    """
    widths = [count - 1 if count else 1 for count in labels]
    columns = sum(widths)
    if not columns or columns > _MOST_COLUMNS:
        return None
    correlation = _correlation(raw, labels, columns, treated)
    precision = np.linalg.inv(correlation + _RIDGE * np.eye(columns + 1))
    shares, places = np.zeros(len(labels)), np.cumsum([0, *widths])
    for j, (place, width) in enumerate(zip(places, widths, strict=False)):
        if width == 1:
            shares[j] = precision[place, -1] ** 2 / (precision[place, place] * precision[-1, -1])
        elif width:
            # What is left of this covariate and of the treatment when all others are taken off.
            own = [*range(place, place + width), columns]
            left = np.linalg.inv(precision[np.ix_(own, own)])
            along = left[:-1, -1]
            shares[j] = float(along @ np.linalg.solve(left[:-1, :-1], along) / left[-1, -1])
    return np.where(shares > 0.0, np.minimum(shares, 1.0), 0.0)


def _correlation(
    raw: Sequence[Floats], labels: Sequence[int], columns: int, treated: NDArray[np.bool_]
) -> Floats:
    """Return (columns + 1, columns + 1) the correlations of all columns and, last, of the treatment."""
    step = max(1, -(-len(treated) // _MOST_ROWS))
    chosen = np.arange(0, len(treated), step)
    centre = [float(column[::step].mean()) for column in raw]
    total, first = np.zeros((columns + 1, columns + 1)), np.zeros(columns + 1)
    for start in range(0, len(chosen), _AT_ONCE):
        rows = chosen[start : start + _AT_ONCE]
        block = _expanded([column[rows] for column in raw], centre, labels, columns, treated[rows])
        total += block @ block.T
        first += block.sum(axis=1)
    mean = first / len(chosen)
    covariance = total / len(chosen) - np.outer(mean, mean)
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = size > _RIDGE * np.sqrt(np.diag(total) / len(chosen) + 1e-300)
    scale = np.where(varies, size, 1.0)
    found = np.where(np.outer(varies, varies), covariance / np.outer(scale, scale), 0.0)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _expanded(
    raw: Sequence[Floats],
    centre: Sequence[float],
    labels: Sequence[int],
    columns: int,
    treated: NDArray[np.bool_],
) -> Floats:
    """Return (columns + 1, b) numbers around their centre, indicators of labels but the first, and the treatment."""
    block = np.empty((columns + 1, len(treated)))
    place = 0
    for j, count in enumerate(labels):
        if count:
            block[place : place + count - 1] = raw[j] == np.arange(1, count)[:, None]
            place += count - 1
        else:
            block[place] = raw[j] - centre[j]
            place += 1
    block[-1] = treated
    return block
