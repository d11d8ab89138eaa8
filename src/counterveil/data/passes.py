"""Passes over rows, on all cores.

A pass turns one block of rows into whole numbers; a backend runs it over all its blocks and adds them up. It is a
function of public or released numbers that can be pickled, so that it runs in this process and in an executor of a
cluster alike. Sums are whole numbers and a row's terms depend on that row alone: every backend, every cut into blocks
and every order gives the same sums, to the bit.

On one machine copies of this process (forks) have an equal part of the blocks each. They share its memory and its
open files, so that no row is copied or sent; all they do is to send back whole numbers and end. Threads would wait
for each other, since a pass is many short calls into numpy.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.data.progress import Progress
from counterveil.errors import refusal

# Arrays of whole numbers, of 64 bits or of Python's; what backends return are Python's.
Sums: TypeAlias = tuple[NDArray[Any], ...]

# Rows of a block, a multiple of the blocks in which kernels add rows up.
BLOCK_ROWS = 1 << 16
# Says on how many cores passes run; the machine's holder sets it, not the one who asks.
CORES = "COUNTERVEIL_CORES"


def reads_covariates(passed: object) -> bool:
    """Return whether a pass needs the rows' covariates; it does unless its `covariates` say no."""
    return bool(getattr(passed, "covariates", True))


class Counted(Protocol):
    """A block, with its number of rows."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        ...


AnyBlock = TypeVar("AnyBlock", bound=Counted)


def cores() -> int:
    """Return on how many cores passes run: what the variable says, or all that this process may use."""
    named = os.environ.get(CORES)
    if named is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not named.isascii() or not named.isdigit() or not 1 <= int(named) <= 1024:
        raise refusal("CV-D059", variable=CORES)
    return int(named)


def added(first: Sums | None, second: Sums | None) -> Sums | None:
    """Return the sums of both, in Python's integers; None is a sum over no rows."""
    if second is None:
        return first
    if first is None:
        return tuple(np.asarray(part).astype(object) for part in second)
    return tuple(a + np.asarray(b).astype(object) for a, b in zip(first, second, strict=True))


def in_order(passed: Callable[[AnyBlock], Sums | None], blocks: Iterable[AnyBlock], rows: int) -> Sums:
    """Return a pass's sums over blocks that come one after the other; one of them has sums."""
    total: Sums | None = None
    with closing(Progress(rows)) as progress:
        for block in blocks:
            total = added(total, passed(block))
            progress.add(block.rows)
    assert total is not None
    return total


# A copy is made for no fewer blocks than these.
_FEWEST_BLOCKS = 4
_DEATH_OF_PARENT = 1


def side_by_side(
    passed: Callable[[AnyBlock], Sums | None], block: Callable[[int], AnyBlock], count: int, rows: int
) -> Sums:
    """Return a pass's sums over `count` blocks, each given by its number, on all cores.

    On one where forks are not safe.
    """
    helpers = min(cores(), count) - 1 if count >= _FEWEST_BLOCKS else 0
    if helpers < 1 or sys.platform != "linux":
        return in_order(passed, map(block, range(count)), rows)
    total: Sums | None = None
    shares = [range(first, count, helpers + 1) for first in range(helpers + 1)]
    with closing(_Forks()) as forks:
        for share in shares[1:]:
            forks.start(passed, map(block, share))
        with closing(Progress(rows)) as progress:
            for one in map(block, shares[0]):
                total = added(total, passed(one))
                # The others are about as fast.
                progress.add(one.rows * (1 + helpers))
        found = forks.sums()
    if found is None:
        # Whatever stopped a copy is met again here, where it can be told.
        return in_order(passed, map(block, range(count)), rows)
    for sums in found:
        total = added(total, sums)
    assert total is not None
    return total


class _Forks:
    """Copies of this process, by their process id, with the pipe that each answers through."""

    def __init__(self) -> None:
        self._pipes: dict[int, int] = {}

    def start(self, passed: Callable[[AnyBlock], Sums | None], blocks: Iterator[AnyBlock]) -> None:
        """Start a copy that adds up these blocks."""
        out, into = os.pipe()
        # Found before there is a copy, which should load nothing: another thread may have been loading as it was made.
        library = ctypes.CDLL(None)
        with warnings.catch_warnings():
            # Other threads do not exist in the copy, which needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            copy = os.fork()
        if not copy:
            _work(passed, blocks, into, library)
        os.close(into)
        self._pipes[copy] = out

    def sums(self) -> list[Sums | None] | None:
        """Return the sums of all copies, None where one of them failed."""
        found: list[Sums | None] = []
        for out in self._pipes.values():
            with os.fdopen(os.dup(out), "rb") as pipe:
                sent = pipe.read()
            try:
                found.append(pickle.loads(sent))
            except (EOFError, pickle.UnpicklingError):
                # It sent nothing, or was killed on the way.
                return None
        return found

    def close(self) -> None:
        """End all copies, whatever they are doing."""
        for copy, out in self._pipes.items():
            os.close(out)
            with suppress(ProcessLookupError):
                os.kill(copy, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(copy, 0)


def _work(
    passed: Callable[[AnyBlock], Sums | None],
    blocks: Iterator[AnyBlock],
    into: int,
    library: ctypes.CDLL,
) -> NoReturn:
    """Add up blocks, send the sums and end, without any of what a process does when it ends."""
    try:
        # This process is ended by the one that it is a copy of, also where that one is killed.
        with suppress(AttributeError, OSError):
            library.prctl(_DEATH_OF_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        total: Sums | None = None
        with np.errstate(all="ignore"):
            for block in blocks:
                total = added(total, passed(block))
        with os.fdopen(into, "wb") as pipe:
            pickle.dump(total, pipe)
    finally:
        os._exit(0)
