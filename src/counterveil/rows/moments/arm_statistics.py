"""Second moments and products of rows by arm, residuals around released weights, and counts of their sizes.

Rows (u, arm a, v) come from a `RowForm` (`unit_rows`): u are functions of the covariates with |u| <= 1, v is
the outcome in [-1, 1], in half ranges around the middle of its declared range. Everything about a row is
private, also its arm. Released with Gaussian noise are, as means over all n rows,

    u u' and u v by arm, and v^2,                                           `ArmStatistics`,
    u rho by arm, and rho^2, with rho = clip(v - u.w_a, -C, C),             `ResidualGradient`,

and the number of rows whose |v - u.w_a| lies between edges (`ResidualSizes`). The weights w_a of a regression
by arm and the clip C (half ranges) were released before.

Why it is right: a row is in one arm, so that the matrices of all arms share one bound. Diagonal entries of u
u' are multiplied by sqrt(1/2), v^2 by sqrt(2); with these weights matrices and squares are free of charge,
and replacing a row moves the whole vector by 2 / n in Euclidean length, as the products u v alone may. The
residuals' vector, rho in parts of C, moves by 2 / n too; a row moves two counts by one.
Proof: `rows/moments/arm_statistics.proof.md`; residuals: `rows/moments/orthogonal_score.proof.md` (b) and
`rows/moments/arm_grams.proof.md` (c).
"""

# Proof: arm_statistics.proof.md

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from counterveil.data import Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import exact_arm_grams
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.linear_models import ArmLines, of_own_arm
from counterveil.rows.moments.residual_products import (
    ResidualProducts,
    release_residual_products,
    residual_sums,
)
from counterveil.rows.moments.scores import counts_between
from counterveil.rows.moments.sensitivity import LENGTH_SLACK
from counterveil.rows.moments.unit_rows import RowForm, UnitBlock
from counterveil.session import Gate

# Weights of the entries beside the products u v: on the diagonal just below the root of one half, off it one,
# and just below the root of two for the sum of v^2.
DIAGONAL = Fraction(70_710_678, 100_000_000)
SQUARE = Fraction(141_421_356, 100_000_000)
# Rows and outcomes are taken in steps of 2**-STATISTIC_BITS.
STATISTIC_BITS = 20


def arm_statistics(rows: int) -> Fraction:
    """Return the l2 sensitivity of (DIAGONAL diag, upper triangle of u u', u v) in every arm and SQUARE v^2, as means.

    Every row is in one arm, |u| <= 1 and v lies in [-1, 1]: it is that of the products u v alone.
    """
    return 2 * (1 + LENGTH_SLACK) ** 2 / rows


@dataclass(frozen=True, slots=True)
class ArmProducts:
    """Released means over all rows.

    Attributes
    ----------
    grams : tuple of ndarray of float, shape (m, m)
        u u' of every arm.
    products : tuple of ndarray of float, shape (m,)
        u v of every arm.
    square : float
        v^2.
    entry_sd : float
        Standard deviation of the noise off the diagonals; on them it is larger by the root of two.
    product_sd : float
        That of the products' noise.
    """

    grams: tuple[Floats, ...]
    products: tuple[Floats, ...]
    square: float
    entry_sd: float
    product_sd: float


@dataclass(frozen=True, slots=True)
class ArmStatistics:
    """The means of u u' and u v by arm, and of v^2.

    Attributes
    ----------
    form : RowForm
        How rows are made.
    """

    form: RowForm

    def release(self, gate: Gate, name: str) -> ArmProducts:
        """Return the noisy means."""
        source = gate.rows.batches
        n = source.rows
        size = self.form.size
        arms = self.form.arms

        def exact() -> list[Fraction]:
            grams, products, square = source.run(UnitPass(self.form, statistic_sums, (arms,)))
            unit = Fraction(1, n * 4**STATISTIC_BITS)
            values: list[Fraction] = []
            for arm in range(arms):
                values += [grams[arm, i, i] * unit * DIAGONAL for i in range(size)]
                values += [grams[arm, i, j] * unit for i in range(size) for j in range(i + 1, size)]
                values += [value * unit for value in products[arm]]
            return [*values, square[0] * unit * SQUARE]

        released = gate.release_vector(name, exact, arm_statistics(n))
        sd = sqrt(released.variance)
        *values, square = released.floats()
        matrices = []
        crossed = []
        for arm in np.split(np.array(values), arms):
            matrix = np.zeros((size, size))
            matrix[np.triu_indices(size, 1)] = arm[size:-size]
            matrices.append(matrix + matrix.T + np.diag(arm[:size] / float(DIAGONAL)))
            crossed.append(arm[-size:])
        return ArmProducts(
            grams=tuple(matrices),
            products=tuple(crossed),
            square=float(square) / float(SQUARE),
            entry_sd=sd,
            product_sd=sd,
        )


@dataclass(frozen=True, slots=True)
class ResidualGradient:
    """The means of u rho by arm and of rho^2, rho being the clipped residual at released weights.

    Attributes
    ----------
    form : RowForm
        How rows are made.
    weights : ndarray of float, shape (arms, m)
        w.
    clip : float
        C.
    """

    form: RowForm
    weights: Floats
    clip: float

    def release(self, gate: Gate, name: str) -> ResidualProducts:
        """Return the noisy means, of one arm after another."""
        source = gate.rows.batches
        summed = UnitPass(self.form, residual_sums, (ArmLines(self.weights), self.clip, 1.0))
        return release_residual_products(
            gate, name, source.rows, sums=lambda: source.run(summed), clip=self.clip
        )


@dataclass(frozen=True, slots=True)
class ResidualSizes:
    """The numbers of rows by the size of residuals at released weights; a replaced row moves two by one.

    Attributes
    ----------
    form : RowForm
        How rows are made.
    weights : ndarray of float, shape (arms, m)
        w.
    edges : ndarray of float, shape (k,)
        Edges of cells, the first of which begins at zero; one cell lies above the last.
    """

    form: RowForm
    weights: Floats
    edges: Floats

    def release(self, gate: Gate, name: str) -> tuple[Floats, float]:
        """Return the noisy counts, (k + 1,), and the variance of the noise of each."""
        counted = UnitPass(self.form, size_counts, (self.weights, self.edges))
        released = release_counts(gate, name, lambda: gate.rows.batches.run(counted)[0], pure=False)
        return released.floats(), released.variance


@dataclass(frozen=True, slots=True)
class UnitPass:
    """A kernel over the rows that a form makes of a table, with what it is called with after them."""

    form: RowForm
    kernel: Callable[..., Sums]
    arguments: tuple[Any, ...]

    def __call__(self, block: Table, /) -> Sums:
        """Return the kernel's sums over a block."""
        return self.kernel(self.form.blocks(block), *self.arguments)


def statistic_sums(row_blocks: Iterable[UnitBlock], arms: int) -> Sums:
    """Return the sums of u u' and u v by arm and of v v in units of 4**-STATISTIC_BITS, all factors truncated."""
    rows = ((arm, np.column_stack((u, v))) for u, arm, v in row_blocks)
    grams = np.stack(exact_arm_grams(rows, STATISTIC_BITS, arms))
    return grams[:, :-1, :-1], grams[:, :-1, -1], np.array([grams[:, -1, -1].sum()], dtype=object)


def size_counts(row_blocks: Iterable[UnitBlock], weights: Floats, edges: Floats) -> Sums:
    """Return how many rows have |v - u.weights[arm]| in each cell between the edges; one cell lies above the last."""
    residuals = (np.abs(v - of_own_arm(u, arm, weights)) for u, arm, v in row_blocks)
    return (counts_between(edges, residuals, "left"),)
