"""Released means of the outcomes of public arms, each with its sampling variance; arms spend in parallel.

    plain:     T_a = S_a / n_a,               V_a = s_a^2 / n_a,
    weighted:  T_a = sum_{i in a} c_i y_i,    V_a from pairs or fitted lines among the rows of arm a,

with S_a, n_a and s_a^2 the sum of outcomes, number of rows and unbiased variance of arm a, and public
coefficients c.

In: private outcomes in whole steps of a range of width B; arms, and for weights covariates, are public. Out:
T_a less the lower end of the range, in units of the outcome, and V_a in squared ones, each with noise.

Why it is right: one outcome moves T_a by at most B / n_a (or B max ``|c_i|``) and V_a by at most (B / n_a)^2
(or the bound of its form). An arm's numbers read its own rows alone, so one outcome moves the numbers of one
arm and every arm can spend the whole privacy budget. The means behind an adjusted effect of two arms are
weighted ones: T_1 - T_0 is the effect, where coefficients of the controls change their sign.

Proof: `rows/linear/arm_mean.proof.md`; for the two means behind an adjusted effect
`rows/linear/arm_pair.proof.md`.
"""

# Proof: arm_mean.proof.md
# Proof: arm_pair.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.data.domains import outcome_unit
from counterveil.numerics.arm_totals import Arm
from counterveil.rows.linear.sensitivity import ArmMean, LinearEstimate
from counterveil.rows.linear.variance_forms import VarianceForm
from counterveil.rows.linear.weighted_outcomes import STEP_BITS, bounds_of_forms
from counterveil.rows.linear.weighted_sum import LinearForm
from counterveil.rows.outcome_numbers import Outcomes, totals_by_arm
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, Released

# The exact mean of an arm, above the lower end of the range, and its variance.
ExactMean = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class PlainArm:
    """The plain mean of an arm: its place among the arms, the reference being 0, and its bounds."""

    place: int
    sensitivity: ArmMean

    @property
    def size(self) -> int:
        """Number of the arm's rows."""
        return self.sensitivity.rows


@dataclass(frozen=True, slots=True)
class WeightedArm:
    """A weighted mean of an arm with public coefficients.

    Attributes
    ----------
    rows : ndarray of int
        Places (m,) of the rows that are summed.
    form : LinearForm
        Their coefficients, exact.
    variance : VarianceForm
        The variance of the mean; it numbers rows as `rows` does.
    sensitivity : LinearEstimate
        How far one outcome moves both.
    """

    rows: NDArray[np.intp]
    form: LinearForm
    variance: VarianceForm
    sensitivity: LinearEstimate

    @classmethod
    def of(
        cls, width: Fraction, rows: NDArray[np.intp], form: LinearForm, variance: VarianceForm
    ) -> WeightedArm:
        """Return the mean with the coefficients of a form, of outcomes in a range of this width, with its bounds."""
        return cls(rows, form, variance, bounds_of_forms(width, len(rows), form, variance))

    @property
    def size(self) -> int:
        """Number of the arm's rows."""
        return len(self.rows)

    def values(self, table: Table) -> ExactMean:
        """Return the exact weighted mean and its variance."""
        outcomes = table.outcome[self.rows]
        variance = self.variance.value(outcomes, STEP_BITS) * self.sensitivity.width**2
        return self.form.total(outcomes) * table.outcome_unit, variance


@dataclass(frozen=True, slots=True, eq=False)
class ArmMeans:
    """The means of some arms, all plain or all weighted.

    Attributes
    ----------
    arms : tuple of PlainArm, or of WeightedArm
        What is summed of each.
    rows : PublicRows, optional
        Whose outcomes are summed, in the order that coefficients have; plain means are those of the gate's
        rows.
    """

    arms: tuple[PlainArm | WeightedArm, ...]
    rows: PublicRows | None = None

    @property
    def bounds(self) -> list[ArmMean | LinearEstimate]:
        """How far one outcome moves the numbers of each arm."""
        return [arm.sensitivity for arm in self.arms]

    def release(
        self, gate: Gate, *, with_variance: Sequence[bool], means: Sequence[str], variances: Sequence[str]
    ) -> list[tuple[Released, Released | None]]:
        """Return the released mean of every arm and, where the plan pays for it, its variance.

        `means` and `variances` are the names of the releases in the plan.
        """
        return release_means(
            gate,
            self._exact(gate),
            bounds=self.bounds,
            with_variance=with_variance,
            means=means,
            variances=variances,
        )

    def _exact(self, gate: Gate) -> list[ExactMean]:
        if self.rows is not None:
            table = private_table(self.rows)
            return [arm.values(table) for arm in self.arms if isinstance(arm, WeightedArm)]
        source = gate.rows.batches
        study = source.study
        only = Outcomes((study.outcome,), (study.outcome_range,), (Fraction(1),))
        (totals,) = totals_by_arm(source, only)
        unit = outcome_unit(study.outcome_bounds)
        return [plain_mean(totals[arm.place], unit) for arm in self.arms if isinstance(arm, PlainArm)]


def release_means(
    gate: Gate,
    exact_means: Sequence[ExactMean],
    bounds: Sequence[ArmMean | LinearEstimate],
    with_variance: Sequence[bool],
    means: Sequence[str],
    variances: Sequence[str],
) -> list[tuple[Released, Released | None]]:
    """Return exact means, of each arm by place, as they are released under these names, with their variances."""
    pairs: list[tuple[Released, Released | None]] = []
    for arm, (mean, variance) in enumerate(exact_means):
        released = gate.release(means[arm], mean, bounds[arm].estimate)
        released_variance = None
        if with_variance[arm]:
            released_variance = gate.release(variances[arm], variance, bounds[arm].variance)
        pairs.append((released, released_variance))
    return pairs


def plain_mean(arm: Arm, unit: Fraction) -> ExactMean:
    """Return the mean of an arm, above the lower end of the range, and its variance; outcomes in steps of `unit`."""
    return arm.mean() * unit, arm.variance() / arm.count * unit**2
