"""Estimates on the sizes that are common in practice: CPU after imports and compilation."""

from __future__ import annotations

import os
import time

import numpy as np

import counterveil as cv
from counterveil.datasets import Dataset, acic2016, ihdp, lalonde, synth

TITLE = "CPU milliseconds of one outcome-private estimate (aim: 30); real data where COUNTERVEIL_DATA is set"
REPEATS = 9


def data() -> list[Dataset]:
    """Return the data sets that are at hand."""
    real = [ihdp(1), acic2016(1)] if os.environ.get("COUNTERVEIL_DATA") else []
    return [lalonde(), synth(0), *real]


def milliseconds(dataset: Dataset, method: str, variant: str | None) -> float:
    """Return the median over calls with different epsilons, so that nothing is reused."""
    times = []
    for i in range(REPEATS):
        start = time.process_time()
        cv.ate(
            dataset.frame,
            dataset.study,
            protects="outcome",
            epsilon=1 + i / 1000,
            method=method,
            variant=variant,
            accept="unproved",
        )
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times[1:]))


def run() -> list[dict[str, str]]:
    rows = []
    for dataset in data():
        found = {
            "matching": milliseconds(dataset, "matching", None),
            "matching, published form": milliseconds(dataset, "matching", "paper"),
            "weighting": milliseconds(dataset, "weighting", None),
        }
        size = f"{len(next(iter(dataset.frame.values())))} x {len(dataset.study.covariates)}"
        rows.append({"data": dataset.name, "size": size} | {name: f"{ms:.0f}" for name, ms in found.items()})
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
