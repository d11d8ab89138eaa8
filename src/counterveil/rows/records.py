"""Passes over private records that add up whole numbers, a block of at most 4096 rows at a time.

A record is (x, t, y): features x in [-1, 1]^p that public rules make of its covariates, the treatment t in
{0, 1} (or the place of its arm), and the outcome y in [-1, 1], where 1 is half of the declared range and 0
its middle (outcomes are whole steps in {0, ..., 2^24}). A *kernel* is a function that adds up something of
the records of one table, given public or released numbers:

    total = sum over tables of kernel(records of the table, arguments).

In: a backend that holds the rows, the rule of features, a kernel. Out: exact private totals; whoever calls
`Records.run` adds noise before anything is shown.

Why it is right: kernels return whole numbers, which add up to the same total however rows are divided into
blocks and tables, wherever these lie. How far one record moves a total is proved on the page of each kernel
(such as `rows/moments/record_moments.proof.md`), not here. Constants such as `MOST_KEPT` bound memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Backend, Study, Sums, Table
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import FeatureMap, Standard, blocks
from counterveil.rows.moments.scores import Block
from counterveil.session import Gate

# Features are kept from pass to pass while they are no more than so many times the covariates.
MOST_KEPT = 2
# Outcomes are whole steps in [0, 2**24]: the middle of them.
MIDDLE = 1 << 23


@dataclass(frozen=True, slots=True)
class Part:
    """A block of rows of a table: features and outcomes are made when they are asked for.

    Attributes
    ----------
    batch : Table
        The table that the rows are of.
    rows : slice
        Where they stand in it.
    features : FeatureMap
        The public rule that makes x of covariates.
    """

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
        cache = self.batch.cached("features", dict[int, tuple[object, Floats]])
        key, values = cache.get(self.rows.start, (None, np.empty(0)))
        if key != (self.features, standard):
            values = make()
            values.setflags(write=False)
            cache[self.rows.start] = (self.features, standard), values
        return values

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
        for block in self.parts():
            yield block.u(standard), block.treated.astype(np.float64), block.y


# Whole numbers from the rows of a table and from public or released numbers; a function of a module, so that
# it can be sent to where the rows are.
Kernel = Callable[..., Sums]


@dataclass(frozen=True, slots=True)
class RecordPass:
    """A kernel with the arguments that follow a table's records; it can be sent to where the rows are.

    Attributes
    ----------
    features : FeatureMap
        What makes x of covariates.
    kernel : Kernel
        A function of a module.
    arguments : tuple
        Public or released numbers.
    covariates : bool
        Whether the kernel reads covariates; rows may come without them otherwise.
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
    """All records, wherever they lie, and the passes over them.

    Estimators hold one as a handle: of it they read the number of records, the study and the rule of
    features, all public. Only modules of `counterveil.rows` call `run`.

    Attributes
    ----------
    source : Backend
        Where the rows are.
    features : FeatureMap
        What makes x of covariates: public rules, and windows around released means.
    """

    source: Backend
    features: FeatureMap

    @classmethod
    def at(cls, gate: Gate, features: FeatureMap) -> Records:
        """Return the records whose sums a gate lets through."""
        return cls(gate.rows.batches, features)

    @property
    def count(self) -> int:
        """Number of rows, public."""
        return self.source.rows

    @property
    def study(self) -> Study:
        """Roles, ranges and labels of the columns."""
        return self.source.study

    def with_features(self, features: FeatureMap) -> Records:
        """Return the same records with other features."""
        return replace(self, features=features)

    def run(self, kernel: Kernel, *arguments: Any, sequential: bool = False, covariates: bool = True) -> Sums:
        """Return the kernel's sums over all rows; `sequential` asks for one block at a time."""
        return self.source.run(RecordPass(self.features, kernel, arguments, covariates), sequential)
