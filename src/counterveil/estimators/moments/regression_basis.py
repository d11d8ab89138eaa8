"""The columns that a regression names, as combinations of the working columns that moments were released of.

Moments are released of working columns: u = mix f with f = (1, z, products of z) and z = (x - centre) /
scale, x being columns in [-1, 1] (`rows.moments.working_rows`), or of (u, residual of the outcome) where
outcomes alone are private. Regressions name columns in their own units, X = middle + half x. Each function
returns the matrix B, one line for the constant, every column and every product, with

    (1, X, products of X) = B (working columns).

With X = zero + slope z, zero = middle + half centre and slope = half scale, a product is

    X_i X_j = zero_i zero_j + slope_i zero_j z_i + slope_j zero_i z_j + slope_i slope_j z_i z_j.

All numbers are public or were released.

In: released centres, scales and matrices of the working columns. Out: exact linear maps, B, by which moments
M of working columns become B M B' in units of the columns. Nothing is released here.
"""

from __future__ import annotations

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.rows.moments.outcome_moments import OutcomeRows
from counterveil.rows.moments.regression_columns import Columns
from counterveil.rows.moments.working_rows import WorkingRows


def basis_of(rows: WorkingRows | OutcomeRows) -> Floats:
    """Return the constant and every named column as combinations of working columns, (size, size)."""
    if isinstance(rows, WorkingRows):
        in_features = column_basis(rows.columns, rows.centre, rows.scale)
        return np.asarray(in_features @ np.linalg.inv(rows.mix) / rows.factors)
    # The outcome is the last of the single columns: the prediction from u, and the residual.
    outcome = rows.columns.singles
    size = len(rows.mix) + 1
    features = np.zeros((size, size))
    features[np.arange(size) != outcome, :-1] = np.linalg.inv(rows.mix)
    features[outcome, :-1] = rows.prediction
    features[outcome, -1] = 1.0
    return np.asarray(column_basis(rows.columns, np.zeros(outcome), np.ones(outcome)) @ features)


def column_basis(columns: Columns, centre: Floats, scale: Floats) -> Floats:
    """Return every named column, the constant first, as a combination of (1, z, products of z)."""
    middle, half = np.array(columns.ends).T
    zero = middle + half * centre
    slope = half * scale
    size = 1 + len(columns.names)
    basis = np.zeros((size, size))
    basis[0, 0] = 1.0
    for column in range(columns.singles):
        basis[1 + column, 0] = zero[column]
        basis[1 + column, 1 + column] = slope[column]
    for column, (i, j) in enumerate(columns.products, 1 + columns.singles):
        basis[column, 0] = zero[i] * zero[j]
        basis[column, 1 + i] += slope[i] * zero[j]
        basis[column, 1 + j] += slope[j] * zero[i]
        basis[column, column] = slope[i] * slope[j]
    return basis
