"""Released comparisons of several outcomes at once: one row may change all its outcomes, each in its range.

For every outcome j and every group of releases (the comparison of both arms, or the mean of one arm)

    value_j = B_j sum_i c_i y_ij,    variance_j = B_j^2 V(y_j),

with outcomes y_ij in parts of their range, B_j its width in units of outcome j, public coefficients c that
are the same for all outcomes (1/n_1 and -1/n_0 for plain means), and V an estimate of the variance.

In: private outcomes; arms and coefficients are public. Out: values in units of each outcome and variances in
squared ones, with noise. Outcomes may have public weights: those of larger weight get less noise.

Why it is right: each value_j reads the j-th outcomes alone, so that one row moves it by at most B_j max
``|c_i|``, and all values of a group at once; they are released together with noise for such a joint change.
Means of different arms read different rows and are released in parallel (`session/parallel.proof.md`).

Proof: `rows/linear/several_outcomes.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.arm_totals import Arm
from counterveil.rows.linear.arm_mean import WeightedArm
from counterveil.rows.linear.variance_forms import values_of
from counterveil.rows.linear.weighted_outcomes import STEP_BITS, WeightedOutcomes
from counterveil.rows.outcome_numbers import Outcomes, totals_by_arm
from counterveil.rows.public import PublicRows, private_table
from counterveil.session import Gate, Released

# The exact value of a comparison and its variance, in units of the range of what is compared.
ExactPair = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Group:
    """A comparison of both arms, or the mean of one: what a change of an outcome by its range does to both numbers.

    Attributes
    ----------
    name : str
        What is compared, for the names of the releases.
    largest, variance : Fraction
        How far one outcome moves the value and the variance, for outcomes of range one.
    cap : Fraction
        The largest variance, for outcomes of range one.
    statistic : WeightedOutcomes or WeightedArm, optional
        What is summed; None for plain means.
    arms : tuple of int
        For plain means: the place of the arm whose mean it is and, for a difference, of the arm whose mean is
        taken off.
    sizes : tuple of float
        Effective sample sizes of the arms that are in it.
    """

    name: str
    largest: Fraction
    variance: Fraction
    cap: Fraction
    statistic: WeightedOutcomes | WeightedArm | None = None
    arms: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()

    def of_totals(self, totals: Sequence[Arm]) -> ExactPair:
        """Return value and variance from all arms' totals in steps, in units of the range."""
        means = [totals[arm].mean() for arm in self.arms]
        variances = [totals[arm].variance() / totals[arm].count for arm in self.arms]
        value = means[0] - sum(means[1:], Fraction(0))
        return value / OUTCOME_STEPS, sum(variances, Fraction(0)) / OUTCOME_STEPS**2

    def exact(self, table: Table, outcomes: Sequence[NDArray[np.int64]]) -> list[ExactPair]:
        """Return value and variance of each of some outcomes in steps, in units of its range."""
        statistic = self.statistic
        assert statistic is not None  # plain means are added up in passes
        if isinstance(statistic, WeightedOutcomes):
            values = [statistic.form.total(numbers) / OUTCOME_STEPS for numbers in outcomes]
            return list(zip(values, values_of(statistic.variance_form, outcomes, STEP_BITS), strict=True))
        width = statistic.sensitivity.width
        exact = (statistic.values(replace(table, outcome=numbers)) for numbers in outcomes)
        return [(value / width, variance / width**2) for value, variance in exact]


@dataclass(frozen=True, slots=True, eq=False)
class SeveralComparisons:
    """The comparisons of several outcomes, by group of releases.

    Attributes
    ----------
    groups : tuple of Group
        What is compared; groups of single arms are released in parallel.
    outcomes : Outcomes
        The outcomes, with the slopes of what was measured before where these were released.
    rows : PublicRows, optional
        Whose outcomes are summed with weights, in the order of these; None where all groups are plain means.
    """

    groups: tuple[Group, ...]
    outcomes: Outcomes
    rows: PublicRows | None = None

    def release(self, gate: Gate, *, with_variances: bool) -> list[list[tuple[Released, Released | None]]]:
        """Return for every group the released value of each outcome and, where it is paid for, its variance."""
        released = []
        widths = self.outcomes.widths
        weights = self.outcomes.weights
        for group, exact in zip(self.groups, self.exact(gate), strict=True):
            values = [value * width for (value, _), width in zip(exact, widths, strict=True)]
            bounds = [group.largest * width for width in widths]
            noisy = gate.release_several(f"values of {group.name}", values, bounds, weights)
            noisy_variances: Sequence[Released | None] = [None] * len(values)
            if with_variances:
                variances = [variance * width**2 for (_, variance), width in zip(exact, widths, strict=True)]
                limits = [group.variance * width**2 for width in widths]
                noisy_variances = gate.release_several(
                    f"variances of {group.name}", variances, limits, weights
                )
            released.append(list(zip(noisy, noisy_variances, strict=True)))
        return released

    def exact(self, gate: Gate) -> list[list[ExactPair]]:
        """Return for every group the value and the variance of each outcome, in units of its range."""
        if self.rows is None:
            totals = totals_by_arm(gate.rows.batches, self.outcomes)
            return [[group.of_totals(of_outcome) for of_outcome in totals] for group in self.groups]
        table = private_table(self.rows)
        return [group.exact(table, self.outcomes.numbers(table)) for group in self.groups]
