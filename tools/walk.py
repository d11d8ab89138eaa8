"""How far a call walks through the package: files and functions that it enters, and how often the file changes.

    python -m tools.walk            # five questions
    python -m tools.walk survival   # those whose names hold the word
    python -m tools.walk --where    # besides: functions by folder, and from which function to which the file changes

Counted are functions of `counterveil` that are entered, once each, the files that they stand in, and the changes from
one file to another along all entries. Each question is asked once before it is counted, so that imports and caches of
modules are not. Comprehensions and lambdas count as what they stand in.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

import counterveil as cv

PACKAGE = str(Path(cv.__file__).resolve().parent)
ROWS = 1000
_MOST_CHANGES = 40  # that are listed
_INSIDE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


# A file below the package and a function of it.
Place = tuple[str, str]


@dataclass(frozen=True)
class Walk:
    """What one call entered: functions by their entries, and changes of file by the functions on both sides."""

    functions: Counter[Place]
    changes: Counter[tuple[Place, Place]]

    @property
    def files(self) -> int:
        """How many files were entered."""
        return len({file for file, _ in self.functions})

    @property
    def folders(self) -> Counter[str]:
        """How many functions were entered in each folder."""
        return Counter(str(Path(file).parent) for file, _ in self.functions)


def walked(call: Callable[[], object]) -> Walk:
    """Return the walk of a call."""
    functions: Counter[Place] = Counter()
    changes: Counter[tuple[Place, Place]] = Counter()
    last = ("", "")

    def entered(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
        nonlocal last
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_name in _INSIDE:
            return
        place = (code.co_filename[len(PACKAGE) + 1 :], code.co_qualname)
        functions[place] += 1
        if place[0] != last[0]:
            changes[last, place] += 1
        last = place

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(functions, changes)


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


def _print_places(walk: Walk) -> None:
    """Print functions by folder, and the changes of file that come most often."""
    for folder, functions in walk.folders.most_common():
        print(f"{functions:8} functions in {folder}")
    for (before, after), times in walk.changes.most_common(_MOST_CHANGES):
        print(f"{times:8} times from {' '.join(before)} to {' '.join(after)}")


def main(arguments: list[str]) -> int:
    """Print a table of walks."""
    words = [word for word in arguments if word != "--where"]
    print(f"{'call':30}{'files':>8}{'functions':>12}{'changes of file':>18}")
    for name, call in questions().items():
        if any(word in name for word in words or [""]):
            call()
            walk = walked(call)
            print(f"{name:30}{walk.files:8}{len(walk.functions):12}{walk.changes.total():18}")
            if "--where" in arguments:
                _print_places(walk)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
