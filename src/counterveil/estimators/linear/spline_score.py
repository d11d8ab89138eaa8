"""The propensity score that weights for balance treat as a feature: a logistic regression on linear splines.

    logit P(T = 1) = b_0 + sum_j b_j x_j + sum_j d_j max(x_j - mean_j, 0),

first b by penalised likelihood, numbers being cut at three standard deviations, then d by one step of
Newton's, shrunk towards zero. Scores are probabilities, one for every row. Where only outcomes are private
all of this is public and free, whatever it reads of covariates and treatments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.data import Categories, Range
from counterveil.estimators.linear.kernels.treatment_leaves import treatment_leaves
from counterveil.estimators.linear.kernels.treatment_terms import TreatmentTerms, treatment_terms
from counterveil.numerics import columns as column_products
from counterveil.numerics.arm_rows import solve_positive
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Kind
from counterveil.numerics.propensity import approach, warm_start
from counterveil.numerics.standard_columns import ComputedRows, clip_rows, write_levels
from counterveil.rows.public import PublicRows

FeatureRows = NDArray[np.float32]


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
    return ComputedRows(len(names), lambda index: rows.covariates[names[index]])


class ColumnLogistic:
    """The objective for columns (d, n) and the arms (n,), with values in [-1, 1]; gradients are found in `kind`."""

    def __init__(
        self, columns: FeatureRows, treated: NDArray[np.bool_], penalty: float, kind: Kind = np.float64
    ) -> None:
        self.columns = columns
        self.treated = treated
        self.penalty = penalty
        self.kind = kind
        # The weights of the last gradient, and the probabilities there.
        self.last: tuple[Floats, NDArray[np.floating]] | None = None

    def chances(self, weights: Floats) -> NDArray[np.floating]:
        """Return the (n,) probabilities of treatment."""
        if self.last is None or not np.array_equal(self.last[0], weights):
            self.gradient(weights)
        assert self.last is not None  # the gradient leaves it
        return self.last[1]

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient (d+1,)."""
        rows = len(self.treated)
        total = np.zeros(len(weights))
        rounded: NDArray[np.floating] = weights.astype(self.kind)
        chance: NDArray[np.floating] = np.empty(rows, self.kind)
        for span, block in column_products.blocks(self.columns, 0, rows, self.kind):
            expit(rounded[:-1] @ block + rounded[-1], out=chance[span])
            residual = chance[span] - self.treated[span]
            total[:-1] += block @ residual
            total[-1] += residual.sum()
        self.last = (weights, chance)
        return total / rows + self.penalty * weights

    def hessian(self, weights: Floats) -> Floats:
        """Return the Hessian (d+1, d+1)."""
        chance = self.chances(weights)
        width = len(self.columns)
        curvature = chance * (1.0 - chance)
        hessian = np.empty((width + 1, width + 1))
        if weights[:-1].any():
            hessian[:-1, :-1] = weighted_products(self.columns, curvature, np.float32)
        else:
            products = column_products.products(self.columns, 0, len(chance), np.float32)
            hessian[:-1, :-1] = float(curvature[0]) * products
        hessian[-1, :-1] = hessian[:-1, -1] = column_products.totals(self.columns, 0, len(chance), curvature)
        hessian[-1, -1] = curvature.sum()
        hessian /= len(chance)
        hessian[np.diag_indices(width + 1)] += self.penalty
        return hessian

    def rough(self) -> ColumnLogistic:
        """Return the objective itself: `chances` goes most of the way in single precision."""
        return self

    def sample(self) -> ColumnLogistic:
        """Return the objective itself: a third of the rows costs as much in further steps."""
        return self

    def thinned(self, stride: int) -> ColumnLogistic:
        """Return the objective of every stride-th row."""
        columns = np.ascontiguousarray(self.columns[:, ::stride])
        treated = self.treated[::stride].copy()
        return ColumnLogistic(columns, treated, self.penalty, self.kind)


def _single_precision_weights(objective: ColumnLogistic) -> Floats:
    """Return the weights as far as single precision shows them."""
    # Without slopes the best constant is about the logit of the share treated.
    rows = len(objective.treated)
    treated = np.count_nonzero(objective.treated)
    constant_only = np.append(np.zeros(len(objective.columns)), logit((treated + 0.5) / (rows + 1)))
    start = warm_start(
        rows, lambda stride: _single_precision_weights(objective.thinned(stride)), constant_only
    )
    return approach(objective, start, _ROUGH).weights


def weighted_products(columns: FeatureRows, weights: NDArray[np.floating], kind: Kind = np.float64) -> Floats:
    """Return the sum over rows of their weight (n,) times their products with themselves, (d, d)."""
    total = np.zeros((len(columns), len(columns)))
    roots = np.sqrt(weights).astype(kind, copy=False)
    for rows, block in column_products.blocks(columns, 0, len(weights), columns.dtype):
        scaled = block * roots[rows]
        total += scaled @ scaled.T
    return total


# Standard deviations beyond which a number counts no further: a few far rows must not decide its slope.
_CUT_SDS = 3.0
# How strongly changes of slope are shrunk towards zero: as if they were drawn with a standard deviation of a tenth.
_KNOT_PENALTY = 100.0
# The gradient's tolerance: weights then agree to 1e-8 of the largest, however sums are rounded. And how far single
# precision goes.
_TOLERANCE = 1e-12
_ROUGH = 5e-5
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-6


def spline_score(rows: PublicRows, terms: bool = False, leaves: bool = False) -> ScoredRows:
    """Return (n,) probabilities of treatment, whose logit is a linear spline with a knot at the mean of every number.

    First comes a logistic regression on the covariates, numbers being cut at three standard deviations; then
    one step of Newton's for the change of each number's slope above its mean, shrunk towards zero. With
    `terms` come those that treatment follows beyond the regression, with `leaves` the groups of rows that it
    follows beyond the score.
    """
    cut, knotted, deviations = _clipped_covariates(rows)
    penalty = 1 / rows.rows
    objective = ColumnLogistic(cut, rows.treated, penalty)
    start = _single_precision_weights(ColumnLogistic(cut, rows.treated, penalty, np.float32))
    linear_score = np.clip(
        objective.chances(approach(objective, start, _TOLERANCE).weights).astype(np.float64, copy=False),
        _LEAST,
        1 - _LEAST,
    )
    knots = np.empty((len(knotted) + 1, rows.rows), np.float32)
    for out, column, deviation in zip(knots, knotted, deviations, strict=False):
        np.multiply(np.maximum(cut[column], 0.0), 1.0 / deviation, out=out, casting="same_kind")
    knots[-1] = 1.0
    slope = column_products.totals(knots, 0, rows.rows, rows.treated - linear_score)
    curvature = weighted_products(knots, linear_score * (1.0 - linear_score))
    curvature[np.diag_indices(len(knotted))] += _KNOT_PENALTY
    step = solve_positive(curvature, slope[:, None])[:, 0]
    score = np.asarray(expit(logit(linear_score) + column_products.scores(knots, 0, rows.rows, step)))
    followed = treatment_terms(cut, knotted, rows.treated, linear_score) if terms else None
    groups = treatment_leaves(cut, rows.treated, score) if leaves else None
    return ScoredRows(rows.treated, score, followed, groups)


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
