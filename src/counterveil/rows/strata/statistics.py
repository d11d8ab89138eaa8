"""Exact sums over strata of private outcomes: stratified effects and their variances, before noise is added.

    effect_sum = sum h (mean_1 - mean_0),    bounded_variance = sum h^2 (v_1/t + v_0/c),

over strata with t treated and c control rows, n = t + c, mean_a and v_a the mean and unbiased variance of
outcomes in arm a; only strata with both arms count unless said otherwise. The weight h, in people, is that of
`numerics/strata.py`, at most n. An arm of one row has an unknown variance and stands with a quarter of the
squared range, the most that a variance can be.

In: counts, sums and sums of squares of outcomes by stratum and arm, in whole steps of {0, ..., 2^24}. Out:
the sums in steps and squared steps, as exact fractions; noise is added where they are released.

Why it is right: only correctly rounded operations are used on doubles and sums are exact before their one
rounding (`math.fsum`), so that every platform finds the same bits. With N rows and a limit w of weights, a
result is off by less than ROUNDING times

- N rows for `weight_sum`, N ranges for `effect_sum`, N squared ranges for `pooled_squares`,
- w^2 N squared ranges for `bounded_variance`, N^2 squared ranges for `order_free_variance`;

counts and `single_effect_sum` are exact. Why, with u = 2**-53: a weight h has two roundings and is at most
n; a mean has two and a difference of means is at most one range, so effects are off by 10 u N. A cell's
squares around its mean are off by 6 u m squared ranges and m/(m-1) is at most 2, so Q is off by 13 u N. A
squared weight has 7 roundings, so a cell's part of a variance is off by 16 u m (h/m)^2; the m add up to N,
the h^2 (1/t + 1/c) to at most 2 N^2.

How far a row moves these sums: `rows/strata/bounded_strata.proof.md` (whole records private) and
`rows/strata/strata_outcome.proof.md` (outcomes alone).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from counterveil.errors import refusal
from counterveil.numerics.arrays import Floats, Integers
from counterveil.numerics.strata import RANGE_STEPS, Strata, exact_sum, is_matched, stratum_weights

# What floating point may add to a statistic, in units that the module's description names.
ROUNDING = Fraction(1, 2**48)
# The largest variance of a number in [0, 1]: what stands for an arm's variance where it has one row.
_UNKNOWN_VARIANCE = RANGE_STEPS**2 / 4


def effect_sum(strata: Strata, estimand: str, limit: Fraction | None = None) -> Fraction:
    """Return the sum of h (mean of treated - mean of controls), in steps."""
    treated = strata.treated_sum / np.maximum(strata.treated, 1)
    control = strata.control_sum / np.maximum(strata.control, 1)
    return exact_sum(stratum_weights(strata, estimand, limit) * (treated - control))


def mean_sums(strata: Strata, estimand: str, limit: Fraction | None = None) -> tuple[Fraction, Fraction]:
    """Return the sums of h times the mean of treated and of controls, in steps."""
    weights = stratum_weights(strata, estimand, limit)
    return (
        exact_sum(weights * (strata.treated_sum / np.maximum(strata.treated, 1))),
        exact_sum(weights * (strata.control_sum / np.maximum(strata.control, 1))),
    )


def single_effect_sum(strata: Strata) -> int:
    """Return sum of (1 + L) y over treated less the same over controls, L being matches of a row; in steps.

    In a stratum every row of the smaller arm is matched about equally often: of t rows that share c matches,
    the first c mod t in the public order have one more than the others. Needs the strata's prefixes.
    """
    if strata.treated_prefix is None or strata.control_prefix is None:
        raise refusal("CV-P331")
    both = is_matched(strata)
    treated = strata.treated[both]
    control = strata.control[both]
    plus = (1 + control // treated) * strata.treated_sum[both] + strata.treated_prefix[both]
    minus = (1 + treated // control) * strata.control_sum[both] + strata.control_prefix[both]
    return int((plus - minus).sum())


def order_free_variance(strata: Strata, estimand: str) -> Fraction:
    """Return G, the sum of h^2 (v_1/t + v_0/c), v an arm's unbiased variance; in squared steps.

    An arm of one row stands with a quarter of the squared range, the most that a variance can be.
    """
    return bounded_variance(strata, estimand, None)


def bounded_variance(strata: Strata, estimand: str, limit: Fraction | None) -> Fraction:
    """Return the same sum with limited weights, in squared steps."""
    return exact_sum(np.concatenate(_variance_parts(strata, estimand, limit)))


def arm_variances(strata: Strata, estimand: str, limit: Fraction | None) -> tuple[Fraction, Fraction]:
    """Return the parts of that sum that are due to treated and to control cells, in squared steps."""
    treated, control = _variance_parts(strata, estimand, limit)
    return exact_sum(treated), exact_sum(control)


def _variance_parts(strata: Strata, estimand: str, limit: Fraction | None) -> list[Floats]:
    weights = stratum_weights(strata, estimand, limit)
    return [
        np.square(weights / np.maximum(count, 1)) * squares
        for count, squares in zip((strata.treated, strata.control), _cell_squares(strata), strict=True)
    ]


def pooled_squares(strata: Strata) -> Fraction:
    """Return Q, the sum of m/(m-1) times the squares around the mean over all cells, in squared steps.

    A cell is one arm of one stratum, m its rows; a cell of one row adds a quarter of the squared range.
    The largest squared weight of a person times Q is an upper bound of G.
    """
    return exact_sum(np.concatenate(_cell_squares(strata)))


def _cell_squares(strata: Strata) -> tuple[Floats, Floats]:
    """Return m/(m-1) times the squares around the mean, for treated and for control cells."""
    return (
        _squares(strata.treated, strata.treated_sum, strata.treated_square),
        _squares(strata.control, strata.control_sum, strata.control_square),
    )


def _squares(count: Integers, total: Integers, square: Floats) -> Floats:
    sums = total.astype(np.float64)
    squares_around_mean = np.maximum(square - sums * sums / np.maximum(count, 1), 0.0)
    corrected = squares_around_mean * count / np.maximum(count - 1, 1)
    return np.where(count > 1, corrected, np.where(count == 1, _UNKNOWN_VARIANCE, 0.0))
