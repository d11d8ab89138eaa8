"""A whole estimate with private outcomes beside a plain, non-private matching with scikit-learn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import counterveil as cv

TITLE = (
    "Whole outcome-private estimate, 20 covariates, beside scikit-learn (logistic fit + k-d tree, no privacy)"
)
SIZES = (100_000, 1_000_000)
LARGEST = 10_000_000
COLUMNS = 20


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
    return frame, cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates=ranges, control=0)


def peer(frame: dict[str, np.ndarray]) -> None:
    """Match five neighbours both ways on a fitted score; no limit, no noise, no interval."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KDTree

    X = np.column_stack([frame[f"x{j}"] for j in range(COLUMNS)])
    treated = frame["t"] == 1
    score = LogisticRegression().fit(X, treated).predict_proba(X)[:, 1][:, None]
    for units, donors in ((treated, ~treated), (~treated, treated)):
        KDTree(score[donors]).query(score[units], k=5)


def cpu(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def run(sizes: tuple[int, ...] = SIZES) -> list[dict[str, str]]:
    small, declared = population(2000)
    for method in ("matching", "weighting"):  # compile and import before anything is measured
        cv.ate(small, declared, protects="outcome", epsilon=1, method=method)
    rows = []
    before: dict[str, float] = {}
    for n in sizes:
        frame, study = population(n)
        beside = cpu(lambda data=frame: peer(data)) if find_spec("sklearn") and n <= max(SIZES) else None
        for method in ("matching", "weighting"):
            took = cpu(
                lambda data=frame, to=study, by=method: cv.ate(
                    data, to, protects="outcome", epsilon=1, method=by
                )
            )
            rows.append(
                {
                    "rows": f"{n:.0e}",
                    "method": method,
                    "CPU s": f"{took:.2f}",
                    "scikit-learn CPU s": f"{beside:.2f}" if beside else "not run",
                    "ratio": f"{took / beside:.2f}" if beside else "-",
                    "growth": f"{took / before[method]:.1f}" if method in before else "-",
                }
            )
            before[method] = took
    return rows


if __name__ == "__main__":
    chosen = (*SIZES, LARGEST) if "--full" in sys.argv else SIZES
    for row in run(chosen):
        print(row)
