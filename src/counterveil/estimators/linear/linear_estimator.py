"""A linear estimator of private outcomes (coefficients, variance form), and a released number's error.

    effect = sum_i c_i y_i,    variance = V(y) (1 + bias^2),

with public coefficients c; V comes from pairs of rows or from lines through outcomes
(`rows/linear/variance_forms.py`) and `bias` is what an interval allows for, in standard errors. Effects are
in units of the outcome, variances in their square. One outcome in a range of width B moves the effect by at
most B max |c_i|; proof: `rows/linear/linear_estimate.proof.md`, with `rows/linear/residual_variance.proof.md`
for V from lines.

`LinearEffect` holds public numbers alone. `known_error` takes released numbers (post-processing, on which
privacy does not depend): a released effect has the error N(0, variance) plus its noise, whose distribution is
known. Where the variance was not paid for, the largest that outcomes in their range can have (`variance_cap`)
stands in, so that the interval is longer but holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.linear.budget_split import Bounds
from counterveil.inference.uncertainty import Uncertainty
from counterveil.privacy import exact
from counterveil.privacy.caveats import Fact
from counterveil.privacy.provenance import (
    AnyEstimator,
    AnyPremise,
    AnyQuantity,
    Quantity,
    ReleaseRow,
    Sensitivity,
)
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.residual_variance import ResidualVariance
from counterveil.rows.linear.variance_forms import VarianceForm, WithBias
from counterveil.rows.public import PublicRows
from counterveil.session import Released

# The page that proves the bounds of a weighted sum and of its variance from pairs.
EFFECT_PAGE = "rows/linear/linear_estimate.proof.md"


@dataclass(frozen=True, slots=True)
class LinearEffect:
    """A weighted sum of outcomes by public coefficients: how its variance is estimated, and what to say about it.

    Attributes
    ----------
    method : str
        Name of the method, for the answer.
    coefficients : ndarray of shape (n,)
        c_i of every row.
    pairs : tuple of two ndarray, or None
        Rows (first, second) of the pairs whose differences estimate the variance; None with a `variance`.
    not_covered : tuple of Fact
        What the interval does not cover.
    details, diagnostics : dict
        Single figures and tables of the answer, all public.
    variance : ResidualVariance, optional
        The estimate of the variance from lines through outcomes.
    pages : tuple of str
        Proof pages of the bounds.
    rows : PublicRows, optional
        The rows in the order of the coefficients, where they were reordered or their outcomes moved by a
        public rule; None for the rows of the session as they are.
    remarks : tuple of Premise or PublicPrediction
        What the guarantee rests on beside its pages.
    share : Fraction, optional
        Share of the budget for the variance. None chooses the least whose interval is expected to exceed the
        shortest by no more than the factor `budget_split.SLACK`, squared lengths.
    expected_part : float
        Part of the outcomes' variance that is expected to be left in the estimate.
    bias : float
        What the interval allows for bias, in standard errors.
    assumptions : Fact, optional
        What the interval rests on beyond the study's design.
    """

    method: AnyEstimator
    coefficients: NDArray[np.float64]
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    not_covered: tuple[Fact, ...]
    details: dict[str, float | str] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    variance: ResidualVariance | None = None
    pages: tuple[str, ...] = (EFFECT_PAGE,)
    rows: PublicRows | None = None
    remarks: tuple[AnyPremise, ...] = ()
    share: Fraction | None = None
    expected_part: float = 1.0
    bias: float = 0.0
    assumptions: Fact | None = None

    @property
    def factor(self) -> Fraction:
        """Variance and squared bias together, beside the variance alone."""
        return 1 + exact(self.bias, "bias") ** 2

    def variance_form(self) -> VarianceForm:
        """Return the form that estimates the variance, with what is allowed for bias."""
        form: VarianceForm
        if self.variance is not None:
            form = self.variance
        else:
            assert self.pairs is not None  # an estimator gives one or the other
            form = paired_variance(self.coefficients, *self.pairs)
        return WithBias(form, self.factor) if self.bias else form

    def with_bias(self, sampling_sd: float) -> dict[str, float]:
        """Return what to say of the bias that is allowed for, which the standard error from sampling holds."""
        return {"bias_allowance": sampling_sd * sqrt(1 - 1 / self.factor)} if self.bias else {}


def known_error(value: Released, variance: Released | None, cap: Fraction, extra: float = 0.0) -> Uncertainty:
    """Return the error of a released number; without a released variance the largest one stands in."""
    if variance is None:
        return Uncertainty(
            noise=value.noise, variance=float(cap), variance_cap=float(cap), variance_noise=None, extra=extra
        )
    return Uncertainty(
        noise=value.noise,
        variance=float(variance),
        variance_cap=float(cap),
        variance_noise=variance.noise,
        extra=extra,
    )


def release_rows(
    bounds: Bounds,
    with_variance: bool,
    quantities: tuple[AnyQuantity, AnyQuantity] = (Quantity.EFFECT, Quantity.ITS_VARIANCE),
) -> tuple[ReleaseRow, ...]:
    """Return what a number and, where it is paid for, its variance were released with."""
    bounds_by_quantity = zip(quantities, (bounds.estimate, bounds.variance), strict=True)
    rows = tuple((quantity, Sensitivity(float(bound))) for quantity, bound in bounds_by_quantity)
    return rows if with_variance else rows[:1]
