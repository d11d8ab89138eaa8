"""A whole estimate with private outcomes beside a plain, non-private matching with scikit-learn.

`python -m benchmarks.outcome_estimate --full` goes up to 1e7 rows. Each job has a process of its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np

import counterveil as cv

TITLE = (
    "Whole outcome-private estimate, 20 covariates, beside scikit-learn (logistic fit + k-d tree, no privacy)"
)
SIZES = (100_000, 1_000_000)
LARGEST = 10_000_000
COLUMNS = 20
DATA_BYTES = 8 * (COLUMNS + 2)
PEER = "scikit-learn"


def population(n: int) -> tuple[dict[str, np.ndarray], cv.Study]:
    """Return confounded data and their study."""
    rng = np.random.default_rng(n)
    X = rng.random((n, COLUMNS))
    chance = 1 / (1 + np.exp(-(X - 0.5) @ rng.uniform(-1, 1, COLUMNS)))
    treated = rng.random(n) < chance
    y = X @ rng.uniform(0, 0.05, COLUMNS) + 0.1 * treated + rng.normal(0, 0.05, n)
    names = [f"x{j}" for j in range(COLUMNS)]
    frame = {"t": treated.astype(np.int64), "y": y} | {name: X[:, j] for j, name in enumerate(names)}
    ranges = {name: cv.Range(0, 1) for name in names}
    return frame, cv.Study(
        treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), covariates=ranges
    )


def peer(frame: dict[str, np.ndarray]) -> None:
    """Match five neighbours both ways on a fitted score; no limit, no noise, no interval."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KDTree

    X = np.column_stack([frame[f"x{j}"] for j in range(COLUMNS)])
    treated = frame["t"] == 1
    score = LogisticRegression().fit(X, treated).predict_proba(X)[:, 1][:, None]
    for units, donors in ((treated, ~treated), (~treated, treated)):
        KDTree(score[donors]).query(score[units], k=5)


def job(method: str, n: int) -> dict[str, float]:
    """Return CPU seconds of one estimate, or of the peer, and the process's peak bytes beside what it began with."""
    small, declared = population(2000)

    def estimate(frame: dict[str, np.ndarray], study: cv.Study) -> None:
        if method == PEER:
            peer(frame)
        else:
            cv.ate(frame, study, protects="outcome", epsilon=1, method=method)

    estimate(small, declared)  # compile and import before anything is measured
    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    frame, study = population(n)
    start = time.process_time()
    estimate(frame, study)
    took = time.process_time() - start
    return {"cpu": took, "bytes": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began)}


def elsewhere(method: str, n: int) -> dict[str, float]:
    """Return what a job found in a process of its own: its peak memory is then its own as well."""
    command = [sys.executable, "-m", "benchmarks.outcome_estimate", method, str(n)]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def run(sizes: tuple[int, ...] = SIZES) -> list[dict[str, str]]:
    rows = []
    before: dict[str, float] = {}
    for n in sizes:
        beside = elsewhere(PEER, n)["cpu"] if find_spec("sklearn") and n <= max(SIZES) else None
        for method in ("matching", "weighting"):
            found = elsewhere(method, n)
            took = found["cpu"]
            rows.append(
                {
                    "rows": f"{n:.0e}",
                    "method": method,
                    "CPU s": f"{took:.2f}",
                    "scikit-learn CPU s": f"{beside:.2f}" if beside else "not run",
                    "ratio": f"{took / beside:.2f}" if beside else "-",
                    "growth": f"{took / before[method]:.1f}" if method in before else "-",
                    "peak bytes a row": f"{found['bytes'] / n:.0f}",
                    "of these data": f"{DATA_BYTES}",
                }
            )
            before[method] = took
    return rows


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(job(sys.argv[1], int(sys.argv[2]))))
    else:
        for row in run((*SIZES, LARGEST) if "--full" in sys.argv else SIZES):
            print(row)
