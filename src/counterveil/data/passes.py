"""A pass turns one block of rows into whole numbers; a carrier runs it over all its blocks and adds them up.

A pass is a function of public or released numbers that can be pickled, so that it runs in a thread of this process or
in an executor of a cluster alike. Sums are whole numbers and a row's terms depend on that row alone: every carrier,
every cut into blocks and every order gives the same sums, to the bit.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
# Gives a block of rows when it is called, in the thread that works on it.
Supply: TypeAlias = "Callable[[], Table]"

# Rows of a block, a multiple of the blocks in which kernels add rows up.
BLOCK_ROWS = 1 << 16
# Says on how many cores passes run; the machine's holder sets it, not the one who asks.
CORES = "COUNTERVEIL_CORES"


class Pass(Protocol):
    """Sums over the rows of one block; knows public and released numbers only, and can be pickled."""

    def __call__(self, block: Table, /) -> Sums:
        """Return the sums over the block's rows."""
        ...


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


def added(first: Sums | None, second: Sums) -> Sums:
    """Return the sums of both, in Python's integers."""
    if first is None:
        return tuple(np.asarray(part).astype(object) for part in second)
    return tuple(a + np.asarray(b).astype(object) for a, b in zip(first, second, strict=True))


class Adder:
    """Runs a pass over blocks that several threads take one after the other, each as soon as it is free."""

    def __init__(self, passed: Pass, supplies: Iterator[Supply], rows: int) -> None:
        self._pass = passed
        self._supplies = supplies
        self._lock = threading.Lock()
        self._stopped = False
        self._progress = Progress(rows)

    def run(self, threads: int) -> Sums:
        """Return the sums over all blocks; after an error or Ctrl-C no thread starts another one."""
        try:
            if threads == 1:
                found = [self._work()]
            else:
                with ThreadPoolExecutor(threads - 1, "counterveil-pass") as pool:
                    others = [pool.submit(self._work) for _ in range(threads - 1)]
                    try:
                        found = [self._work()]
                    finally:
                        self._stopped = True
                    found += [other.result() for other in others]
        finally:
            self._progress.close()
        total: Sums | None = None
        for sums in found:
            total = sums if total is None else total if sums is None else added(total, sums)
        assert total is not None
        return total

    def _work(self) -> Sums | None:
        total: Sums | None = None
        # Of this thread alone. What numpy would say could depend on rows.
        with np.errstate(all="ignore"):
            while (supply := self._next()) is not None:
                try:
                    block = supply()
                    total = added(total, self._pass(block))
                except BaseException:
                    self._stopped = True
                    raise
                self._progress.add(block.rows)
        return total

    def _next(self) -> Supply | None:
        with self._lock:
            return None if self._stopped else next(self._supplies, None)
