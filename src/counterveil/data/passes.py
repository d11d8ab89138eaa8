"""Passes over rows: silent about them, with progress, on all cores.

Libraries report on the numbers they are given: numpy warns of an overflow, LAPACK prints to standard error, a
learner prints its progress. While any thread is inside `silence()`, everything that the process writes to its standard
output and standard error is dropped, whoever writes it: file descriptors 1 and 2, Python's streams, warnings, logging.
Exceptions pass, ours among them. What must be said is said before or afterwards.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator, ExitStack, closing, redirect_stderr, redirect_stdout, suppress
from functools import cache
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal

_DESCRIPTORS = (1, 2)


class _Dropped(io.RawIOBase):
    """A stream that drops what is written to it; not a file, so that a library may keep it beyond the silence."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: Any) -> int:
        return len(text)

    def fileno(self) -> int:
        return self._descriptor


_NOWHERE: dict[int, io.TextIOWrapper] = {}


def _nowhere(descriptor: int) -> io.TextIOWrapper:
    """Return the stream that drops what is written to it, a new one where a library closed it."""
    if descriptor not in _NOWHERE or _NOWHERE[descriptor].closed:
        stream = io.BufferedWriter(_Dropped(descriptor))
        _NOWHERE[descriptor] = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
    return _NOWHERE[descriptor]


class _Hush:
    """The state of the process: silent from the first thread that enters to the last one that leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        # How often this thread is inside: only its first time counts.
        self._own = threading.local()
        self._undo = ExitStack()
        # Where standard error went before, while there is silence.
        self._errors: int | None = None

    def enter(self) -> None:
        times = getattr(self._own, "times", 0)
        if not times:
            self._begin()
        self._own.times = times + 1

    def leave(self) -> None:
        self._own.times -= 1
        if not self._own.times:
            self._end()

    def _begin(self) -> None:
        with self._lock:
            if not self._inside:
                with ExitStack() as stack:
                    self._errors = _hush(stack)
                    self._undo = stack.pop_all()
            self._inside += 1

    def _end(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._errors = None
                self._undo.close()

    def say(self, text: str, terminal: bool) -> None:
        with self._lock:
            place = self._errors if self._inside else 2
            with suppress(OSError):
                if place is not None and os.isatty(place) is terminal:
                    os.write(place, text.encode())


_PROCESS = _Hush()


class _Silence(ContextDecorator):
    def __enter__(self) -> Self:
        _PROCESS.enter()
        # Of this thread alone, unlike the rest. Errors in place of warnings would depend on rows too.
        self._quiet = np.errstate(all="ignore")
        self._quiet.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._quiet.__exit__(kind, error, trace)
        finally:
            _PROCESS.leave()

    def _recreate_cm(self) -> Self:
        return type(self)()


def silence() -> _Silence:
    """Drop everything that the process prints, logs or warns about; also a decorator."""
    return _Silence()


def say(text: str) -> None:
    """Write a text that is public whatever the rows are to the terminal that is standard error, if it is one."""
    _PROCESS.say(text, terminal=True)


def note(text: str) -> None:
    """Write a public line to standard error where it is a file or a pipe, such as the log of a job."""
    _PROCESS.say(f"{text}\n", terminal=False)


def _hush(stack: ExitStack) -> int | None:
    """Silence the process; returns the descriptor under which standard error can still be reached."""
    _flush()
    target = os.open(os.devnull, os.O_WRONLY)
    stack.callback(os.close, target)
    saved = [_redirect(stack, descriptor, target) for descriptor in _DESCRIPTORS]
    # Run first on the way back: what waits in a buffer must not come out afterwards.
    stack.callback(_flush)
    stack.callback(logging.disable, logging.root.manager.disable)
    logging.disable(logging.CRITICAL)
    # Streams of Python that are no file, such as a notebook's.
    stack.enter_context(redirect_stdout(_nowhere(1)))
    stack.enter_context(redirect_stderr(_nowhere(2)))
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    return saved[1]


def _redirect(stack: ExitStack, descriptor: int, target: int) -> int | None:
    try:
        saved = os.dup(descriptor)
    except OSError:
        # Closed, as in a daemon.
        return None
    stack.callback(os.close, saved)
    stack.callback(os.dup2, saved, descriptor)
    os.dup2(target, descriptor)
    return saved


def _flush() -> None:
    """Write out what waits in buffers of Python and of the C library."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()  # type: ignore[union-attr]
    with suppress(OSError, TypeError, AttributeError):
        _c_library().fflush(None)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


# Seconds before anything is shown, between two lines, and before a log gets its one line.
_PATIENCE, _PAUSE, _LONG = 2.0, 0.5, 10.0
_TAKEN_AWAY = "\r\x1b[K"
# When a pass last wrote its line, which says more than that of the command around it.
_PASSING = [float("-inf")]


class Progress:
    """Shows a line that is written over; only what takes longer than two seconds, and only on a terminal."""

    def __init__(self, rows: int) -> None:
        self._rows = max(rows, 1)
        self._done = 0
        self._due = time.monotonic() + _PATIENCE
        self._shown = False
        self._lock = threading.Lock()

    def add(self, rows: int) -> None:
        """Note that so many more rows are done."""
        with self._lock:
            self._done += rows
            now = time.monotonic()
            if now < self._due:
                return
            self._due = now + _PAUSE
            self._shown = True
            _PASSING[0] = now
            part = min(100 * self._done // self._rows, 100)
            say(f"\r{part:3d}% of a pass over {self._rows} rows; Ctrl-C stops it ")

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            say(_TAKEN_AWAY)


class Waiting:
    """Shows what a command is doing and for how long: after two seconds on a terminal, once in the log of a job.

    `end` says what stopping it means.
    """

    def __init__(self, what: str, end: str = "Ctrl-C stops it") -> None:
        self._what, self._end = what, end
        self._detail = ""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def report(self, detail: str) -> None:
        """Say how far it has come; shown with the next line."""
        self._detail = f", {detail}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the line away; what is printed next stands in its place."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _show(self) -> None:
        begin = time.monotonic()
        shown = False
        noted = False
        pause = _PATIENCE
        while not self._over.wait(pause):
            pause = _PAUSE
            now = time.monotonic()
            if not noted and now - begin >= _LONG:
                noted = True
                note(f"{self._what}{self._detail} ...")
            if now - _PASSING[0] > 2 * _PAUSE:
                shown = True
                say(f"{_TAKEN_AWAY}{self._what}{self._detail}: {now - begin:.0f} s; {self._end} ")
        if shown:
            say(_TAKEN_AWAY)


# A pass turns one block of rows into whole numbers; a backend runs it over all its blocks and adds them up.
#
# A pass is a function of public or released numbers that can be pickled, so that it runs in this process and in an
# executor of a cluster alike. Sums are whole numbers and a row's terms depend on that row alone: every backend, every
# cut into blocks and every order gives the same sums, to the bit.
#
# On one machine copies of this process (forks) have an equal part of the blocks each. They share its memory and its
# open files, so that no row is copied or sent; all they do is to send back whole numbers and end. Threads would wait
# for each other, since a pass is many short calls into numpy.


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
