"""The estimates of the variance of a weighted sum of outcomes: from pairs of rows, from lines, and with bias.

    V = PairedVariance or ResidualVariance (y),    WithBias: V = factor * V of another form,

for outcomes y in whole steps, in units of the range squared. `factor` is public and at least 1: the part
above 1 is the square of the bias that an interval allows for, in squared standard errors.

In: private outcomes. Out: V, exact and without noise, which is added where it is released; and `largest_row`,
twice the most that one outcome can move V, in the same units.

Why it is right: a constant factor raises value and bound alike, so the bound of `WithBias` is right wherever
that of the form within is. Proof: for `paired_variance.py` `rows/linear/linear_estimate.proof.md`, for
`residual_variance.py` `rows/linear/residual_variance.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.rows.linear.paired_variance import PairedVariance
from counterveil.rows.linear.residual_variance import ResidualVariance


@dataclass(frozen=True, slots=True)
class WithBias:
    """A variance with an allowance for bias: `factor` times the variance of another form.

    The part above one is the square of the bias that is allowed for. Bound and value grow by the same factor.
    """

    form: VarianceForm
    factor: Fraction

    def largest_row(self, rows: int) -> Fraction:
        """Return twice the largest move, in units of the range squared."""
        return self.factor * self.form.largest_row(rows)

    def value(self, outcome: NDArray[np.int64], steps_bits: int) -> Fraction:
        """Return the estimate for outcomes in steps, in units of the range squared."""
        return self.factor * self.form.value(outcome, steps_bits)


def values_of(form: VarianceForm, outcomes: Sequence[NDArray[np.int64]], steps_bits: int) -> list[Fraction]:
    """Return the estimate for each of some outcomes; rows are read for all at once where lines are fitted."""
    if isinstance(form, WithBias):
        return [form.factor * value for value in values_of(form.form, outcomes, steps_bits)]
    if isinstance(form, ResidualVariance):
        return form.values(outcomes, steps_bits)
    return [form.value(outcome, steps_bits) for outcome in outcomes]


# An exact estimate of the variance of a linear form, and how far one outcome can move it.
VarianceForm: TypeAlias = PairedVariance | ResidualVariance | WithBias
