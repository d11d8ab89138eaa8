"""CPU seconds and peak memory of every method, each in a fresh process on the same data."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.accuracy.designs import DATA
from benchmarks.accuracy.entries import DELTA
from counterveil.reproduce.rivals.catalogue import RIVALS
from counterveil.reproduce.rivals.environment import unavailable
from counterveil.reproduce.rivals.measuring import measured
from counterveil.reproduce.rivals.protocol import Budget

# Few enough columns for synthesisers, a trial's size.
MEASURED_ON = "NHEFS"


def measured_all() -> dict[str, dict[str, Any]]:
    """Return seconds, peak megabytes and refusals by method; those without their packages say so."""
    records, _ = DATA[MEASURED_ON].drawn(0)
    found: dict[str, dict[str, Any]] = {}
    for name, rival in RIVALS.items():
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
