"""The ratios that the repository keeps, and what a run finds beside them."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

PATH = Path(__file__).parents[1] / "growth.json"
# A ratio that is this many times the kept one has got worse.
WORSE = 1.25
# The aims: CPU of ten times the rows, CPU beside the peer's, and CPU of showing effects beside estimating them.
MOST_GROWTH, MOST_BESIDE_PEER, MOST_SHOWN = 12.0, 1.0, 2.0


@dataclass(frozen=True)
class Ratios:
    """What is kept of one entry: numbers that another machine should find about the same.

    CPU at the larger size beside one pass over the columns and beside the peer, memory above the frame's in bytes
    a row, and CPU at the larger size beside that at the smaller one. The peer is None where it did not run beside.
    """

    columns: float
    peer: float | None
    bytes_a_row: float
    growth: float

    def rounded(self) -> Ratios:
        """Return the same to three digits, as it is written."""

        def three(value: float | None) -> float | None:
            return None if value is None else float(f"{value:.3g}")

        return Ratios(**{name: three(value) for name, value in asdict(self).items()})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Kept:
    """The file: the machine and the two sizes it was measured on, the ratios by name, and notes on missed aims.

    `shown` is the CPU of showing many effects beside estimating them.
    """

    machine: str
    rows: tuple[int, int]
    ratios: Mapping[str, Ratios]
    shown: Mapping[str, float]
    notes: Mapping[str, str]

    @classmethod
    def read(cls, path: Path = PATH) -> Kept:
        """Return what the file holds."""
        found = json.loads(path.read_text())
        small, large = found["rows"]
        ratios = {name: Ratios(**values) for name, values in found["ratios"].items()}
        return cls(found["machine"], (small, large), ratios, found["shown"], found["notes"])

    def write(self, path: Path = PATH) -> None:
        """Write the file, one line an entry, so that a change of one shows as one line."""
        lines = [
            f"    {json.dumps(name)}: {json.dumps(asdict(one.rounded()))}"
            for name, one in self.ratios.items()
        ]
        shown = [f"    {json.dumps(name)}: {ratio:.3g}" for name, ratio in self.shown.items()]
        notes = [f"    {json.dumps(name)}: {json.dumps(note)}" for name, note in self.notes.items()]
        inside = [
            f'  "machine": {json.dumps(self.machine)}',
            f'  "rows": {json.dumps(list(self.rows))}',
            '  "ratios": {\n' + ",\n".join(lines) + "\n  }",
            '  "shown": {\n' + ",\n".join(shown) + "\n  }",
            '  "notes": {\n' + ",\n".join(notes) + "\n  }",
        ]
        path.write_text("{\n" + ",\n".join(inside) + "\n}\n")


def findings(found: Ratios, kept: Ratios | None, note: str | None) -> list[str]:
    """Return what is wrong with an entry: an aim that is missed without a note, a ratio that got worse."""
    wrong = []
    if note is None and found.growth > MOST_GROWTH:
        wrong.append(f"growth above {MOST_GROWTH:g}")
    if note is None and found.peer is not None and found.peer >= MOST_BESIDE_PEER:
        wrong.append("slower than the peer")
    if kept is None:
        return wrong
    if _slower(found, kept):
        wrong.append("CPU worse")
    if found.bytes_a_row > WORSE * kept.bytes_a_row:
        wrong.append("memory worse")
    # Growth below ten is a fixed cost, which may well get smaller.
    if found.growth > WORSE * max(kept.growth, 10 / WORSE):
        wrong.append("growth worse")
    return wrong


def shown_wrong(ratio: float, kept: float | None, note: str | None) -> list[str]:
    """Return what is wrong with what showing takes: above its aim without a note, or above what is kept."""
    wrong = [f"above {MOST_SHOWN:g}"] if note is None and ratio > MOST_SHOWN else []
    # Below the aim, the time of a few small calls says little.
    return wrong + (["worse"] if kept is not None and ratio > WORSE * max(kept, MOST_SHOWN / WORSE) else [])


def _slower(found: Ratios, kept: Ratios) -> bool:
    """Return whether CPU got worse beside both yardsticks: other programs may disturb one of them."""
    beside = [found.columns / kept.columns]
    if found.peer is not None and kept.peer is not None:
        beside.append(found.peer / kept.peer)
    return min(beside) > WORSE


def this_machine() -> str:
    """Return the machine and the versions that the figures depend on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    named = re.search(r"model name\s*:\s*(.+)", text) or re.search(r"CPU part\s*:\s*(.+)", text)
    cores = len(re.findall(r"^processor", text, re.MULTILINE))
    model = f"{platform.machine()}, {named[1] if named else 'unnamed'}, {cores} cores"
    return f"{model}; Python {platform.python_version()}, numpy {np.__version__}"
