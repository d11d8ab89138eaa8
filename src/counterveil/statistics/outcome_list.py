"""The outcomes that are estimated together: names, ranges, weights, and what earlier values take off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Backend, Sums, Table
from counterveil.numerics.arms import Arm, cell_totals
from counterveil.numerics.linear_form import exact_dot
from counterveil.session import Gate

# Slopes are whole numbers of these parts.
SLOPE_PARTS = 16


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a study: names, ranges, and weights that one over their noise is in proportion to.

    `earlier` are the places among a table's measures of what was measured before, None where nothing was; `slopes`,
    released by then, say how many sixteenths of it are taken off the outcome.
    """

    names: tuple[str, ...]
    ranges: tuple[tuple[Fraction, Fraction], ...]
    weights: tuple[Fraction, ...]
    earlier: tuple[int | None, ...] = ()
    slopes: tuple[int, ...] = ()

    @property
    def measured_before(self) -> list[tuple[int, int]]:
        """The places of outcomes that were measured before, each with the place of that number."""
        return [(place, column) for place, column in enumerate(self.earlier) if column is not None]

    @property
    def widths(self) -> list[Fraction]:
        """The widths of the ranges of what is compared: outcomes, less what is taken off them."""
        slopes = self.slopes or (0,) * len(self.names)
        return [
            (high - low) * (1 + Fraction(slope, SLOPE_PARTS))
            for (low, high), slope in zip(self.ranges, slopes, strict=True)
        ]

    # Proof: earlier_values.proof.md
    def numbers(self, table: Table) -> list[NDArray[np.int64]]:
        """Return what is compared, in steps of its range: outcomes, less slopes times what was measured before."""
        found = [table.outcome, *table.measures[: len(self.names) - 1]]
        for place, column in self.measured_before if self.slopes else []:
            slope = self.slopes[place]
            above = slope * (OUTCOME_STEPS - table.measures[column])
            found[place] = (SLOPE_PARTS * found[place] + above) // (SLOPE_PARTS + slope)
        return found

    @property
    def _even(self) -> bool:
        return len(set(self.weights)) == 1

    def drawn(self, mechanism: str) -> str:
        """Return the noise that is drawn for a question's mechanism."""
        return "gaussian" if mechanism == "gaussian" else "box" if self._even else "staircase"

    def mechanisms(self, mechanism: str) -> tuple[str, ...]:
        """Return all noise that is drawn; moments with earlier numbers have equal weights, whatever outcomes have."""
        own = self.drawn(mechanism)
        return (own, "box") if self.slopes and own == "staircase" else (own,)

    def noise_factor(self, mechanism: str) -> float:
        """Return about how much more noise the first outcome has than it would have alone."""
        sizes = [float(weight / self.weights[0]) for weight in self.weights]
        if mechanism == "gaussian":
            return sqrt(sum(size**2 for size in sizes))
        count = len(sizes)
        return sqrt((count + 1) * (count + 2) / 6) if self._even else sum(sizes)


def totals_by_arm(source: Backend, outcomes: Outcomes) -> list[list[Arm]]:
    """Return for every outcome the exact totals of every arm, the reference or control first."""
    arms = len(source.study.treatment_labels)
    (sums,) = source.run(partial(outcome_sums, outcomes=outcomes, arms=arms))
    return [[Arm(*one) for one in line] for line in sums]


def outcome_sums(block: Table, outcomes: Outcomes, arms: int) -> Sums:
    """Return number of rows, sum and sum of squares of every outcome in every arm, (outcomes, arms, 3)."""
    return (np.stack([cell_totals(block.arm, arms, numbers) for numbers in outcomes.numbers(block)]),)


def sizes_by_arm(source: Backend) -> list[int]:
    """Return how many rows every arm has, the reference or control first."""
    (counts,) = source.run(partial(arm_sizes, arms=len(source.study.treatment_labels)))
    return [int(count) for count in counts]


def arm_sizes(block: Table, arms: int) -> Sums:
    """Return how many rows of a block every arm has."""
    return (np.bincount(block.arm, minlength=arms),)


PAGE = "statistics/earlier_values.proof.md"
NAME = "slopes"
# The part of the budget for the moments that slopes are chosen from; `python -m experiments.measures --only earlier`.
PART = Fraction(1, 10)
_HALF = OUTCOME_STEPS // 2


# Proof: earlier_values.proof.md
def bounds(rows: int) -> list[Fraction]:
    """Return how far one row moves the means of x, y, x y and x^2, for numbers in [-1/2, 1/2]."""
    return [Fraction(1, rows), Fraction(1, rows), Fraction(1, 2 * rows), Fraction(1, 4 * rows)]


def moment_sums(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the sums of x, y, x y and x^2 for steps less half of their range; exact."""
    x, y = before - _HALF, after - _HALF
    return [int(x.sum()), int(y.sum()), exact_dot(x, y), exact_dot(x, x)]


def exact_moments(sums: Sequence[int], rows: int) -> list[Fraction]:
    """Return the means of x, y, x y and x^2 in [-1/2, 1/2] from those sums."""
    units = (OUTCOME_STEPS, OUTCOME_STEPS, OUTCOME_STEPS**2, OUTCOME_STEPS**2)
    return [Fraction(int(one), rows * unit) for one, unit in zip(sums, units, strict=True)]


def earlier_sums(block: Table, outcomes: Outcomes) -> Sums:
    """Return `moment_sums` of every outcome that was measured before, (outcomes, 4)."""
    plain = outcomes.numbers(block)
    found = [moment_sums(block.measures[column], plain[place]) for place, column in outcomes.measured_before]
    return (np.array(found, dtype=object),)


def with_slopes(
    gate: Gate, source: Backend, outcomes: Outcomes, squares: float, noise: Sequence[float]
) -> Outcomes:
    """Return the outcomes with their slopes, from moments that are released here.

    `squares` is the sum of squared coefficients of the comparison, `noise` the variance of each outcome's noise in
    units of its squared range.
    """
    pairs = outcomes.measured_before
    (sums,) = source.run(partial(earlier_sums, outcomes=replace(outcomes, slopes=())))
    values = [moment for line in sums for moment in exact_moments(line, source.rows)]
    limits = bounds(source.rows) * len(pairs)
    released = gate.release_several(NAME, values, limits, [Fraction(1)] * len(values))
    slopes = [0] * len(outcomes.names)
    for order, (place, _) in enumerate(pairs):
        own = released[4 * order : 4 * order + 4]
        x, y, product, square = map(float, own)
        # A covariance that is lost in its noise is none.
        together = product - x * y - sqrt(own[2].noise.variance)
        spread = max(square - x * x + sqrt(own[3].noise.variance), together, 1e-12)

        def expected(slope: int, own: float = noise[place], c: float = together, v: float = spread) -> float:
            part = slope / SLOPE_PARTS
            return squares * (part * part * v - 2 * part * c) + own * (1 + part) ** 2

        slopes[place] = min(range(SLOPE_PARTS + 1), key=expected)
    return replace(outcomes, slopes=tuple(slopes))


def slopes_said(outcomes: Outcomes) -> dict[str, float | str]:
    """Return the slopes in words, nothing where nothing was measured before."""
    if not outcomes.slopes:
        return {}
    places = [place for place, _ in outcomes.measured_before]
    said = [f"{outcomes.names[place]} {outcomes.slopes[place] / SLOPE_PARTS:g}" for place in places]
    return {"slopes_on_earlier": ", ".join(said)}
