"""CPU seconds and peak memory of every method, each in a fresh process on the same data."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import DELTA
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Budget
from counterveil_lab.reproduce.rivals.environment import unavailable
from counterveil_lab.reproduce.rivals.measuring import measured

# Few enough rows and columns for synthesisers.
MEASURED_ON = "LaLonde"


def measured_all(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return seconds, peak megabytes and refusals of methods, all if none is named; absent packages are said."""
    records, _ = DATA[MEASURED_ON].drawn(0)
    found: dict[str, dict[str, Any]] = {}
    for name in names or RIVALS:
        rival = RIVALS[name]
        absent = unavailable(rival)
        if absent:
            found[name] = {"refused": absent}
            continue
        delta = 0.0 if rival.delta == "none" or rival.protects == "outcome" else DELTA
        one = measured(rival, records, Budget(1.0, delta), 1)
        found[name] = {
            "seconds": float(f"{one.seconds:.3g}"),
            "peak": round(one.peak),
            "refused": one.refused,
        }
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    return found
