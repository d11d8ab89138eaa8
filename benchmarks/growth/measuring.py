"""One measurement, in a process of its own: `python -m benchmarks.growth.measuring NAME ROWS` prints it as JSON.

The same question is first asked of few people, so that libraries are loaded before the clock runs.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .questions import ASKED

# People whom the first, unmeasured call is about: enough for every form to be affordable.
WARM_ROWS = 20_000
# The clock runs again while all calls together took less than this, and the least of them counts: the first call
# takes pages from the system that later ones find there, at 1e6 rows as at 1e5.
ENOUGH_SECONDS, MOST_CALLS = 2.5, 2
_PASSES = 9
PEER = "DoubleML IRM"
FOLDS = 5


def columns_pass(frame: dict[str, np.ndarray]) -> float:
    """Return the CPU seconds of adding up every column of a frame, the median of some passes."""
    found = []
    for _ in range(_PASSES):
        start = time.process_time()
        for column in frame.values():
            column.sum()
        found.append(time.process_time() - start)
    return float(np.median(found))


def held(frame: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the yardsticks of a frame: CPU seconds of one pass over it, and its bytes."""
    return {"bare": columns_pass(frame), "data": sum(column.nbytes for column in frame.values())}


def resident(what: str) -> int:
    """Return bytes of this process's memory as Linux counts it: "VmRSS" now, "VmHWM" at the peak."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def forget_peak() -> None:
    """Make the peak start again from what is held now, after giving back what is free."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
    if trim is not None:
        trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measured(ask: Callable[[], object]) -> dict[str, float]:
    """Return the CPU seconds of a call over all threads, and the memory that it took at its peak."""
    forget_peak()
    before, found = resident("VmRSS"), list[float]()
    while len(found) < MOST_CALLS and sum(found) < ENOUGH_SECONDS:
        start = time.process_time()
        ask()
        found.append(time.process_time() - start)
    return {
        "cpu": min(found),
        "bytes": max(resident("VmHWM") - before, 0),
    }


def question(name: str, rows: int) -> dict[str, float]:
    """Return the measurement of one entry of the list."""
    from .data import arguments, people

    asked = ASKED[name]
    words, front_door = arguments(asked), asked.function
    front_door(*people(asked.kind, WARM_ROWS), **words)
    frame, study = people(asked.kind, rows)
    return held(frame) | measured(lambda: front_door(frame, study, **words))


def peer(rows: int) -> dict[str, float]:
    """Return the measurement of DoubleML's interactive regression model, with linear and logistic learners."""
    import doubleml
    from sklearn.linear_model import LinearRegression, LogisticRegression

    from .data import people

    def ask(frame: dict[str, np.ndarray]) -> None:
        names = [name for name in frame if name not in ("treated", "y")]
        x = np.column_stack([frame[name] for name in names])
        data = doubleml.DoubleMLData.from_arrays(x, frame["y"], frame["treated"].astype(float))
        model = doubleml.DoubleMLIRM(data, LinearRegression(), LogisticRegression(), n_folds=FOLDS)
        model.fit()
        model.confint()

    ask(people("cohort", WARM_ROWS)[0])
    frame, _ = people("cohort", rows)
    return held(frame) | measured(lambda: ask(frame))


if __name__ == "__main__":
    name, rows = sys.argv[1], int(sys.argv[2])
    print(json.dumps(peer(rows) if name == PEER else question(name, rows)))
