"""The frozen league in `league.json`, and what a later run finds beside it: with the same seeds, the same numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from benchmarks.accuracy.standing import Cell, Cells
from counterveil_lab.reproduce.rivals.catalogue import RIVALS

PATH = Path(__file__).with_name("league.json")
# Digits that are kept: the last ones differ between machines.
_DIGITS = 5
# Numbers that are compared; seconds are kept for the page and depend on the machine.
COMPARED = ("rmse", "relative", "coverage", "width")

Kept = dict[str, dict[str, dict[str, Any]]]


def _number(value: float) -> float | None:
    return None if isnan(value) else float(f"{value:.{_DIGITS}g}")


def facts(cell: Cell) -> dict[str, Any]:
    """Return what is kept of a cell."""
    figures = {name: _number(getattr(cell, name)) for name in (*COMPARED, "seconds")}
    return {"draws": cell.draws, **figures, **({"refusal": cell.refusal} if cell.refusal else {})}


def tabulated(found: Cells) -> Kept:
    """Return all cells as they are kept."""
    return {
        " / ".join(key): {method: facts(one) for method, one in found[key].items()} for key in sorted(found)
    }


def read(path: Path = PATH) -> Kept:
    """Return the frozen cells; none if nothing was frozen."""
    return dict(_whole(path).get("cells", {}))


def costs(path: Path = PATH) -> dict[str, dict[str, Any]]:
    """Return the frozen time and memory."""
    return dict(_whole(path).get("costs", {}))


def rejected(path: Path = PATH) -> list[dict[str, Any]]:
    """Return the frozen shares of rejections."""
    return list(_whole(path).get("tests", []))


def verdicts(path: Path = PATH) -> dict[str, str]:
    """Return the frozen verdicts."""
    return dict(_whole(path).get("verdicts", {}))


def _whole(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(found: Cells, beside: dict[str, Any], path: Path = PATH) -> None:
    """Keep a league, one line for each method of a cell, and what stands beside it: verdicts, costs, tests."""
    blocks = []
    for key, methods in tabulated(found).items():
        lines = [f"      {json.dumps(name)}: {json.dumps(one)}" for name, one in methods.items()]
        blocks.append(f"    {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n    }")
    rest = [f'  "{name}": {json.dumps(value, indent=2)}' for name, value in beside.items()]
    path.write_text("{\n" + ",\n".join(['  "cells": {\n' + ",\n".join(blocks) + "\n  }", *rest]) + "\n}\n")


@dataclass(frozen=True)
class Moved:
    """A number that is another now, or an answer that is there in one of the two alone."""

    cell: str
    method: str
    what: str

    def __str__(self) -> str:
        return f"{self.cell}, {self.method}: {self.what}"


def moved(before: Kept, now: Cells) -> list[Moved]:
    """Return what moved; cells with other numbers of draws are not comparable and say so.

    Methods that draw from the system are left out: no seed makes their numbers equal.
    """
    found = []
    after = tabulated(now)
    for cell in sorted(set(before) | set(after)):
        for method in sorted(set(before.get(cell, {})) | set(after.get(cell, {}))):
            old, new = before.get(cell, {}).get(method), after.get(cell, {}).get(method)
            if old is None or new is None:
                found.append(Moved(cell, method, "only frozen" if new is None else "only in this run"))
            elif not RIVALS[method].seeded:
                continue
            elif old["draws"] != new["draws"]:
                found.append(Moved(cell, method, f"{old['draws']} draws frozen, {new['draws']} now"))
            else:
                found += [
                    Moved(cell, method, f"{name} {old[name]} frozen, {new[name]} now")
                    for name in COMPARED
                    if old[name] != new[name]
                ]
    return found


def shown(moves: list[Moved]) -> str:
    """Return the comparison as text."""
    if not moves:
        return "nothing moved since the frozen league"
    return "\n".join([f"{len(moves)} numbers moved since the frozen league", *(f"  {one}" for one in moves)])
