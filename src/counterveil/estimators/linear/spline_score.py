"""The propensity score that weights for balance treat as a feature: a logistic regression on linear splines.

    logit P(T = 1) = b_0 + sum_j b_j x_j + sum_j d_j max(x_j - mean_j, 0),

first b by penalised likelihood (Newton's method), numbers x_j being cut at three standard deviations so that
a few far rows do not decide their slopes, then d, the change of slope above the mean, by one step of
Newton's, shrunk towards zero as if it had a standard deviation of 0.1 (`_KNOT_PENALTY` = 1 / 0.1^2).

In: covariates and treatments, which are public where outcomes alone are private. Out: for every row its
score, a probability, and where asked the terms and groups of rows that treatment follows beyond it. Balancing
the score removes the bias of outcomes that follow it (Rosenbaum and Rubin 1983). No outcome is read: the
score costs no privacy, and the constants steer weights alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.data import Categories, Range
from counterveil.estimators.linear.column_logistic import (
    ColumnLogistic,
    FeatureRows,
    single_precision_weights,
    weighted_products,
)
from counterveil.estimators.linear.kernels.treatment_leaves import treatment_leaves
from counterveil.estimators.linear.kernels.treatment_terms import TreatmentTerms, treatment_terms
from counterveil.numerics import columns as column_products
from counterveil.numerics.arm_rows import solve_positive
from counterveil.numerics.arrays import Floats
from counterveil.numerics.propensity import approach
from counterveil.numerics.standard_columns import ComputedRows, clip_rows, write_levels
from counterveil.rows.public import PublicRows

# Standard deviations beyond which a number counts no further: a few far rows must not decide its slope.
_CUT_SDS = 3.0
# How strongly changes of slope are shrunk towards zero: as if they were drawn with a standard deviation of a tenth.
_KNOT_PENALTY = 100.0
# The gradient's tolerance: weights then agree to 1e-8 of the largest, however sums are rounded.
_TOLERANCE = 1e-12
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """For every row its arm, its propensity score, and the terms and leaves that treatment follows, where balanced."""

    treated: NDArray[np.bool_]
    score: Floats
    followed: TreatmentTerms | None = None
    leaves: NDArray[np.bool_] | None = None

    @property
    def arms(self) -> tuple[int, int]:
        """Number of treated and of control rows."""
        treated = int(np.count_nonzero(self.treated))
        return treated, len(self.treated) - treated


def covariate_rows(rows: PublicRows) -> ComputedRows:
    """Return a row (n,) of values or codes for each covariate, read where it is."""
    names = list(rows.study.covariates)
    columns = rows.covariates
    return ComputedRows(len(names), lambda index: columns[names[index]])


def spline_score(rows: PublicRows, terms: bool = False, leaves: bool = False) -> ScoredRows:
    """Return (n,) probabilities of treatment, whose logit is a linear spline with a knot at the mean of every number.

    First comes a logistic regression on the covariates, numbers being cut at three standard deviations; then
    one step of Newton's for the change of each number's slope above its mean, shrunk towards zero. With
    `terms` come those that treatment follows beyond the regression, with `leaves` the groups of rows that it
    follows beyond the score.
    """
    cut, knotted, deviations = _clipped_covariates(rows)
    treated = rows.treated
    count = rows.rows
    penalty = 1 / count
    objective = ColumnLogistic(cut, treated, penalty)
    start = single_precision_weights(ColumnLogistic(cut, treated, penalty, np.float32))
    linear_score = np.clip(
        objective.chances(approach(objective, start, _TOLERANCE).weights).astype(np.float64, copy=False),
        _LEAST,
        1 - _LEAST,
    )
    knots = np.empty((len(knotted) + 1, count), np.float32)
    for out, column, deviation in zip(knots, knotted, deviations, strict=False):
        np.multiply(np.maximum(cut[column], 0.0), 1.0 / deviation, out=out, casting="same_kind")
    knots[-1] = 1.0
    slope = column_products.totals(knots, 0, count, treated - linear_score)
    curvature = weighted_products(knots, linear_score * (1.0 - linear_score))
    curvature[np.diag_indices(len(knotted))] += _KNOT_PENALTY
    step = solve_positive(curvature, slope[:, None])[:, 0]
    score = np.asarray(expit(logit(linear_score) + column_products.scores(knots, 0, count, step)))
    followed = treatment_terms(cut, knotted, treated, linear_score) if terms else None
    groups = treatment_leaves(cut, treated, score) if leaves else None
    return ScoredRows(treated, score, followed, groups)


def _clipped_covariates(rows: PublicRows) -> tuple[FeatureRows, NDArray[np.intp], Floats]:
    """Return the covariates with numbers clipped, a row each, centred and with a largest deviation of one.

    Labels have one row each, constants are zero. Also which rows are numbers that vary, and their deviations.
    """
    domains = list(rows.study.covariates.values())
    raw = covariate_rows(rows)
    unlabelled = np.array(
        [j for j, domain in enumerate(domains) if not isinstance(domain, Categories)], np.intp
    )
    cuts = np.array([_CUT_SDS if isinstance(domains[j], Range) else np.inf for j in unlabelled])
    labels = [(j, len(d.labels)) for j, d in enumerate(domains) if isinstance(d, Categories)]
    cut = np.empty((len(unlabelled) + sum(count for _, count in labels), rows.rows), np.float32)
    deviations = clip_rows(raw, unlabelled, cuts, cut)
    next_row = len(unlabelled)
    for j, count in labels:
        codes = raw[j]
        share = np.bincount(codes.astype(np.intp), minlength=count) / rows.rows
        largest = np.where((share > 0.0) & (share < 1.0), np.maximum(share, 1.0 - share), np.inf)
        out = cut[next_row : next_row + count]
        write_levels(codes, np.arange(count), low=-share / largest, high=(1.0 - share) / largest, out=out)
        next_row += count
    knotted = np.flatnonzero(np.isfinite(cuts) & (deviations > 0.0))
    return cut, knotted, deviations[knotted]


def arm_terms(rows: PublicRows, inside: NDArray[np.bool_], scores: NDArray[np.floating]) -> TreatmentTerms:
    """Return the terms of the covariates (d, n) that being in an arm (n,) follows beyond its fitted scores (n,)."""
    cut, knotted, _ = _clipped_covariates(rows)
    return treatment_terms(cut, knotted, inside, np.clip(scores, _LEAST, 1 - _LEAST))
