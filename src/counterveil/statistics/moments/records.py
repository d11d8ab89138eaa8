"""Rows as features, treatment and outcome, a block at a time, and passes over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Backend, Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap, Standard, blocks
from counterveil.statistics.moments.kernels.scores import Block

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
        kept = self.batch.once("features", dict[int, tuple[object, Floats]])
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

    def run(self, kernel: Kernel, *arguments: Any, in_turn: bool = False, covariates: bool = True) -> Sums:
        """Return the kernel's sums over all rows; `in_turn` asks for one block at a time."""
        return self.source.run(RecordPass(self.features, kernel, arguments, covariates), in_turn)
