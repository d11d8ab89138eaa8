"""Released comparisons of two arms in every period of a panel, and variances of changes since one period.

    b_p = W sum_i c_i y_ip,    variance of b_p - b_r from the changes y_ip - y_ir,

with measurements y_ip of person i in period p in parts of their range, W the width of that range in units of
the outcome, public coefficients c (1/n_1 and -1/n_0 for plain means), and r the reference period. Where the
study declares a range of changes, clamped changes are compared instead of measurements.

In: private measurements of people; arms and coefficients are public. Out: b_p in units of the outcome and
variances in squared ones, each with noise. The effect in period p is b_p - b_r, or b_p itself where
changes are compared.

Why it is right: one person moves every b_p by at most W max ``|c_i|``, and each release is paid for by its
own part of the privacy budget. Measurements are compared, not changes, since P of them that move by W each
leave a difference of two less noise than P - 1 changes that move by 2 W.

Proof: `rows/linear/event_study.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from counterveil.data import OUTCOME_STEPS, Backend
from counterveil.data.outcomes import Before
from counterveil.data.panels import changes, period_totals
from counterveil.numerics.arm_totals import TwoArms
from counterveil.rows.linear.sensitivity import LinearEstimate, MeanContrast
from counterveil.rows.linear.variance_forms import values_of
from counterveil.rows.linear.weighted_outcomes import STEP_BITS, WeightedOutcomes
from counterveil.rows.public import private_table
from counterveil.session import Gate, Released


@dataclass(frozen=True, slots=True)
class ReleasedPeriods:
    """What was released: the comparison of each period by its place, and the variance of its change."""

    values: dict[int, Released]
    variances: dict[int, Released]


@dataclass(frozen=True, slots=True)
class ExactPeriods:
    """Exact numbers by the place of the period: comparisons in steps, and the variances of changes' comparisons.

    There are no variances where none is released.
    """

    values: list[Fraction]
    variances: list[Fraction]


@dataclass(frozen=True, slots=True, eq=False)
class PeriodComparisons:
    """The comparisons of all periods.

    Attributes
    ----------
    comparison : WeightedOutcomes or MeanContrast
        The arms compared by weights, of rows whose outcome is a change, or by plain means, of the gate's
        rows; the width of the bounds is that of one change.
    before : Before
        What the study declares of its measurements.
    place : int
        Place of the reference period.
    with_variances : bool
        Whether the plan pays for variances.
    """

    comparison: WeightedOutcomes | MeanContrast
    before: Before
    place: int
    with_variances: bool

    @property
    def bounds(self) -> LinearEstimate | MeanContrast:
        """How far one outcome moves the comparison of one change, and its variance."""
        return self.comparison.bounds if isinstance(self.comparison, WeightedOutcomes) else self.comparison

    def release(self, gate: Gate) -> ReleasedPeriods:
        """Return the released comparisons and, where the plan pays for them, the variances of changes."""
        bounds = self.bounds
        # How far a number that moves by one moves the comparison.
        largest = bounds.estimate / bounds.width
        by_change = self.before.change is not None
        exact = self._exact(gate, by_change)
        width = bounds.width if by_change else self.before.levels[1] - self.before.levels[0]
        unit = width / OUTCOME_STEPS
        values = {}
        variances = {}
        for period, value in enumerate(exact.values):
            if not by_change or period != self.place:
                values[period] = gate.release(value_name(period), value * unit, largest * width)
        for period, variance in enumerate(exact.variances):
            if period != self.place:
                variances[period] = gate.release(variance_name(period), variance, bounds.variance)
        return ReleasedPeriods(values, variances)

    def _exact(self, gate: Gate, by_change: bool) -> ExactPeriods:
        """Return the comparison of every period's measurements, or changes, and variances of the changes."""
        if isinstance(self.comparison, WeightedOutcomes):
            return self._weighted(self.comparison, by_change)
        return self._plain(gate.rows.batches, self.comparison.width, by_change)

    def _weighted(self, comparison: WeightedOutcomes, by_change: bool) -> ExactPeriods:
        table = private_table(comparison.rows)
        since = [changes(table, period, self.place) for period in range(len(table.measures))]
        values = [comparison.form.total(numbers) for numbers in (since if by_change else table.measures)]
        if not self.with_variances:
            return ExactPeriods(values, [])
        variances = values_of(comparison.variance_form, since, STEP_BITS)
        return ExactPeriods(values, [variance * comparison.bounds.width**2 for variance in variances])

    def _plain(self, source: Backend, width: Fraction, by_change: bool) -> ExactPeriods:
        levels, since = period_totals(source, self.place)
        values = [arms.treated.mean() - arms.control.mean() for arms in (since if by_change else levels)]
        variances = [_mean_variance(arms, width) for arms in since] if self.with_variances else []
        return ExactPeriods(values, variances)


def value_name(period: int) -> str:
    """Return what the comparison of a period is called in the plan."""
    return f"period {period}"


def variance_name(period: int) -> str:
    """Return what the variance of the change of a period is called in the plan."""
    return f"variance {period}"


def _mean_variance(arms: TwoArms, width: Fraction) -> Fraction:
    variances = (arm.variance() / arm.count for arm in (arms.treated, arms.control))
    return sum(variances, Fraction(0)) * (width / OUTCOME_STEPS) ** 2
