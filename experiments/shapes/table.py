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
    """Return a row of the table."""
    cell, ours, free, plain = kept["cell"], kept["ours"], kept["free"], kept["plain"]
    way = ways()[cell["way"]]
    told = [way.shapes[cell["shape"]].name, DESIGNS[cell["design"]].name, f"{cell['rows']:,}"]
    told += [cell["epsilon"], cell["delta"], str(ours["draws"])]
    answered = ours["draws"] - ours["refused"]
    if not answered:
        told += [f"refused, {', '.join(kept['codes'])}", "", ""]
    elif ours["invalid"] == answered:
        told += ["no valid interval", _figure(ours["rmse"]), ""]
    else:
        told += [_share(ours["coverage"]), _figure(ours["rmse"]), _figure(ours["length"])]
    for other in (free, plain):
        told += [_share(other["coverage"]), _figure(other["rmse"]), _figure(other["length"])]
    return "| " + " | ".join([*told, _figure(kept["zero"]), fault(kept) or ""]) + " |"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _figure(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.2g}"


HEAD = (
    "| outcome | design | rows | epsilon | delta | draws | covers | RMSE | length "
    "| no privacy: covers | RMSE | length | plainest: covers | RMSE | length | zero: RMSE | |\n"
    + "|---" * 17
    + "|"
)


def page(cells: list[Kept]) -> str:
    """Return the table in Markdown, a section a way."""
    by_way: dict[str, list[Kept]] = defaultdict(list)
    for kept in cells:
        by_way[kept["cell"]["way"]].append(kept)
    total = judged(cells)
    told = ", ".join(f"{kind} {number}" for kind, number in total.items())
    parts = [f"Cells by judgement: {told}.\n"]
    for name in ways():
        if name in by_way:
            rows = sorted(by_way[name], key=lambda kept: kept["cell"]["shape"])
            parts.append(f"## {name}\n\n{HEAD}\n" + "\n".join(line(kept) for kept in rows) + "\n")
    return "\n".join(parts)
