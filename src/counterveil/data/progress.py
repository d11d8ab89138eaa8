"""How far a pass has come, on the terminal of the one who waits: rows done out of all, both public."""

from __future__ import annotations

import threading
import time

from counterveil.data.silence import say

# Seconds before anything is shown, and between two lines.
_PATIENCE, _PAUSE = 2.0, 0.5


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
            self._due, self._shown = now + _PAUSE, True
            part = min(100 * self._done // self._rows, 100)
            say(f"\r{part:3d} % of a pass over {self._rows} rows; Ctrl-C stops it ")

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            say("\r\x1b[K")
