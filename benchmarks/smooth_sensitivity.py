"""Smooth bounds of the stratified effect for many distinct strata, beside a sort of their counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from counterveil.published.strata_sensitivity import (
    StratumCounts,
    smooth_change,
    smooth_variance_change,
    smooth_weight,
)

TITLE = "CPU seconds for 1e6 strata with different counts (aim for the effect: 2)"
SIDE = 1000
SMOOTHNESS = Fraction(1, 10)


def counts(side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of both arms: every pair of numbers up to `side` once, a billion rows for 1000."""
    treated, control = np.divmod(np.arange(side * side, dtype=np.int64), side)
    return treated + 1, control + 1


def run() -> list[dict[str, str]]:
    treated, control = counts(SIDE)
    found = StratumCounts.of(treated, control, SIDE * SIDE)
    key = treated * 2**31 + control
    jobs: dict[str, Callable[[], object]] = {
        "np.sort of the counts": lambda: np.sort(key),
        "distinct counts": lambda: StratumCounts.of(treated, control, SIDE * SIDE),
        "smooth bound of the effect": lambda: smooth_change(found, SMOOTHNESS, "ATE", "all"),
        "smooth bound of the weights": lambda: smooth_weight(found, SMOOTHNESS, "ATE"),
        "smooth bound of the variance": lambda: smooth_variance_change(found, SMOOTHNESS),
    }
    seconds = {}
    for name, job in jobs.items():
        start = time.process_time()
        job()
        seconds[name] = time.process_time() - start
    bare = seconds["np.sort of the counts"]
    return [
        {
            "job": name,
            "distinct pairs": str(len(found.treated)),
            "rows": f"{found.rows:.1e}",
            "CPU s": f"{value:.2f}",
            "ratio to a sort": f"{value / bare:.1f}",
        }
        for name, value in seconds.items()
    ]
