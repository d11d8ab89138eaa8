"""Estimates on the sizes that are common in practice: CPU after imports and compilation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

import counterveil as cv
from counterveil.datasets import Dataset, acic2016, ihdp, lalonde, synth

TITLE = "CPU milliseconds of one outcome-private estimate (aim: 30); real data where COUNTERVEIL_DATA is set"
REPEATS = 9


def data() -> list[Dataset]:
    """Return the data sets that are at hand."""
    real = [ihdp(1), acic2016(1)] if os.environ.get("COUNTERVEIL_DATA") else []
    return [lalonde(), synth(0), *real]


def milliseconds(ask: Callable[..., object], dataset: Dataset, **arguments: str) -> float:
    """Return the median over calls with different epsilons, so that nothing is reused."""
    times = []
    for i in range(REPEATS):
        start = time.process_time()
        ask(dataset.frame, dataset.study, epsilon=1 + i / 1000, **arguments)
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times[1:]))


def run() -> list[dict[str, str]]:
    rows = []
    for dataset in data():
        found = {
            "matching": milliseconds(cv.ate, dataset, protects="outcome", method="matching"),
            "matching, published form": milliseconds(
                cv.published.outcome_matching, dataset, accept="unproved"
            ),
            "weighting": milliseconds(cv.ate, dataset, protects="outcome", method="weighting"),
        }
        size = f"{len(next(iter(dataset.frame.values())))} x {len(dataset.study.covariates)}"
        rows.append({"data": dataset.name, "size": size} | {name: f"{ms:.0f}" for name, ms in found.items()})
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
