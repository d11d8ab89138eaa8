"""Silence while rows are at hand: nothing that a library writes about the numbers it is given gets out.

Libraries report on the numbers they are given: numpy warns of an overflow, LAPACK prints to standard error, a
learner prints its progress. While any thread is inside `silence()`, everything that the process writes to its standard
output and standard error is dropped, whoever writes it: file descriptors 1 and 2, Python's streams, warnings, logging.
Exceptions pass, ours among them. What must be said is said before or afterwards, or with `say` and `note`, which take
texts that are public whatever the rows are.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import threading
import warnings
from contextlib import ContextDecorator, ExitStack, redirect_stderr, redirect_stdout, suppress
from functools import cache
from types import TracebackType
from typing import Any, Self

import numpy as np

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
    """The state of the process: silent from the first block that is entered to the last one that is left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Blocks of all threads that were entered and not left.
        self._inside = 0
        self._undo = ExitStack()
        # Where standard error went before, while there is silence.
        self._errors: int | None = None

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                with ExitStack() as stack:
                    self._errors = _hush(stack)
                    self._undo = stack.pop_all()
            self._inside += 1

    def leave(self) -> None:
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
