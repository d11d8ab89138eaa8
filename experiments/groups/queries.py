"""Errors of effects at a finite set of queries: bins, folds, and the function read off at them."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.datasets.dataset import dataset_1, effect_1

METHODS = ("auto", "bins", "sample_and_aggregate")
_QUERIES = 200


def queries(rows: int, epsilon: str, draws: int, first_seed: int) -> list[str]:
    """Return one line a method: root mean squared error, coverage and width of intervals at random queries."""
    generator = np.random.default_rng(0)
    people = {name: generator.random(_QUERIES) for name in ("x1", "x2")}
    truth = effect_1(people)
    lines = []
    for method in METHODS:
        errors, covered, widths = [], [], []
        for seed in range(first_seed, first_seed + draws):
            data = dataset_1(rows, seed)
            found = cv.cate(
                data.frame,
                data.study,
                epsilon=epsilon,
                method=method,
                queries=people,
                noise=cv.SeededNoise(seed),
            )
            low, high = found.interval()
            errors.append(np.sqrt(np.mean((found.effect() - truth) ** 2)))
            covered.append(np.mean((low <= truth) & (truth <= high)))
            widths.append(np.mean(high - low))
        lines.append(
            f"| Dataset 1, n={rows:,}, eps {epsilon} | {method} | {np.mean(errors):.2f} | {np.mean(covered):.2f} | "
            f"{np.mean(widths):.2f} |"
        )
    return lines
