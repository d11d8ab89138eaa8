"""The propensity score that weights for balance treat as a feature: robust to outliers, with a linear spline.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from counterveil.data import Categories, Range, Table
from counterveil.numerics import columns as column_products
from counterveil.numerics.arrays import Floats
from counterveil.numerics.column_logistic import chances, weighted_products
from counterveil.numerics.columns import cut_lines, write_above, write_levels
from counterveil.statistics.linear.kernels.small_systems import solve_positive
from counterveil.statistics.linear.kernels.treatment_terms import TreatmentTerms, treatment_terms
from counterveil.statistics.linear.weighting_design import ScoredRows, covariate_lines

Singles = NDArray[np.float32]

# Standard deviations beyond which a number counts no further: a few far rows must not decide its slope.
_REACH = 3.0
# How strongly changes of slope are held to zero: as if they were drawn with a standard deviation of a tenth.
_HOLD = 100.0
# The gradient's tolerance: a step follows that changes more.
_TOLERANCE = 5e-5
# Scores nearer to 0 or 1 than this count as that near.
_LEAST = 1e-6


def spline_score(
    table: Table, penalty: float, lines: Floats | None = None, terms: bool = False
) -> ScoredRows:
    """Return (n,) probabilities of treatment, whose logit is a linear spline with a knot at the mean of every number.

    First comes a logistic regression on the covariates, numbers being cut at three standard deviations; then
    one step of Newton's for the change of each number's slope above its mean, held to zero. With `terms` come
    those that treatment follows beyond the regression.
    """
    lines = covariate_lines(table) if lines is None else lines
    cut, bending, deviations = _cut(table, lines)
    straight = np.clip(chances(cut, table.treated, penalty, _TOLERANCE), _LEAST, 1 - _LEAST)
    above = np.empty((len(bending) + 1, table.rows), np.float32)
    write_above(cut, bending, 1.0 / deviations, above[:-1])
    above[-1] = 1.0
    slope = column_products.totals(above, 0, table.rows, table.treated - straight)
    held = weighted_products(above, straight * (1.0 - straight))
    held[np.diag_indices(len(bending))] += _HOLD
    step = solve_positive(held, slope[:, None])[:, 0]
    score = np.asarray(expit(logit(straight) + column_products.scores(above, 0, table.rows, step)))
    followed = treatment_terms(cut, bending, table.treated, straight) if terms else None
    return ScoredRows(table.treated, score, followed)


def _cut(table: Table, lines: Floats) -> tuple[Singles, NDArray[np.intp], Floats]:
    """Return the covariates with numbers cut, a line each, centred and with a largest deviation of one.

    Labels have one line each, constants are zero. Also which lines are numbers that vary, and their deviations.
    """
    domains, raw = list(table.study.covariates.values()), lines
    plain = np.array([j for j, domain in enumerate(domains) if not isinstance(domain, Categories)], np.intp)
    reach = np.array([_REACH if isinstance(domains[j], Range) else np.inf for j in plain])
    labels = [(raw[j], len(d.labels)) for j, d in enumerate(domains) if isinstance(d, Categories)]
    cut = np.empty((len(plain) + sum(count for _, count in labels), table.rows), np.float32)
    deviations = cut_lines(raw, plain, reach, cut)
    place = len(plain)
    for codes, count in labels:
        share = np.bincount(codes.astype(np.intp), minlength=count) / table.rows
        largest = np.where((share > 0.0) & (share < 1.0), np.maximum(share, 1.0 - share), np.inf)
        own = cut[place : place + count]
        write_levels(codes, np.arange(count), -share / largest, (1.0 - share) / largest, own)
        place += count
    bending = np.flatnonzero(np.isfinite(reach) & (deviations > 0.0))
    return cut, bending, deviations[bending]


def arm_terms(
    table: Table, lines: Floats, inside: NDArray[np.bool_], scores: NDArray[np.floating]
) -> TreatmentTerms:
    """Return the terms of the covariates (d, n) that being in an arm (n,) follows beyond its fitted scores (n,)."""
    cut, bending, _ = _cut(table, lines)
    return treatment_terms(cut, bending, inside, np.clip(scores, _LEAST, 1 - _LEAST))
