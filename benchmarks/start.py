"""What a user waits for: imports, the command's help, and one small estimate."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

TITLE = "CPU seconds of starting and of one estimate on 1,000 rows (aims: .5, .6 and .05)"
REPEATS = 5


def child_cpu(words: list[str]) -> float:
    """Least CPU seconds of a child process over a few runs."""
    best = float("inf")
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def estimate_cpu(unit: str, epsilon: float, delta: float) -> tuple[float, float]:
    """CPU seconds of the first estimate after imports, and the median of later ones, none of them cached."""
    import counterveil as cv
    import counterveil.questions.session  # the imports are not what is measured here

    rng = np.random.default_rng(0)
    study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
    times = []
    for _ in range(21):
        # Another epsilon every time, so that nothing computed for an earlier one is reused.
        epsilon += 0.001
        trial = {"t": rng.permutation(np.tile([0, 1], 500)), "y": rng.random(1000)}
        start = time.process_time()
        cv.ate(trial, study, protects=unit, epsilon=epsilon, delta=delta)
        times.append(time.process_time() - start)
    return times[0], float(np.median(times[1:]))


def run() -> list[dict[str, str]]:
    bare = child_cpu(["-c", "pass"])
    numpy = child_cpu(["-c", "import numpy"])
    rows = []

    def add(what: str, seconds: float, aim: float) -> None:
        rows.append(
            {
                "what": what,
                "CPU s": f"{seconds:.3f}",
                "aim": f"{aim:g}" if aim < float("inf") else "-",
                "over bare python": f"{seconds / bare:.1f}",
                "over import numpy": f"{seconds / numpy:.1f}",
            }
        )

    add("python", bare, float("inf"))
    add("import numpy", numpy, float("inf"))
    add("import counterveil", child_cpu(["-c", "import counterveil"]), 0.5)
    add("import counterveil, every public name", child_cpu(["-c", "from counterveil import *"]), float("inf"))
    add("counterveil --help", child_cpu(["-m", "counterveil", "--help"]), 0.6)
    for unit in ("outcome", "record"):
        for epsilon, delta in ((1.0, 0.0), (1.0, 1e-6)):
            first, later = estimate_cpu(unit, epsilon, delta)
            name = f"estimate, protects={unit}, delta={delta:g}"
            add(f"{name}, first", first, 0.05)
            add(f"{name}, later", later, 0.05)
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
