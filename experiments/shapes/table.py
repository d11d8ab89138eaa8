"""The judgement of cells and the page that shows them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from experiments.shapes.designs import DESIGNS
from experiments.shapes.runs import COVERS
from experiments.shapes.ways import ways

# An answer is at most this many times as long as the plainest private one that covers; a function errs at most as much
# more than one number for everybody.
LONGEST = 1.5
Kept = dict[str, Any]


def fault(kept: Kept) -> str | None:
    """Return what is wrong with a cell, or None."""
    ours, plain = kept["ours"], kept["plain"]
    answered = ours["draws"] - ours["refused"]
    if not answered or ours["invalid"] == answered:
        return None
    if ours["coverage"] < COVERS:
        return "misses"
    if plain["coverage"] is None or plain["coverage"] < COVERS:
        return None
    # Intervals of a function are about other numbers than that of one effect: their errors are compared.
    by = "rmse" if kept["cell"]["way"].startswith("cate") else "length"
    if by == "rmse" and plain["length"] >= 2 * _width(kept["cell"]):
        return None  # a table without a full stratum answers 0, and its interval holds every possible effect
    return by if ours[by] == "none" or ours[by] > LONGEST * plain[by] else None


def _width(cell: dict[str, Any]) -> float:
    shape = ways()[cell["way"]].shapes[cell["shape"]]
    return float(shape.high - shape.low)


def judged(cells: Iterable[Kept]) -> dict[str, int]:
    """Return how many cells are good, refused, without a valid interval, or bad."""
    found: dict[str, int] = defaultdict(int)
    for kept in cells:
        ours = kept["ours"]
        answered = ours["draws"] - ours["refused"]
        found["cells"] += 1
        kind = fault(kept)
        if kind:
            found[kind] += 1
        elif not answered:
            found["refused"] += 1
        elif ours["invalid"] == answered:
            found["no interval"] += 1
        else:
            found["good"] += 1
    return dict(found)


def line(kept: Kept) -> str:
    """Return the row of a cell that is not good."""
    cell, ours, plain = kept["cell"], kept["ours"], kept["plain"]
    shape, design = ways()[cell["way"]].shapes[cell["shape"]].name, DESIGNS[cell["design"]].name
    told = [cell["way"], f"{shape}, {design}", f"{cell['rows']:,}", cell["epsilon"], cell["delta"]]
    told += [f"{ours['coverage']:.2f} of {ours['draws']}", _beside(ours["length"], kept["free"]["length"])]
    return "| " + " | ".join([*told, _beside(ours["length"], plain["length"]), str(fault(kept))]) + " |"


def _beside(length: float | str | None, other: float | str | None) -> str:
    if isinstance(length, float) and isinstance(other, float) and other:
        return f"{length / other:.2g}"
    return ""


HEAD = (
    "| question | outcome, design | rows | ε | δ | coverage, replications "
    "| length / no privacy | length / plainest | fault |\n" + "|---" * 9 + "|"
)
KINDS = ("cells", "good", "refused", "no interval", "misses", "length", "rmse")


def page(cells: list[Kept]) -> str:
    """Return the judgement of all cells by level, and the cells that are not good."""
    by_level: dict[str, list[Kept]] = defaultdict(list)
    for kept in cells:
        by_level[kept["cell"]["way"].rpartition(", ")[2]].append(kept)
    parts = ["| level | " + " | ".join(KINDS) + " |\n" + "|---" * (len(KINDS) + 1) + "|"]
    for level, own in [*sorted(by_level.items()), ("all", cells)]:
        found = judged(own)
        parts.append(f"| {level} | " + " | ".join(str(found.get(kind, 0)) for kind in KINDS) + " |")
    bad = sorted((kept for kept in cells if fault(kept)), key=lambda kept: kept["cell"]["way"])
    return "\n".join([*parts, "", HEAD, *(line(kept) for kept in bad), ""])
