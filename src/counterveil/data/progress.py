"""What is shown while somebody waits: how far a pass over rows has come, and what a command is doing.

Nothing is shown in the first two seconds. Lines that are written over are shown on a terminal only; the log of a job
gets one line. They hold the number of rows, which is public, the share of them that is done, and seconds.
"""

from __future__ import annotations

import threading
import time
from typing import Self

from counterveil.data.silencing import note, say

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
