"""Released weighted sum of outcomes with public coefficients, and an estimate of its variance.

    effect = unit sum_i c_i y_i,    variance = B^2 V(y / M),

with y_i in whole steps of {0, ..., M}, M = 2^24, `unit` the length of a step and B that of the range (or of
the window to which outcomes are clamped) in units of the outcome. The coefficients c come of public columns
alone; V is a form of `variance_forms.py`.

In: private outcomes of rows whose covariates and arms are public. Out: effect in units of the outcome and
variance (of sampling, without the noise) in squared ones, each with noise.

Why it is right: one outcome moves one term, so the effect moves by at most B max ``|c_i|``, and the variance
by the bound of its form. Coefficients are truncated first and bounds are those of the truncated ones.

Proof: `rows/linear/linear_estimate.proof.md`; with lines for the variance also
`rows/linear/residual_variance.proof.md`.
"""

# Proof: linear_estimate.proof.md

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.variance_forms import VarianceForm, WithBias
from counterveil.rows.linear.weighted_sum import LinearForm, linear_form
from counterveil.rows.outcome_window import WHOLE_RANGE, OutcomeWindow
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, Released

# Outcomes are whole numbers of 2**STEP_BITS.
STEP_BITS = OUTCOME_STEPS.bit_length() - 1
# What the effect and its variance are called in a plan.
NAMES = ("effect", "variance")


@dataclass(frozen=True, slots=True, eq=False)
class WeightedOutcomes:
    """The weighted sum of the outcomes of some rows.

    Attributes
    ----------
    rows : PublicRows
        Whose outcomes are summed, in the order of the coefficients.
    form : LinearForm
        The coefficients, exact.
    variance_form : VarianceForm
        The estimate of the sum's variance.
    """

    rows: PublicRows
    form: LinearForm
    variance_form: VarianceForm

    @classmethod
    def of(
        cls, rows: PublicRows, coefficients: NDArray[np.float64], variance_form: VarianceForm
    ) -> WeightedOutcomes:
        """Return the sum with these (n,) coefficients, truncated to whole steps of about nine digits."""
        return cls(rows, linear_form(coefficients), variance_form)

    @property
    def bounds(self) -> LinearEstimate:
        """How far one outcome moves the sum and its variance."""
        return linear_bounds(self.rows, self.form, self.variance_form)

    def within(self, window: OutcomeWindow) -> LinearEstimate:
        """Return the bounds for outcomes that are clamped to a window."""
        return replace(self.bounds, width=self.bounds.width * window.part)

    def release(
        self,
        gate: Gate,
        *,
        with_variance: bool,
        window: OutcomeWindow = WHOLE_RANGE,
        names: tuple[str, str] = NAMES,
    ) -> tuple[Released, Released | None]:
        """Return the released sum of clamped outcomes and, where the plan pays for it, its variance."""
        table = window.truncate(private_table(self.rows))
        bounds = self.within(window)
        effect = gate.release(names[0], self.form.total(table.outcome) * table.outcome_unit, bounds.estimate)
        if not with_variance:
            return effect, None
        variance = self.variance_form.value(table.outcome, STEP_BITS) * bounds.width**2
        return effect, gate.release(names[1], variance, bounds.variance)


def linear_bounds(rows: PublicRows, form: LinearForm, variance: VarianceForm) -> LinearEstimate:
    """Return how far one outcome of these rows moves a weighted sum and its variance."""
    return bounds_of_forms(rows.study.outcome_bounds.width, rows.rows, form, variance)


def bounds_of_forms(width: Fraction, rows: int, form: LinearForm, variance: VarianceForm) -> LinearEstimate:
    """Return the same for so many rows whose outcomes lie in a range of this width."""
    return LinearEstimate(
        width=width,
        largest=form.largest,
        squares=form.squares,
        largest_row=variance.largest_row(rows),
        factor=variance.factor if isinstance(variance, WithBias) else Fraction(1),
    )
