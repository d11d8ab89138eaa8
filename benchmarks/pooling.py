"""The subset of least variance among many sites, and whole answers from a few."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import counterveil as cv
from counterveil.inference.site_weights import best_subset

TITLE = "Pooling sites, CPU time in milliseconds: the aim is 200 for the subset among 100,000"
REPEATS = 5
SITES = (100, 10_000, 100_000)
STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial()
)


def milliseconds(call: Callable[[], object]) -> float:
    """Return the median CPU time of a call."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times))


def run() -> list[dict[str, str]]:
    rng = np.random.default_rng(1)
    rows = []
    for count in SITES:
        sizes, variances = rng.uniform(10, 1000, count), rng.exponential(1, count)
        spent = milliseconds(lambda sizes=sizes, variances=variances: best_subset(sizes, variances))
        rows.append({"task": "subset of least variance (MVAgg)", "sites": str(count), "ms": f"{spent:.2f}"})
    for count in (4, 12):
        results = [
            cv.ate(
                {"t": np.arange(500) % 2, "y": rng.random(500)},
                STUDY,
                protects="outcome",
                epsilon=1 + place / 7,
                noise=cv.SeededNoise(place),
            )
            for place in range(count)
        ]
        spent = milliseconds(lambda results=results: cv.pool(results).interval())
        rows.append({"task": "cv.pool and its interval", "sites": str(count), "ms": f"{spent:.2f}"})
    return rows
