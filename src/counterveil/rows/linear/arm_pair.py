"""What the public coefficients of an effect make of one arm: its weighted mean and its part of the variance.

    T_1 = sum over the treated of c_i y_i,    T_0 = sum over the others of -c_i y_i,

so that T_1 - T_0 is the effect. Pairs join rows of one arm and groups of lines hold rows of one arm, so that
the variance of the effect is the sum of V_1 and V_0, and one outcome moves the numbers of its own arm alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.rows.linear.arm_mean import WeightedArm
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.variance_forms import VarianceForm, WithBias
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import PublicRows

Rows = NDArray[np.intp]


def arm_part(
    rows: PublicRows,
    coefficients: NDArray[np.float64],
    variance: ResidualVariance | tuple[Rows, Rows],
    *,
    inside: NDArray[np.bool_],
    sign: float,
    factor: Fraction,
) -> WeightedArm:
    """Return the weighted mean of the rows `inside`, which are those of one arm.

    Parameters
    ----------
    rows : PublicRows
        All rows, in the order of the coefficients.
    coefficients : ndarray of shape (n,)
        Those of the effect.
    variance : ResidualVariance, or tuple of two ndarray
        How the variance of the effect is estimated: from lines, or from pairs (first, second) of rows.
    inside : ndarray of bool
        Which rows are in the arm.
    sign : float
        1 for the treated, -1 for the others, whose coefficients are negative.
    factor : Fraction
        By how much the variance is raised to allow for bias.
    """
    own_coefficients = np.where(inside, sign * coefficients, 0.0)
    form = linear_form(own_coefficients)
    own_variance: VarianceForm
    if isinstance(variance, ResidualVariance):
        # The rows of a group are all of one arm.
        own_variance = variance.among(inside)
    else:
        first, second = variance
        chosen = inside[first]
        own_variance = paired_variance(own_coefficients, first[chosen], second[chosen])
    raised = WithBias(own_variance, factor)
    bounds = LinearEstimate(
        width=rows.study.outcome_bounds.width,
        largest=form.largest,
        squares=form.squares,
        largest_row=raised.largest_row(rows.rows),
        factor=factor,
    )
    return WeightedArm(np.arange(rows.rows), form, raised, bounds)
