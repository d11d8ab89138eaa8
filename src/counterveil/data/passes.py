"""A pass turns one block of rows into whole numbers; a carrier runs it over all its blocks and adds them up.

A pass is a function of public or released numbers that can be pickled, so that it runs in this process and in an
executor of a cluster alike. Sums are whole numbers and a row's terms depend on that row alone: every carrier,
every cut into blocks and every order gives the same sums, to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterveil.data.progress import Progress
from counterveil.data.wrong_data import wrong_cores

if TYPE_CHECKING:
    from counterveil.data.study import Study
    from counterveil.data.table import Table

# Arrays of whole numbers, of 64 bits or of Python's; what carriers return are Python's.
Sums: TypeAlias = tuple[NDArray[Any], ...]

# Rows of a block, a multiple of the blocks in which kernels add rows up.
BLOCK_ROWS = 1 << 16
# Says on how many cores passes run; the machine's holder sets it, not the one who asks.
CORES = "COUNTERVEIL_CORES"


class Pass(Protocol):
    """Sums over the rows of one block; knows public and released numbers only, and can be pickled."""

    def __call__(self, block: Table, /) -> Sums:
        """Return the sums over the block's rows."""
        ...


def reads_covariates(passed: Pass) -> bool:
    """Return whether a pass needs the rows' covariates; it does unless its `covariates` say no."""
    return bool(getattr(passed, "covariates", True))


class Carrier(Protocol):
    """Rows that fit a study, wherever they lie, over which passes run."""

    @property
    def study(self) -> Study:
        """The study that the rows fit."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows, public by declaration."""
        ...

    def run(self, passed: Pass, in_turn: bool = False) -> Sums:
        """Return a pass's sums over all rows; `in_turn` asks for one block at a time, where there is a choice."""
        ...


def cores() -> int:
    """Return on how many cores passes run: what the variable says, or all that this process may use."""
    named = os.environ.get(CORES)
    if named is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not named.isascii() or not named.isdigit() or not 1 <= int(named) <= 1024:
        raise wrong_cores(CORES)
    return int(named)


def added(first: Sums | None, second: Sums | None) -> Sums | None:
    """Return the sums of both, in Python's integers; None is a sum over no rows."""
    if second is None:
        return first
    if first is None:
        return tuple(np.asarray(part).astype(object) for part in second)
    return tuple(a + np.asarray(b).astype(object) for a, b in zip(first, second, strict=True))


def in_order(passed: Pass, blocks: Iterable[Table], rows: int) -> Sums:
    """Return a pass's sums over blocks that come one after the other; one of them has sums."""
    total: Sums | None = None
    with closing(Progress(rows)) as progress:
        for block in blocks:
            total = added(total, passed(block))
            progress.add(block.rows)
    assert total is not None
    return total
