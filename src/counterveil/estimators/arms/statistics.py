"""The mean of one arm as a function of that arm's outcomes alone, with its variance and its sensitivities.

An arm's statistic reads the outcomes of the arm's own rows, so that one outcome moves one arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.kernels.arms import arm_totals
from counterveil.kernels.linear_form import LinearForm, PairedVariance, linear_form, paired_variance
from counterveil.sensitivity import ArmMean, LinearEstimate

_STEP_BITS = OUTCOME_STEPS.bit_length() - 1


class ArmStatistic(Protocol):
    """A mean of one arm, of known sensitivity."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The arm's rows."""
        ...

    @property
    def sensitivity(self) -> ArmMean | LinearEstimate:
        """How far one of the arm's outcomes moves the mean and its variance."""
        ...

    def values(self, table: Table) -> tuple[Fraction, Fraction]:
        """Return the exact mean, above the outcome's lower bound, and its sampling variance."""
        ...


@dataclass(frozen=True, slots=True)
class PlainArm:
    """The plain mean of an arm."""

    rows: NDArray[np.intp]
    sensitivity: ArmMean

    @classmethod
    def of(cls, table: Table, code: int) -> PlainArm:
        """Return the statistic of the arm numbered `code`."""
        rows = np.flatnonzero(table.arm == code)
        return cls(rows, ArmMean(table.study.outcome_bounds.width, len(rows)))

    def values(self, table: Table) -> tuple[Fraction, Fraction]:
        """Return the mean and s^2/n."""
        own = table.outcome[self.rows]
        totals = arm_totals(np.ones(len(own), dtype=np.bool_), own).treated
        unit = table.outcome_unit
        return totals.mean() * unit, totals.variance() / totals.count * unit**2


@dataclass(frozen=True, slots=True)
class WeightedArm:
    """A weighted mean of an arm with public coefficients; pairs are places among the arm's rows."""

    rows: NDArray[np.intp]
    form: LinearForm
    paired: PairedVariance
    sensitivity: LinearEstimate

    @classmethod
    def of(
        cls,
        table: Table,
        rows: NDArray[np.intp],
        coefficients: NDArray[np.float64],
        pairs: tuple[NDArray[np.intp], NDArray[np.intp]],
    ) -> WeightedArm:
        """Return the statistic with the given coefficients (m,) of the arm's rows (m,)."""
        form, paired = linear_form(coefficients), paired_variance(coefficients, *pairs)
        width = table.study.outcome_bounds.width
        bounds = LinearEstimate(width, form.largest, form.squares, paired.largest_row(len(rows)))
        return cls(rows, form, paired, bounds)

    def values(self, table: Table) -> tuple[Fraction, Fraction]:
        """Return the weighted mean and its paired variance."""
        own = table.outcome[self.rows]
        variance = self.paired.value(own, _STEP_BITS) * self.sensitivity.width**2
        return self.form.total(own) * table.outcome_unit, variance
