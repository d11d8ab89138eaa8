"""The releases behind an effect as a function where only outcomes are private.

Every function takes public or released numbers and the outcomes, and returns released numbers only.
Proof: `linear_map.proof.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.linear_form import exact_dot
from counterveil.numerics.products import sums
from counterveil.session import Gate
from counterveil.statistics.linear.function_design import Functions, Places
from counterveil.statistics.linear.sensitivity import LinearMap

# Entries of a map are whole steps, and no column is longer than 2**17 of them: sums of a block stay below 2**53.
_ROOM = 1.5
MAP_STEP = _ROOM / 2.0**17
# Steps of the search for a size of residuals, on a grid of powers of it from this part of the range.
SEARCH_STEPS = 5
_FINEST = 1.0 / 128
# Standard deviations of a noisy count that are left above the size that is searched for.
_SAFE = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Outcomes minus a public prediction, in whole steps, and the clip in steps."""

    table: Table
    steps: Integers
    clip_steps: int

    @classmethod
    def of(cls, table: Table, prediction: Floats, clip: float | None = None) -> Residuals:
        """Return the residuals around a prediction in the outcome's units, clipped at `clip` or not at all."""
        low = float(table.study.outcome_range[0])
        unit = float(table.outcome_unit)
        predicted = np.clip(np.rint((prediction - low) / unit), 0, OUTCOME_STEPS).astype(np.int64)
        most = OUTCOME_STEPS if clip is None else max(1, min(OUTCOME_STEPS, ceil(clip / unit)))
        return cls(table, np.clip(table.outcome - predicted, -most, most), most)

    @property
    def clip(self) -> float:
        """The clip in the outcome's units."""
        return float(self.clip_steps * self.table.outcome_unit)

    def bound(self, longest: Fraction) -> LinearMap:
        """Return the sensitivities of maps of these residuals, in the outcome's units."""
        unit = self.table.outcome_unit
        return LinearMap(OUTCOME_STEPS * unit, self.clip_steps * unit, longest)


def release_levels(gate: Gate, name: str, table: Table) -> Floats:
    """Return the mean outcomes of control and treated, each from the sum over its arm."""
    low, high = table.study.outcome_range
    everybody = Residuals.of(table, np.full(table.rows, float(low + high) / 2))
    # A row is in one arm: its vector has length one.
    sums_by_arm = [int(everybody.steps[table.treated == arm].sum()) for arm in (False, True)]
    values = [Fraction(total) * table.outcome_unit for total in sums_by_arm]
    released = gate.release_vector(name, values, everybody.bound(Fraction(1)).values)
    treated = int(np.count_nonzero(table.treated))
    found = float(low + high) / 2 + released.floats() / np.array([table.rows - treated, treated])
    return np.asarray(np.clip(found, float(low), float(high)))


def search_names(name: str) -> tuple[str, ...]:
    """Return the names of the releases of one search for a size."""
    return tuple(f"{name}, step {step + 1}" for step in range(SEARCH_STEPS))


def left_above(share: float, rows: int, noise_variance: float) -> float:
    """Return the share of residuals that a search leaves above: the one asked for, or what noise hides."""
    return max(share, _SAFE * sqrt(noise_variance) / rows)


def release_size(gate: Gate, name: str, residuals: Residuals, share: float) -> float:
    """Return a size that all but about a share of the residuals stay below, by a noisy binary search of counts."""
    n, width = residuals.table.rows, OUTCOME_STEPS
    size = np.abs(residuals.steps)
    grid = np.ceil(width * np.geomspace(_FINEST, 1.0, 2**SEARCH_STEPS)).astype(np.int64)
    low, high = 0, len(grid) - 1
    for step in search_names(name):
        middle = (low + high) // 2
        count = int(np.count_nonzero(size <= grid[middle]))
        released = gate.release(step, Fraction(count), residuals.bound(Fraction(1)).counts)
        if float(released) >= n * (1 - left_above(share, n, released.noise.variance)):
            high = middle
        else:
            low = min(middle + 1, high)
    return float(int(grid[high]) * residuals.table.outcome_unit)


def release_squares(gate: Gate, name: str, residuals: Residuals) -> tuple[Floats, Floats]:
    """Return the mean squared residuals of control and treated and the standard deviation of the noise of each."""
    table, unit = residuals.table, residuals.table.outcome_unit
    arms = [residuals.steps[table.treated == arm] for arm in (False, True)]
    values = [Fraction(exact_dot(steps, steps)) * unit**2 for steps in arms]
    released = gate.release_vector(name, values, residuals.bound(Fraction(1)).squares)
    rows = np.array([len(steps) for steps in arms], dtype=np.float64)
    return released.floats() / rows, sqrt(released.variance) / rows


@dataclass(frozen=True, slots=True, eq=False)
class MapSums:
    """Sums of a map over the rows in integers, in steps of `MAP_STEP`, and the largest squared length of a column."""

    values: list[int]
    largest_square: int


def map_sums(functions: Functions, columns: Places, white: Floats, residuals: Residuals) -> MapSums:
    """Return the sums of white @ Z_i[columns] times the residual, Z weighted, every column truncated to integers.

    Columns longer than `_ROOM` are shortened to it, which their bits hold; of the sample none is longer than one.
    """
    total, largest = [0] * len(white), 0
    for part, z in functions.weighted_blocks():
        moved = z[:, columns] @ white.T
        longer = np.sqrt(np.einsum("ij,ij->i", moved, moved)) / _ROOM
        # A little below one, so that rounding cannot carry an entry beyond its bits.
        steps = np.trunc(moved * ((1.0 - 2.0**-40) / MAP_STEP / np.maximum(longer, 1.0))[:, None])
        largest = max(largest, int(np.einsum("ij,ij->i", steps, steps).max()))
        found = sums(steps, residuals.steps[part].astype(np.float64))
        total = [whole + int(value) for whole, value in zip(total, found, strict=True)]
    return MapSums(total, largest)


def release_map(
    gate: Gate, name: str, functions: Functions, columns: Places, white: Floats, residuals: Residuals
) -> tuple[Floats, float]:
    """Return the sums of white @ Z_i[columns] times the residual, Z weighted, and the variance of the noise of each."""
    found = map_sums(functions, columns, white, residuals)
    step = Fraction(MAP_STEP)
    unit = residuals.table.outcome_unit * step
    bound = residuals.bound(sqrt_up(Fraction(max(found.largest_square, 1))) * step)
    released = gate.release_vector(name, [value * unit for value in found.values], bound.values)
    return released.floats(), released.variance
