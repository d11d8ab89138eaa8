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
# The aims: CPU of ten times the rows, CPU beside the peer's, memory beside the data's, and CPU of showing effects
# beside estimating them.
MOST_GROWTH, MOST_BESIDE_PEER, MOST_MEMORY, MOST_SHOWN = 12.0, 2.0, 3.0, 2.0


@dataclass(frozen=True)
class Ratios:
    """What is kept of one entry: numbers that another machine should find about the same.

    CPU at the larger size beside one pass over the columns and beside the peer, memory above the frame's beside the
    frame's, and CPU at the larger size beside that at the smaller one. The peer is None where it did not run beside.
    """

    columns: float
    peer: float | None
    memory: float
    growth: float

    def rounded(self) -> Ratios:
        """Return the same to three digits, as it is written."""

        def three(value: float | None) -> float | None:
            return None if value is None else float(f"{value:.3g}")

        return Ratios(**{name: three(value) for name, value in asdict(self).items()})  # type: ignore[arg-type]

    @property
    def missed(self) -> list[str]:
        """The aims that are missed."""
        aims = {
            f"growth above {MOST_GROWTH:g}": self.growth > MOST_GROWTH,
            f"above {MOST_BESIDE_PEER:g} times the peer": (self.peer or 0.0) > MOST_BESIDE_PEER,
            f"memory above {MOST_MEMORY:g} times the data": self.memory > MOST_MEMORY,
        }
        return [said for said, above in aims.items() if above]


@dataclass(frozen=True)
class Kept:
    """The file: the machine and the two sizes it was measured on, the ratios by name, and the aims that they miss.

    `shown` is the CPU of showing many effects beside estimating them. All of it is written by `--update`.
    """

    machine: str
    rows: tuple[int, int]
    ratios: Mapping[str, Ratios]
    shown: Mapping[str, float]
    missed: Mapping[str, list[str]]

    @classmethod
    def read(cls, path: Path = PATH) -> Kept:
        """Return what the file holds."""
        found = json.loads(path.read_text())
        small, large = found["rows"]
        ratios = {name: Ratios(**values) for name, values in found["ratios"].items()}
        return cls(found["machine"], (small, large), ratios, found["shown"], found["missed"])

    def write(self, path: Path = PATH) -> None:
        """Write the file, one line an entry, so that a change of one shows as one line."""
        lines = [
            f"    {json.dumps(name)}: {json.dumps(asdict(one.rounded()))}"
            for name, one in self.ratios.items()
        ]
        shown = [f"    {json.dumps(name)}: {ratio:.3g}" for name, ratio in self.shown.items()]
        missed = [f"    {json.dumps(name)}: {json.dumps(said)}" for name, said in self.missed.items()]
        inside = [
            f'  "machine": {json.dumps(self.machine)}',
            f'  "rows": {json.dumps(list(self.rows))}',
            '  "ratios": {\n' + ",\n".join(lines) + "\n  }",
            '  "shown": {\n' + ",\n".join(shown) + "\n  }",
            '  "missed": {\n' + ",\n".join(missed) + "\n  }",
        ]
        path.write_text("{\n" + ",\n".join(inside) + "\n}\n")


def missed(ratios: Mapping[str, Ratios], shown: Mapping[str, float]) -> dict[str, list[str]]:
    """Return the aims that each of these misses, where it misses one."""
    found = {name: one.missed for name, one in ratios.items()}
    found |= {name: [f"above {MOST_SHOWN:g}"] * (one > MOST_SHOWN) for name, one in shown.items()}
    return {name: said for name, said in found.items() if said}


def findings(found: Ratios, kept: Ratios | None) -> list[str]:
    """Return what is wrong with an entry: an aim that is missed and was not, a ratio that got worse."""
    if kept is None:
        return found.missed
    wrong = [said for said in found.missed if said not in kept.missed]
    if _slower(found, kept):
        wrong.append("CPU worse")
    if found.memory > WORSE * kept.memory:
        wrong.append("memory worse")
    # Growth below ten is a fixed cost, which may well get smaller.
    if found.growth > WORSE * max(kept.growth, 10 / WORSE):
        wrong.append("growth worse")
    return wrong


def shown_worse(ratio: float, kept: float | None) -> bool:
    """Return whether what showing takes is above what is kept, or above its aim where nothing is."""
    # Below the aim, the time of a few small calls says little.
    return ratio > (MOST_SHOWN if kept is None else WORSE * max(kept, MOST_SHOWN / WORSE))


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
