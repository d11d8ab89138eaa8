"""Answers of the methods on one simulated study, through the library's front door."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import counterveil as cv
from counterveil_lab.reproduce.rivals.ours import KAPPA
from experiments.record_effect.designs import instance

DELTA = "1e-6"


@dataclass(frozen=True)
class Draw:
    error: float
    half: float
    adjusted: bool
    truth: float


def draw(kind: str, seed: int, n: int, method: str, epsilon: str, d: int = 20, wide: bool = False) -> Draw:
    """Return one answer; `method` holds "pure" for delta = 0."""
    study = instance(kind, seed, n, d, wide)
    if method.startswith("OLS"):
        estimate, error = study.ols
        return Draw(estimate - study.truth, 1.96 * error, True, study.truth)
    if method == "zero":
        return Draw(-study.truth, 0.0, False, study.truth)
    robust = method.startswith("doubly robust")
    adjusting = cv.settings.DoublyRobust(kappa=KAPPA)
    result = cv.ate(
        study.table,
        study.table.study,
        protects="record",
        epsilon=epsilon,
        delta=0 if "pure" in method else DELTA,
        method="doubly_robust" if robust else "trial",
        estimand="ATO" if robust else "ATE",
        settings=adjusting if robust else cv.settings.Trial("none", "pooled"),
        noise=cv.SeededNoise(seed),
    )
    low, high = result.untruncated_interval()
    return Draw(
        result.estimate - study.truth,
        (high - low) / 2,
        bool(result.details.get("adjusted", False)),
        study.truth,
    )


@dataclass(frozen=True)
class Cell:
    coverage: float
    rmse: float
    width: float
    unadjusted: float

    def __str__(self) -> str:
        text = f"{self.coverage:.2f} / {self.rmse:.3g} / {self.width:.3g}"
        return text + (f" ({self.unadjusted:.2f})" if self.unadjusted else "")


def cell(kind: str, seeds: range, n: int, method: str, epsilon: str, d: int = 20, wide: bool = False) -> Cell:
    """Return coverage, root mean square error, median width and share not adjusted over fresh studies."""
    found = [draw(kind, seed, n, method, epsilon, d, wide) for seed in seeds]
    error = np.array([one.error for one in found])
    half = np.array([one.half for one in found])
    return Cell(
        float((np.abs(error) <= half).mean()),
        float(np.sqrt((error**2).mean())),
        float(2 * np.median(half)),
        float(np.mean([not one.adjusted for one in found])) if method.startswith("doubly") else 0.0,
    )
