"""Outcomes as whole steps of their ranges, less a multiple of their baseline value, and totals by arm.

Let x be what was measured before an outcome y, both in steps of {0, ..., M} with M = 2^24, and s a released
slope in sixteenths, from 0 to 16. In place of y stands

    z = floor((16 y + s (M - x)) / (16 + s)),

again a step of {0, ..., M}. It stands for y - (s / 16) x, up to a constant, in steps of a range that is
1 + s / 16 times as wide. Without a slope z = y. Out come, for every outcome and arm, the exact number of
rows, the sum and the sum of squares of z in steps. They are private: noise is added by whoever uses them.

Why it is right: z is a function of one row's numbers and of slopes that were released before. So a changed
row changes one z in {0, ..., M}, and every bound for an outcome of a range holds for z with the wider range
(`Outcomes.widths`, in units of the outcome). In a trial x does not depend on treatment, so y - (s / 16) x
has the same effect as y.

Proof: `rows/earlier_values.proof.md`. `SLOPE_PARTS`, the sixteenths, is a choice of which privacy does not
depend: the argument holds for any slope that is released before.
"""

# Proof: earlier_values.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Sums, Table
from counterveil.data.table import arm_sizes
from counterveil.numerics.arm_totals import Arm, cell_totals

# Slopes are whole numbers of these parts.
SLOPE_PARTS = 16


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a study.

    Attributes
    ----------
    names : tuple of str
        Their columns, the primary one first.
    ranges : tuple of (low, high)
        Declared ranges.
    weights : tuple of Fraction
        One over the noise of an outcome is in proportion to its weight.
    earlier : tuple of int or None
        Places among a table's measures of what was measured before each, None where nothing was.
    slopes : tuple of int
        How many sixteenths of it are taken off each outcome, released by then; empty before.
    """

    names: tuple[str, ...]
    ranges: tuple[tuple[Fraction, Fraction], ...]
    weights: tuple[Fraction, ...]
    earlier: tuple[int | None, ...] = ()
    slopes: tuple[int, ...] = ()

    @property
    def measured_before(self) -> list[tuple[int, int]]:
        """The places of outcomes that were measured before, each with the place of that number."""
        return [(index, column) for index, column in enumerate(self.earlier) if column is not None]

    @property
    def widths(self) -> list[Fraction]:
        """The widths of the ranges of what is compared: outcomes, less what is taken off them."""
        slopes = self.slopes or (0,) * len(self.names)
        return [
            (high - low) * (1 + Fraction(slope, SLOPE_PARTS))
            for (low, high), slope in zip(self.ranges, slopes, strict=True)
        ]

    def numbers(self, table: Table) -> list[NDArray[np.int64]]:
        """Return what is compared, in steps of its range: outcomes, less slopes times what was measured before."""
        numbers = [table.outcome, *table.measures[: len(self.names) - 1]]
        for index, column in self.measured_before if self.slopes else []:
            slope = self.slopes[index]
            above = slope * (OUTCOME_STEPS - table.measures[column])
            numbers[index] = (SLOPE_PARTS * numbers[index] + above) // (SLOPE_PARTS + slope)
        return numbers

    @property
    def _even(self) -> bool:
        return len(set(self.weights)) == 1

    def drawn(self, mechanism: str) -> str:
        """Return the noise that is drawn for a question's mechanism."""
        if mechanism == "gaussian":
            return "gaussian"
        return "box" if self._even else "staircase"

    def mechanisms(self, mechanism: str) -> tuple[str, ...]:
        """Return all noise that is drawn; moments with earlier numbers have equal weights, whatever outcomes have."""
        of_outcomes = self.drawn(mechanism)
        return (of_outcomes, "box") if self.slopes and of_outcomes == "staircase" else (of_outcomes,)

    def noise_factor(self, mechanism: str) -> float:
        """Return about how much more noise the first outcome has than it would have alone."""
        sizes = [float(weight / self.weights[0]) for weight in self.weights]
        if mechanism == "gaussian":
            return sqrt(sum(size**2 for size in sizes))
        count = len(sizes)
        return sqrt((count + 1) * (count + 2) / 6) if self._even else sum(sizes)


def outcome_of(table: Table, number: int) -> NDArray[np.int64]:
    """Return one of a table's outcomes in whole steps, the primary one being number 0."""
    return table.outcome if number == 0 else table.measures[number - 1]


def totals_by_arm(source: Backend, outcomes: Outcomes) -> list[list[Arm]]:
    """Return for every outcome the exact totals of every arm, the reference or control first."""
    arms = len(source.study.treatment_labels)
    (sums,) = source.run(partial(outcome_sums, outcomes=outcomes, arms=arms))
    return [[Arm(*totals) for totals in of_outcome] for of_outcome in sums]


def outcome_sums(block: Table, outcomes: Outcomes, arms: int) -> Sums:
    """Return number of rows, sum and sum of squares of every outcome in every arm, (outcomes, arms, 3)."""
    return (np.stack([cell_totals(block.arm, arms, numbers) for numbers in outcomes.numbers(block)]),)


def sizes_by_arm(source: Backend) -> list[int]:
    """Return how many rows every arm has, the reference or control first."""
    (counts,) = source.run(partial(arm_sizes, arms=len(source.study.treatment_labels)))
    return [int(count) for count in counts]
