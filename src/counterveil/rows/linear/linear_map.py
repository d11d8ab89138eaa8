"""Released sums of public vectors times private residuals, outcomes minus a public prediction, clipped.

    sum_i m_i r_i,    r_i = clip(y_i - g_i, -C, C),

with vectors m_i and predictions g_i made of what is public or was released before, outcomes y_i in a range of
width B, and a clip C; y, g, B and C are in units of the outcome (whole steps inside, 2^24 to the range). From
the same residuals come sums by arm, sums of squares by arm, and the number of rows with ``|r_i|`` within a
bound.

In: private outcomes; covariates and arms are public. Out: these sums with noise of known variance.

Why it is right: one outcome moves one residual by at most min(2 C, B), so the sum moves by that times the
length of the longest m_i, squares by C^2, and the number of rows by 1.

Proof: `rows/linear/linear_map.proof.md`. `MAP_STEP` and `_ROOM` fix the grid on which vectors are summed
exactly; the bound is that of the truncated vectors, so privacy does not depend on them.
"""

# Proof: linear_map.proof.md

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.arrays import Floats, Integers, sqrt_up
from counterveil.numerics.products import sums
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.rows.public import PublicRows
from counterveil.session import Gate, Released

# Entries of a map are whole steps, and no column is longer than 2**17 of them: sums of a block stay below
# 2**53.
_ROOM = 1.5
MAP_STEP = _ROOM / 2.0**17
# Lengths are taken a little larger, so that rounding cannot carry an entry beyond its bits.
_BELOW_ONE = 1.0 - 2.0**-40
# Slices of rows, and their public vectors m_i, one a row.
VectorBlocks = Iterable[tuple[slice, Floats]]


@dataclass(frozen=True, slots=True)
class LinearMap:
    """Sensitivities of sums of m_i r_i, r_i an outcome of range `width` minus a public number, clipped at `clip`.

    Attributes
    ----------
    width : Fraction
        B, the width of the outcome's range.
    clip : Fraction
        C, in the same units.
    longest : Fraction
        A bound on the Euclidean length of every public vector m_i.
    """

    width: Fraction
    clip: Fraction
    longest: Fraction

    @property
    def values(self) -> Fraction:
        """Largest Euclidean length of a change of sum m_i r_i."""
        return min(2 * self.clip, self.width) * self.longest

    @property
    def squares(self) -> Fraction:
        """Largest Euclidean length of a change of the sums of squares r_i^2 by arm."""
        return self.clip**2

    @property
    def counts(self) -> Fraction:
        """Largest change of the number of rows whose residual is within a public bound."""
        return Fraction(1)


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Outcomes minus a public prediction, clipped, in whole steps of the outcome's range.

    Attributes
    ----------
    prediction_steps : ndarray of int, shape (n,)
        g, from the lower end of the range on.
    clip_steps : int
        C.
    unit : Fraction
        Length of one step in units of the outcome.
    treated : ndarray of bool, shape (n,)
        Arms, public.
    """

    prediction_steps: Integers
    clip_steps: int
    unit: Fraction
    treated: NDArray[np.bool_]

    @classmethod
    def of(cls, public: PublicRows, prediction: Floats, clip: float | None = None) -> Residuals:
        """Return the residuals around a prediction in the outcome's units, clipped at `clip` or not at all."""
        low = float(public.study.outcome_range[0])
        unit = float(public.outcome_unit)
        steps = np.clip(np.rint((prediction - low) / unit), 0, OUTCOME_STEPS).astype(np.int64)
        most = OUTCOME_STEPS if clip is None else max(1, min(OUTCOME_STEPS, ceil(clip / unit)))
        return cls(steps, most, public.outcome_unit, public.treated)

    @property
    def clip(self) -> float:
        """The clip in the outcome's units."""
        return float(self.clip_steps * self.unit)

    @property
    def arm_sizes(self) -> Integers:
        """Numbers of rows, of control and of treated."""
        return np.bincount(self.treated, minlength=2)

    def bounds(self, longest: Fraction = Fraction(1)) -> LinearMap:
        """Return the sensitivities of maps of these residuals, in the outcome's units."""
        return LinearMap(OUTCOME_STEPS * self.unit, self.clip_steps * self.unit, longest)

    def steps(self, table: Table) -> Integers:
        """Return the residuals of all rows in whole steps."""
        return np.asarray(np.clip(table.outcome - self.prediction_steps, -self.clip_steps, self.clip_steps))

    def release_sums(self, gate: Gate, name: str) -> Floats:
        """Return the noisy sums of residuals over control and over treated; a row is in one of them."""
        steps = self.steps(gate.rows.table)
        values = [Fraction(int(steps[self.treated == arm].sum())) * self.unit for arm in (False, True)]
        return gate.release_vector(name, values, self.bounds().values).floats()

    def release_count(self, gate: Gate, name: str, bound_steps: int) -> Released:
        """Return the noisy number of rows whose residual is at most so many steps long."""
        count = int(np.count_nonzero(np.abs(self.steps(gate.rows.table)) <= bound_steps))
        return gate.release(name, Fraction(count), self.bounds().counts)

    def release_squares(self, gate: Gate, name: str) -> tuple[Floats, Floats]:
        """Return mean squared residuals of control and treated, and the standard deviation of each one's noise."""
        steps = self.steps(gate.rows.table)
        arms = [steps[self.treated == arm] for arm in (False, True)]
        values = [Fraction(exact_dot(residuals, residuals)) * self.unit**2 for residuals in arms]
        released = gate.release_vector(name, values, self.bounds().squares)
        rows = np.array([len(residuals) for residuals in arms], dtype=np.float64)
        return released.floats() / rows, sqrt(released.variance) / rows

    def release_map(self, gate: Gate, name: str, vectors: VectorBlocks, size: int) -> tuple[Floats, float]:
        """Return the noisy sums of public vectors times residuals, and the variance of each one's noise."""
        values, largest = map_sums(self.steps(gate.rows.table), vectors, size)
        step = Fraction(MAP_STEP)
        unit = self.unit * step
        bounds = self.bounds(sqrt_up(Fraction(max(largest, 1))) * step)
        released = gate.release_vector(name, [value * unit for value in values], bounds.values)
        return released.floats(), released.variance


def map_sums(residual_steps: Integers, vectors: VectorBlocks, size: int) -> tuple[list[int], int]:
    """Return the sums of public vectors times residuals, every vector truncated to integers.

    They are in steps of `MAP_STEP`; with them comes the largest squared length of a vector. Vectors longer
    than `_ROOM` are shortened to it, which their bits hold.
    """
    total = [0] * size
    largest = 0
    for span, vector in vectors:
        longer = np.sqrt(np.einsum("ij,ij->i", vector, vector)) / _ROOM
        steps = np.trunc(vector * (_BELOW_ONE / MAP_STEP / np.maximum(longer, 1.0))[:, None])
        largest = max(largest, int(np.einsum("ij,ij->i", steps, steps).max()))
        block = sums(steps, residual_steps[span].astype(np.float64))
        total = [running + int(value) for running, value in zip(total, block, strict=True)]
    return total, largest
