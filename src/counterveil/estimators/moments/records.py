"""Rows as features, treatment and outcome, a block at a time, passes over them, and weighted sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Backend, Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap, Standard, blocks
from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.privacy import Estimand
from counterveil.rows.moments.scores import GRID_BITS, TERM_BITS, Block, RowSums
from counterveil.rows.moments.sensitivity import (
    COUNT_FACTOR,
    SQUARE_WEIGHT,
    WeightedMoments,
    residual_moments,
)
from counterveil.session import Gate, KnownSensitivityMechanism, Plan

# Features are kept from pass to pass while they are no more than so many times the covariates.
MOST_KEPT = 2
# Outcomes are whole steps in [0, 2**24]: the middle of them.
MIDDLE = 1 << 23


@dataclass(frozen=True, slots=True)
class Part:
    """A block of rows: features and outcomes are made when they are asked for."""

    batch: Table
    rows: slice
    features: FeatureMap

    @property
    def x(self) -> Floats:
        """The features, in [-1, 1]."""
        return self._kept(None, lambda: self.features.block(self.batch.covariates, self.rows))

    def u(self, standard: Standard) -> Floats:
        """Return (1, z), the features standardised and shortened."""
        return self._kept(standard, lambda: standard.rows(self.x))

    def _kept(self, standard: Standard | None, make: Callable[[], Floats]) -> Floats:
        """Return what `make` returns; of every block the last one is kept, for the passes that follow."""
        if self.features.size > MOST_KEPT * len(self.batch.covariates):
            return make()
        kept = self.batch.cached("features", dict[int, tuple[object, Floats]])
        made, found = kept.get(self.rows.start, (None, np.empty(0)))
        if made != (self.features, standard):
            found = make()
            found.setflags(write=False)
            kept[self.rows.start] = (self.features, standard), found
        return found

    @property
    def treated(self) -> NDArray[np.bool_]:
        """Who was treated."""
        return self.batch.treated[self.rows]

    @property
    def steps(self) -> NDArray[np.int64]:
        """The outcomes in whole steps."""
        return self.batch.outcome[self.rows]

    @property
    def y(self) -> Floats:
        """The outcomes, in [-1, 1]."""
        return np.asarray((self.steps - MIDDLE) / MIDDLE)


@dataclass(frozen=True, slots=True)
class TableRecords:
    """The rows of one table as features, treatment and outcome in [-1, 1] (half the range is one)."""

    table: Table
    features: FeatureMap

    def parts(self) -> Iterator[Part]:
        """Yield all rows, a block at a time."""
        for rows in blocks(self.table.rows):
            yield Part(self.table, rows, self.features)

    def models(self, standard: Standard) -> Iterator[Block]:
        """Yield (1, z), treatment and outcome, a block at a time."""
        for part in self.parts():
            yield part.u(standard), part.treated.astype(np.float64), part.y


# Whole numbers from the rows of a table and from public or released numbers; a function of a module, so that it can be
# sent to where the rows are.
Kernel = Callable[..., Sums]


@dataclass(frozen=True, slots=True)
class RecordPass:
    """A kernel with its arguments: what it is called with after a table's records.

    `covariates` says whether it reads any; rows may come without them otherwise.
    """

    features: FeatureMap
    kernel: Kernel
    arguments: tuple[Any, ...]
    covariates: bool = True

    def __call__(self, block: Table, /) -> Sums:
        """Return the kernel's sums over a block."""
        return self.kernel(TableRecords(block, self.features), *self.arguments)


@dataclass(frozen=True, slots=True)
class Records:
    """Rows as features, treatment and outcome, wherever they lie; `run` passes over all of them."""

    source: Backend
    features: FeatureMap

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.source.rows

    def run(self, kernel: Kernel, *arguments: Any, sequential: bool = False, covariates: bool = True) -> Sums:
        """Return the kernel's sums over all rows; `sequential` asks for one block at a time."""
        return self.source.run(RecordPass(self.features, kernel, arguments, covariates), sequential)


@dataclass(frozen=True, slots=True)
class ResidualProducts:
    """Released means of u times a clipped residual, perhaps arm by arm, and of its square, with their noise."""

    products: Floats
    square: float
    sd: float
    square_sd: float


def release_residual_products(
    gate: Gate, name: str, count: int, sums: Callable[[], Sums], clip: float, max_norm: float = 1.0
) -> ResidualProducts:
    """Return moments of u, |u| <= `max_norm`, with residuals that are clipped to [-clip, clip], and of their squares.

    `sums` passes over the rows: u over `max_norm` times the residual over `clip`, and its square, on the grid of terms.
    """

    def values() -> list[Fraction]:
        products, (square,) = sums()
        unit = Fraction(1, count * 4**TERM_BITS)
        return [total * unit for total in products] + [SQUARE_WEIGHT * square * unit]

    released = gate.release_vector(name, values, residual_moments(count))
    found = released.floats()
    sd = sqrt(released.variance)
    weight = float(SQUARE_WEIGHT)
    return ResidualProducts(
        found[:-1] * max_norm * clip,
        found[-1] * clip**2 / weight,
        sd * max_norm * clip,
        sd * clip**2 / weight,
    )


@dataclass(frozen=True, slots=True)
class WeightedMeans:
    """Released: means of u and of u^2 over the weighted rows, the denominator, and the noise distributions.

    `effect_noise` is that of the effect and `variance_noise` that of its sampling variance, in units of the
    outcome; `count_variance` is that of the denominator's noise.
    """

    mean: float
    square: float
    rows: int
    size: float
    count_variance: float
    effect_noise: KnownSensitivityMechanism
    variance_noise: KnownSensitivityMechanism


def release_moments(
    gate: Gate, plan: Plan, found: RowSums, unit: Fraction, part: float | Estimand
) -> WeightedMeans:
    """Return the released moments; `unit` is the scale of contributions in units of the outcome.

    `part` is the part of the rows that the sum is divided by; an estimand where it has to be released.
    """
    counted = isinstance(part, Estimand)
    sums = (Fraction(found.total, 1 << GRID_BITS), Fraction(found.squares, 1 << 2 * GRID_BITS))
    sensitivity = WeightedMoments(counted)
    if plan.mechanism == "gaussian":
        total, squares, count, count_variance = _together(gate, sums, found.treated, sensitivity)
    else:
        total, squares, count, count_variance = _apart(gate, sums, found.treated, sensitivity)
    size = _clamped(count, part, found.rows) if isinstance(part, Estimand) else part * found.rows
    factor = unit / Fraction(size)
    if plan.mechanism == "gaussian":
        noise = plan.coordinate_noise("moments", sensitivity.joint * factor)
        square_noise = plan.coordinate_noise("moments", sensitivity.joint / SQUARE_WEIGHT * factor**2)
    else:
        noise = plan.noise("effect", sensitivity.total * factor)
        square_noise = plan.noise("squares", sensitivity.squares * factor**2)
    mean, square = float(total) / found.rows, float(squares) / found.rows
    return WeightedMeans(mean, square, found.rows, size, count_variance, noise, square_noise)


def _together(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return sum, squares and count from one Gaussian vector, and the variance of the count's noise."""
    values = [sums[0], SQUARE_WEIGHT * sums[1]]
    if not sensitivity.counted:
        noisy = gate.release_vector("moments", values, sensitivity.joint).values
        return noisy[0], noisy[1] / SQUARE_WEIGHT, Fraction(0), 0.0
    released = gate.release_vector("moments", [*values, COUNT_FACTOR * treated], sensitivity.joint)
    total, squares, count = released.values
    return (
        total,
        squares / SQUARE_WEIGHT,
        count / COUNT_FACTOR,
        released.variance / float(COUNT_FACTOR) ** 2,
    )


def _apart(
    gate: Gate, sums: tuple[Fraction, Fraction], treated: int, sensitivity: WeightedMoments
) -> tuple[Fraction, Fraction, Fraction, float]:
    """Return the same from releases with noise of their own."""
    total = gate.release("effect", sums[0], sensitivity.total).value
    squares = gate.release("squares", sums[1], sensitivity.squares).value
    if not sensitivity.counted:
        return total, squares, Fraction(0), 0.0
    count = gate.release("count", Fraction(treated), sensitivity.count)
    return total, squares, count.value, count.noise.variance


def _clamped(treated: Fraction, estimand: Estimand, rows: int) -> float:
    """Return the size of the arm that is averaged over, not below a small part of the rows."""
    size = float(treated) if estimand is Estimand.ATT else rows - float(treated)
    return min(max(size, float(LEAST_SHARE) * rows, 1.0), float(rows))
