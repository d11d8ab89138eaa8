"""What showing many effects costs beside estimating them: ratios of CPU in one process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tools.loose_study import study_of

import counterveil as cv
from counterveil.inference import (
    ball_noise,
    clusters,
    convolution,
    noise_distribution,
    noise_sums,
    noisy_scale,
    variance_inflation,
)

TITLE = "CPU of showing effects as a multiple of estimating them, 5,000 rows; the aim is 2"
ROWS, NAMES = 5_000, ("x1", "x2", "x3", "x4")


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds that a call takes, and what it returns."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def questions() -> dict[str, Callable[[], Any]]:
    """Return 256 groups, 100 outcomes and 50 arms of the same people, at every level that has them."""
    drawn = np.random.default_rng(1)
    frame: dict[str, np.ndarray] = {name: drawn.random(ROWS) for name in NAMES}
    frame |= {"t": drawn.integers(0, 2, ROWS), "arm": drawn.integers(0, 50, ROWS)}
    outcomes = {f"y{place}": (0, 5) for place in range(100)}
    frame |= {name: np.clip(frame["x1"] + drawn.normal(1, 0.5, ROWS), 0, 5) for name in outcomes}
    cuts = {name: cv.Range(0, 1).cut(0.25, 0.5, 0.75) for name in NAMES}
    one: dict[str, Any] = {"outcome_range": (0, 5), "covariates": cuts, "randomised": True}
    two = study_of("t", "y0", **one, control=0, treated_share="1/2")
    many = cv.Study(
        cv.Treatment("t", control=0),
        outcome=cv.Outcomes(outcomes),
        covariates=cuts,
        assignment=cv.Trial(share="1/2"),
    )
    several = study_of("arm", "y0", **one, arms=tuple(range(50)), reference=0)
    asked: dict[str, Callable[[], Any]] = {}
    for level in ("outcome", "record"):
        words: dict[str, Any] = {"protects": level, "epsilon": 8, "noise": cv.SeededNoise(1)}
        asked[f"256 groups, {level}"] = lambda words=words: cv.groups(frame, two, by=NAMES, **words)
        asked[f"100 outcomes, {level}"] = lambda words=words: cv.outcomes(frame, many, **words)
    asked["50 arms, outcome"] = lambda: cv.arms(
        frame, several, protects="outcome", epsilon=8, method="difference_in_means", noise=cv.SeededNoise(1)
    )
    return asked


def _forget() -> None:
    modules = (
        ball_noise,
        clusters,
        convolution,
        noise_distribution,
        noise_sums,
        noisy_scale,
        variance_inflation,
    )
    for one in (value for module in modules for value in vars(module).values()):
        if hasattr(one, "cache_clear"):
            one.cache_clear()
    for memory in (
        convolution._TAILS,
        convolution._HALF_WIDTHS,
        variance_inflation._LIKELY,
        variance_inflation._INFLATIONS,
    ):
        memory.clear()


def ratios() -> dict[str, float]:
    """Return CPU of each way of showing beside estimating, the least of three calls each.

    What was solved for one call is forgotten before the next.
    """
    found = {}
    for name, ask in questions().items():
        ask()
        taken, result = min((cpu(ask) for _ in range(3)), key=lambda one: one[0])
        for way in ("summary", "tidy"):
            shown = []
            for _ in range(3):
                _forget()
                shown.append(cpu(getattr(result, way))[0])
            found[f"{name}, {way}"] = min(shown) / taken
    return found


def run() -> list[dict[str, str]]:
    """Return one row a question and way of showing."""
    return [{"effects": name, "shown / estimated": f"{ratio:.1f}"} for name, ratio in ratios().items()]


if __name__ == "__main__":
    print(json.dumps(ratios()))
