"""Finished cells on disk, one JSON line each: a run that was cut short goes on where it stopped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from counterveil.reproduce.protocol import Cell, Row


def key_of(cell: Cell) -> str:
    """Return the text under which the rows of a cell are kept; the order of its entries does not matter."""
    return json.dumps(dict(cell), sort_keys=True)


@dataclass(frozen=True)
class Done:
    """The rows of a finished cell, and the CPU seconds that it took."""

    rows: list[Row]
    seconds: float


@dataclass(frozen=True)
class Store:
    """The finished cells of one figure, in one file."""

    path: Path

    def read(self) -> dict[str, Done]:
        """Return what is finished, by the key of its cell; a line that was cut short is left out."""
        if not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                facts = json.loads(line)
                found[key_of(facts["cell"])] = Done(facts["rows"], facts["seconds"])
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def add(self, cell: Cell, done: Done) -> None:
        """Append a finished cell; what stands behind a line that was cut short begins a line of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"cell": dict(cell), "rows": done.rows, "seconds": round(done.seconds, 4)})
        with self.path.open("a+b") as file:
            if file.tell():
                file.seek(-1, 2)
                torn = file.read(1) != b"\n"
                file.write(b"\n" * torn)
            file.write(line.encode() + b"\n")
