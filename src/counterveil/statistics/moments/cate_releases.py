"""The releases behind a function: each one pass over blocks of rows, then the gate.

Every function takes public or released numbers and the rows, and returns released numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Protocol

import numpy as np

from counterveil.data import OUTCOME_STEPS, Carrier, Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.bases import Basis
from counterveil.numerics.products import blocks, projected
from counterveil.session import Gate
from counterveil.statistics.histogram import release_counts
from counterveil.statistics.moments.kernels.unit_rows import (
    STATISTIC_BITS,
    TERM_BITS,
    Block,
    gradient,
    lengths,
    shortened,
    sizes,
    statistics,
)
from counterveil.statistics.moments.sensitivity import (
    DIAGONAL,
    SQUARE,
    SQUARE_WEIGHT,
    ArmStatistics,
    ResidualMoments,
)

# Edges of the cells in which sizes of residuals are counted, each a fifth above the one before; no residual
# of an outcome in [-1, 1] needs to be larger than the last.
EDGES = np.geomspace(1.0 / 128, 2.0, 31)
# Part of the residuals that may be clipped, beside as many as the noise of the counts hides.
_CLIPPED = 0.002


class RowForm(Protocol):
    """How a table's rows become rows of length at most one, arms and outcomes; public and released numbers only."""

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        ...

    @property
    def size(self) -> int:
        """Length of a row."""
        ...

    def blocks(self, table: Table, /) -> Iterator[Block]:
        """Yield rows of length at most one, the arm of each, and outcomes in [-1, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class UnitPass:
    """A kernel over the rows that a form makes of a table, with what it is called with after them."""

    form: RowForm
    kernel: Callable[..., Sums]
    arguments: tuple[Any, ...]

    def __call__(self, block: Table, /) -> Sums:
        """Return the kernel's sums over a block."""
        return self.kernel(self.form.blocks(block), *self.arguments)


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows in a form, wherever they lie; `run` passes over all of them."""

    source: Carrier
    form: RowForm

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.source.rows

    def run(self, kernel: Callable[..., Sums], *arguments: Any) -> Sums:
        """Return the kernel's sums over all rows."""
        return self.source.run(UnitPass(self.form, kernel, arguments))


@dataclass(frozen=True, slots=True)
class Moments:
    """Released means over all rows: u u' and u v of every arm, v v; and their noise.

    `entry_sd` is the noise off the diagonals (on them it is larger by the root of two).
    """

    grams: tuple[Floats, ...]
    products: tuple[Floats, ...]
    square: float
    entry_sd: float
    product_sd: float


def statistic_sums(row_blocks: Iterator[Block], arms: int) -> Sums:
    """Return the sums of `statistics`: Grams (arms, size, size), products (arms, size) and squares."""
    found = statistics(row_blocks, arms)
    numbers = (found.grams, found.products, [found.square])
    return tuple(np.array(part, dtype=object) for part in numbers)


def gradient_sums(row_blocks: Iterator[Block], weights: Floats, clip: float) -> Sums:
    """Return the sums of `gradient`."""
    sums, square = gradient(row_blocks, weights, clip)
    return np.array(sums, dtype=object), np.array([square], dtype=object)


def size_counts(row_blocks: Iterator[Block], weights: Floats) -> Sums:
    """Return how many residuals lie in each cell of sizes."""
    return (sizes(row_blocks, weights, EDGES),)


def release_statistics(gate: Gate, name: str, rows: UnitRows) -> Moments:
    """Return the second moments of rows by arm, their products with the outcome, and its mean square."""
    n, size, arms = rows.count, rows.form.size, rows.form.arms

    def values() -> list[Fraction]:
        grams, products, square = rows.run(statistic_sums, arms)
        unit = Fraction(1, n * 4**STATISTIC_BITS)
        sums: list[Fraction] = []
        for place in range(arms):
            sums += [grams[place, i, i] * unit * DIAGONAL for i in range(size)]
            sums += [grams[place, i, j] * unit for i in range(size) for j in range(i + 1, size)]
            sums += [value * unit for value in products[place]]
        return [*sums, square[0] * unit * SQUARE]

    released = gate.release_vector(name, values, ArmStatistics(n).means)
    found, sd = released.floats(), sqrt(released.variance)
    matrices, each = [], (len(found) - 1) // arms
    for place in range(arms):
        part = found[place * each : (place + 1) * each]
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size, 1)] = part[size : each - size]
        matrices.append(matrix + matrix.T + np.diag(part[:size] / float(DIAGONAL)))
    crossed = tuple(found[(place + 1) * each - size : (place + 1) * each] for place in range(arms))
    return Moments(tuple(matrices), crossed, float(found[-1]) / float(SQUARE), sd, sd)


@dataclass(frozen=True, slots=True)
class Gradient:
    """Released means of u times the clipped residual, arm by arm, and of its square, with their noise."""

    products: Floats
    square: float
    sd: float
    square_sd: float


def release_gradient(gate: Gate, name: str, rows: UnitRows, weights: Floats, clip: float) -> Gradient:
    """Return the mean of u times the residual at these weights (arms, size), clipped to [-clip, clip]."""
    n = rows.count

    def values() -> list[Fraction]:
        sums, (square,) = rows.run(gradient_sums, weights, clip)
        unit = Fraction(1, n * 4**TERM_BITS)
        return [value * unit for value in sums] + [square * unit * SQUARE_WEIGHT]

    released = gate.release_vector(name, values, ResidualMoments(n).means)
    found, sd = released.floats(), sqrt(released.variance)
    factor = float(SQUARE_WEIGHT)
    return Gradient(found[:-1] * clip, found[-1] * clip**2 / factor, sd * clip, sd * clip**2 / factor)


def release_size(gate: Gate, name: str, rows: UnitRows, weights: Floats) -> float:
    """Return a size that nearly all residuals stay below, from a noisy histogram.

    Skewed residuals that are clipped shift effects, so that few may be: as many as the noise of the counts hides.
    """
    released = release_counts(gate, name, lambda: rows.run(size_counts, weights)[0], pure=False)
    # Cells are added up from above, where there are few rows: noise of the full ones does not enter.
    noisy = released.floats()
    above = np.cumsum(noisy[::-1])[::-1][1:]
    sds = np.sqrt(released.variance * np.arange(len(EDGES), 0, -1))
    few = np.flatnonzero(above <= _CLIPPED * rows.count + sds)
    return float(EDGES[few[0] if len(few) else -1])


# The rows of a table as unit vectors, arms and outcomes in [-1, 1], a block at a time.


_MIDDLE = OUTCOME_STEPS // 2


@dataclass(frozen=True, slots=True)
class ArmForm:
    """Rows by arm: the features of every row, and its outcome, shortened together."""

    basis: Basis
    length: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart."""
        return 2

    @property
    def size(self) -> int:
        """Length of a row."""
        return self.basis.size

    def blocks(self, table: Table, /) -> Iterator[Block]:
        """Yield all rows, a block at a time."""
        for part in blocks(table.rows):
            u, factor = shortened(self.basis.features(table.covariates, part), self.length)
            yield u, table.arm[part], factor * outcomes(table, part)


@dataclass(frozen=True, slots=True)
class InteractedForm:
    """Rows (psi, 2 (a - p) psi), p the released propensity, shortened by what covariates alone allow.

    `offset` are weights whose function times p is taken off the outcome, so that a look at residuals may
    start from two regressions by arm.
    """

    basis: Basis
    length: float
    propensity: Propensity
    offset: Floats
    start: Floats
    clip: float

    @property
    def arms(self) -> int:
        """Number of arms whose rows are added up apart: all rows are one."""
        return 1

    @property
    def size(self) -> int:
        """Length of a row."""
        return 2 * self.basis.size

    def blocks(self, table: Table, /) -> Iterator[Block]:
        """Yield all rows, a block at a time."""
        for part in blocks(table.rows):
            psi = self.basis.features(table.covariates, part)
            p = self.propensity.of(psi)
            treatment_residual = 2.0 * (table.treated[part] - p)
            # The longest that a row with these covariates could be, in either arm: weights must not tell arms apart.
            longest = np.sqrt(1.0 + 4.0 * np.maximum(p, 1.0 - p) ** 2)
            size = lengths(psi) * longest
            factor = self.length / np.maximum(size, self.length)
            scaled = psi * (factor / self.length)[:, None]
            u = np.concatenate((scaled, scaled * treatment_residual[:, None]), axis=1)
            v = factor * (outcomes(table, part) - p * projected(psi, self.offset))
            arm = np.zeros(len(v), dtype=np.intp)
            if self.clip < np.inf:
                v = np.clip((v - projected(u, self.start)) / self.clip, -1.0, 1.0)
            yield u, arm, v


@dataclass(frozen=True, slots=True)
class Propensity:
    """Probabilities of treatment from released weights of the features, kept `least` away from 0 and 1."""

    weights: Floats
    least: float

    def of(self, psi: Floats) -> Floats:
        """Return the probability of every row."""
        return np.clip(0.5 + 0.5 * projected(psi, self.weights), self.least, 1.0 - self.least)


def outcomes(table: Table, part: slice) -> Floats:
    """Return the outcomes of a block, in [-1, 1] (half the range is one)."""
    return np.asarray((table.outcome[part] - _MIDDLE) / _MIDDLE)
