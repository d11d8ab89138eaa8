"""How far a call walks through the package: files and functions that it enters, and how often the file changes.

    python -m tools.walk            # five questions
    python -m tools.walk survival   # those whose names hold the word

Counted are functions of `counterveil` that are entered, once each, the files that they stand in, and the changes from
one file to another along all entries. Each question is asked once before it is counted, so that imports and caches of
modules are not. Comprehensions and lambdas count as what they stand in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import counterveil as cv

PACKAGE = str(Path(cv.__file__).resolve().parent)
ROWS = 1000
_INSIDE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


@dataclass(frozen=True)
class Walk:
    """What one call entered."""

    files: int
    functions: int
    changes: int


def walked(call: Callable[[], object]) -> Walk:
    """Return the walk of a call."""
    functions: set[CodeType] = set()
    files: set[str] = set()
    changes = 0
    last = ""

    def entered(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
        nonlocal changes, last
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name in _INSIDE:
            return
        functions.add(code)
        files.add(code.co_filename)
        changes += code.co_filename != last
        last = code.co_filename

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(len(files), len(functions), changes)


def questions() -> dict[str, Callable[[], object]]:
    """Return the questions that are walked, by name."""
    people = cv.datasets.synth(seed=1, n=ROWS, covariates=4)
    outcome = {"protects": "outcome", "epsilon": 1, "noise": cv.SeededNoise(1)}
    record = {"protects": "record", "epsilon": 8, "noise": cv.SeededNoise(1)}
    pair = {"protects": "treatment and outcome", "epsilon": 8, "noise": cv.SeededNoise(1)}
    frame, study = people.frame, people.study
    times = _times()
    return {
        "ate(weighting)": lambda: cv.ate(frame, study, method="weighting", **outcome),
        "ate(doubly_robust), records": lambda: cv.ate(frame, study, method="doubly_robust", **record),
        "ate(doubly_robust), pairs": lambda: cv.ate(frame, study, method="doubly_robust", **pair),
        "cate": lambda: cv.cate(frame, study, **record),
        "survival": lambda: cv.survival(*times, **record),
    }


def _times() -> tuple[dict[str, np.ndarray], cv.Study]:
    """Return a trial with times until an event."""
    draw = np.random.default_rng(1)
    days = draw.exponential(300, ROWS)
    columns = {
        "arm": np.arange(ROWS) % 2,
        "days": np.minimum(days, 365),
        "died": (days < 365).astype(int),
    }
    return columns, cv.Study("arm", cv.TimeToEvent("days", "died", horizon=365), assignment=cv.Trial())


def main(arguments: list[str]) -> int:
    """Print a table of walks."""
    print(f"{'call':30}{'files':>8}{'functions':>12}{'changes of file':>18}")
    for name, call in questions().items():
        if any(word in name for word in arguments or [""]):
            call()
            walk = walked(call)
            print(f"{name:30}{walk.files:8}{walk.functions:12}{walk.changes:18}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
