"""Second moments of all columns of private records, released twice, for every regression among them.

Centres and scales come first. Then the matrix is released twice: a first time with a small part of the
budget, to know which combinations of the columns are uncorrelated and what the columns leave of each
response, and a second time in these. Before either, counts say how long rows are.

Numbers of this module that are choices, and not derived, were set on the tuning designs of
`experiments/regressions`; privacy does not depend on them.

In: private rows, whose declared columns are scaled to [-1, 1]; n is public. Out: noisy centres and second
moments (means of products of columns), from which any least squares regression among the columns follows as
post-processing. Rows longer than a limit from released counts are shortened to it: with squared length R at
most a replaced row moves the matrix by sqrt 2 R/n. Proofs: `rows/moments/regression_moments.proof.md`,
`rows/moments/record_moments.proof.md` (centres), `rows/moments/free_gram.proof.md` (matrix).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.estimators.moments.regression_plan import SHOWN, SHOWN_OF_FEW, RowPlan, cut_shares
from counterveil.estimators.moments.scaling import first_few, is_near_bound
from counterveil.numerics.arrays import Floats, Integers
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.moments.regression_moments import (
    LENGTHS,
    WINDOWS,
    LimitCounts,
    release_column_moments,
    release_limit_counts,
    release_row_moments,
)
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.rows.moments.working_rows import WorkingRows
from counterveil.rows.records import Records
from counterveil.session import Gate

PAGES = (
    "rows/moments/regression_moments.proof.md",
    "rows/moments/record_moments.proof.md",
    "rows/moments/free_gram.proof.md",
)
# Least variance of a column in [-1, 1], and how many standard deviations of its noise it keeps above zero.
_LEAST_VARIANCE = 1e-4
_NOISE_KEPT = 1.0
# Least variance of a combination of standardised columns that is stretched to one.
_LEAST_EIGENVALUE = 0.02
# What responses add to the squared length of a row, in parts of what the other columns have.
_RESPONSES = 0.75
# Combinations beyond this condition number cannot be turned back into columns.
_WORST_MIX = 1e12


@dataclass(frozen=True, slots=True)
class ReleasedMoments:
    """What was released of the working rows.

    Attributes
    ----------
    matrix : ndarray of float64, (size, size)
        Their second moments.
    sd : float
        Standard deviation of the noise off the diagonal.
    rows : WorkingRows
        How rows are made.
    weighted_down : float
        The share of rows that count less, as released.
    """

    matrix: Floats
    sd: float
    rows: WorkingRows
    weighted_down: float


def release_regression_moments(gate: Gate, records: Records, design: RowPlan) -> ReleasedMoments:
    """Return the matrix of second moments of weighted working rows, by five releases."""
    plain = standardised_rows(gate, records, design.columns)
    first = _released(gate, records, design, rows=plain, prefix="first ")
    return _released(gate, records, design, rows=mixed(first, design.least_signal), prefix="")


def _released(
    gate: Gate, records: Records, design: RowPlan, rows: WorkingRows, prefix: str
) -> ReleasedMoments:
    """Return the matrix of rows that are cut to released limits; `prefix` tells the first time from the second."""
    counts = release_limit_counts(gate, f"{prefix}reach", records, rows=rows, pure=design.pure)
    rows, longer = cut_rows(counts, rows, design)
    matrix, sd = release_row_moments(gate, f"{prefix}moments", records, rows)
    return ReleasedMoments(matrix, sd, rows, longer)


def standardised_rows(gate: Gate, records: Records, columns: Columns) -> WorkingRows:
    """Return rows with released centres and scales; variances stay above what their noise hides."""
    two_valued = columns.two_valued
    released, sd = release_column_moments(gate, records, columns)
    centre = np.clip(released[: len(two_valued)], -1.0, 1.0)
    squares = np.ones(len(two_valued))
    squares[~two_valued] = released[len(two_valued) :] / float(SQUARE_WEIGHT)
    variance_noise_sd = sd * np.hypot(np.where(two_valued, 0.0, 1 / float(SQUARE_WEIGHT)), 2 * centre)
    least = np.maximum(_NOISE_KEPT * variance_noise_sd, _LEAST_VARIANCE)
    variance = np.maximum(squares - centre**2, least)
    return WorkingRows.standardised(columns, centre, np.sqrt(np.minimum(variance, 1.0)))


def cut_rows(counts: LimitCounts, rows: WorkingRows, design: RowPlan) -> tuple[WorkingRows, float]:
    """Return the rows cut to windows and a length that noisy counts show, and the share of longer ones."""
    n = design.rows
    shares = cut_shares(design.entry_noise * sqrt(n))
    windows = np.full(len(rows.mix), np.inf)
    window_edges = np.append(WINDOWS, np.inf)
    for column, cells in zip(counts.watched, counts.windows, strict=True):
        shown = SHOWN_OF_FEW if is_near_bound(float(rows.centre[column - 1])) else SHOWN
        window, _ = first_few(cells, counts.variance, shares.responses * n, shown=shown, edges=window_edges)
        windows[column] = max(window, design.least_window)
    edges = rows.default_length * np.append(LENGTHS, LENGTHS[-1])
    length, longer = first_few(counts.lengths, counts.variance, shares.rows * n, shown=SHOWN, edges=edges)
    cut = cut_to(rows, windows, length)
    return cut, min(max(longer / n, 0.0), 1.0) if cut.length < cut.longest else 0.0


def cut_to(rows: WorkingRows, windows: Floats, length: float) -> WorkingRows:
    """Return the rows with windows and a length, and factors that leave responses their part of it."""
    cut = replace(rows, windows=windows, length=min(length, rows.longest))
    bounds = cut.bounds
    most = sqrt(_RESPONSES * cut.length / max(int(np.count_nonzero(bounds)), 1))
    return replace(cut, factors=most / np.maximum(bounds, most))


def mixed(first: ReleasedMoments, signal: float = 0.0) -> WorkingRows:
    """Return rows of uncorrelated columns and of what columns leave of responses, by the first matrix.

    Combinations whose variance the noise hides are not stretched. Arms, other responses of two values and products with
    responses stay as they are. All columns do where noise left no weight to the rows.
    """
    rows = first.rows
    matrix = first.matrix / np.outer(first.rows.factors, first.rows.factors)
    plain = WorkingRows.standardised(rows.columns, rows.centre, rows.scale)
    if matrix[0, 0] <= 0:
        return plain
    means = matrix[0] / matrix[0, 0]
    covariance = matrix / matrix[0, 0] - np.outer(means, means)
    noise = first.sd / np.outer(first.rows.factors, first.rows.factors) / matrix[0, 0]
    mix = np.eye(len(matrix))
    plain_columns = np.flatnonzero(~rows.explained & ~rows.joint)[1:]
    if len(plain_columns):
        values, vectors = np.linalg.eigh(covariance[np.ix_(plain_columns, plain_columns)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(plain_columns)) * first.sd / matrix[0, 0])
        root = (vectors / np.sqrt(np.clip(values, least, None))) @ vectors.T
        mix[np.ix_(plain_columns, plain_columns)] = root
        mix[plain_columns, 0] = -root @ means[plain_columns]
    others = np.flatnonzero(~rows.numbers)[1:]
    for response in np.flatnonzero(rows.numbers):
        _regress_response(
            mix,
            covariance,
            means,
            noise=noise[response],
            response=int(response),
            others=others,
            signal=signal,
        )
    sound = np.isfinite(mix).all() and np.linalg.cond(mix) < _WORST_MIX
    return replace(plain, mix=mix) if sound else plain


def _regress_response(
    mix: Floats,
    covariance: Floats,
    means: Floats,
    noise: Floats,
    response: int,
    others: Integers,
    signal: float,
) -> None:
    """Write into `mix` what the other columns leave of a response, divided by its standard deviation."""
    coefficients = np.zeros(len(mix))
    if len(others):
        values, vectors = np.linalg.eigh(covariance[np.ix_(others, others)])
        least = max(_LEAST_EIGENVALUE, 2 * sqrt(len(others)) * float(noise[0]))
        with_response = vectors.T @ covariance[others, response]
        with_response *= np.abs(with_response) > signal * float(noise[0])
        coefficients[others] = vectors @ (with_response / np.clip(values, least, None))
    change = -coefficients
    change[response] = 1.0
    change[0] = -float(change @ means) + change[0] * means[0]
    residual_variance = float(change[1:] @ covariance[1:, 1:] @ change[1:])
    variance = max(residual_variance, _NOISE_KEPT * float(noise[response]), _LEAST_EIGENVALUE)
    mix[response] = change / sqrt(variance)
