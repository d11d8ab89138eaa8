"""Which cell every row is in: by a layout of covariates, by a decision rule, or by its place in a ranking.

In come blocks of private rows, out comes a cell number for every row (starting at 0); `ArmPlaces` makes two
cells of each, with and without treatment. The rules are public or were released before: a `Layout` of groups,
a function from covariates to yes or no (`RulePlaces`, a treatment policy), or thresholds of a number that a
public function gives every row (`RankPlaces`). `release_rank_counts` releases how many rows have that number
between edges, in people, with noise; everything else stays inside the process.

Why it is right: a rule reads the covariates of one row at a time, so that a row's cell depends on that row
alone, which is what sums over cells need for one record to touch one cell before and one after. For rules
that are not the package's own the caller answers for this; they are asked about one block after the other
(`sequential`).
Proof: `rows/moments/group_scores.proof.md`; counts: `rows/histogram.proof.md`.
"""

# Proof: group_scores.proof.md

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Layout, Sums, Table, covariate_columns, strata_codes
from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.products import FeatureMap
from counterveil.rows.counts import release_counts
from counterveil.rows.moments.scores import counts_between
from counterveil.rows.records import Part, Records, TableRecords
from counterveil.session import Gate

# The cell of every row.
Codes = NDArray[np.int64]
# Covariates by name, as a caller's rule reads them.
Columns = Mapping[str, NDArray[Any]]


class Placing(Protocol):
    """Which cell every row of a block is in, by a public rule that reads each row by itself.

    `sequential` says that the rule must be asked about one block after the other.
    """

    @property
    def sequential(self) -> bool:
        """Whether blocks are to be placed one after the other."""
        ...

    def __call__(self, block: Part, /) -> Codes:
        """Return the cell of every row."""
        ...


@dataclass(frozen=True, slots=True)
class ArmPlaces:
    """Two cells for each that a rule makes: the untreated in the first."""

    placing: Placing

    @property
    def sequential(self) -> bool:
        """As the rule says."""
        return self.placing.sequential

    def __call__(self, block: Part, /) -> Codes:
        """Return the cell of every row."""
        return np.asarray(2 * self.placing(block) + block.treated)


@dataclass(slots=True)
class LayoutPlaces:
    """The group of every row of a block, by a layout of covariates."""

    layout: Layout
    sequential: bool = False

    def __call__(self, block: Part) -> Codes:
        """Return the cell of every row."""
        return strata_codes(block.batch.take(block.rows), self.layout)


@dataclass(frozen=True, slots=True)
class OnePlace:
    """One cell, of everybody."""

    sequential: ClassVar[bool] = False

    def __call__(self, block: Part) -> Codes:
        """Return the cell of every row."""
        return np.zeros(len(block.y), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class RulePlaces:
    """Cell 1 for rows that a rule treats, 0 for the others.

    Attributes
    ----------
    decide : callable
        From a mapping of covariates to whether each row is treated.
    sequential : bool
        Whether the rule asks a function or a model that is not ours.
    """

    decide: Callable[[Columns], Flags]
    sequential: bool

    def __call__(self, block: Part) -> Codes:
        """Return the cell of every row."""
        return self.decide(covariate_columns(block.batch, block.rows)).astype(np.int64)


@dataclass(slots=True)
class RowNumbers:
    """A number for every row of a block, from its covariates, by a public function of mappings of columns.

    A function that is not ours is asked about one block after the other and, while a batch stays the same, about
    each block once.
    """

    function: Callable[[Columns], Floats]
    sequential: bool
    _batch: Table | None = field(default=None, init=False)
    _numbers: dict[int, Floats] = field(default_factory=dict, init=False)

    def __call__(self, block: Part) -> Floats:
        """Return the numbers of a block's rows."""
        if not self.sequential:
            return self.function(covariate_columns(block.batch, block.rows))
        if self._batch is not block.batch:
            self._batch = block.batch
            self._numbers = {}
        if block.rows.start not in self._numbers:
            self._numbers[block.rows.start] = self.function(covariate_columns(block.batch, block.rows))
        return self._numbers[block.rows.start]


@dataclass(frozen=True, slots=True)
class RankPlaces:
    """The place of every row's number among thresholds."""

    rank: RowNumbers
    thresholds: Floats

    @property
    def sequential(self) -> bool:
        """As the ranking says."""
        return self.rank.sequential

    def __call__(self, block: Part) -> Codes:
        """Return the cell of every row."""
        return np.searchsorted(self.thresholds, self.rank(block), "right").astype(np.int64)


def release_rank_counts(gate: Gate, rank: RowNumbers, edges: Floats, pure: bool) -> Floats:
    """Return how many rows have their number between every two edges, with noise."""
    records = Records.at(gate, FeatureMap(()))
    (counts,) = records.run(rank_counts, rank, edges, sequential=rank.sequential)
    return release_counts(gate, "ranks", counts, pure).floats()


def rank_counts(records: TableRecords, rank: RowNumbers, edges: Floats) -> Sums:
    """Return how many rows have their number between every two edges."""
    return (counts_between(edges, (rank(block) for block in records.parts())),)
