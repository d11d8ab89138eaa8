"""Coverage of ratios that are pooled from the arm means of several sites with different risks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

import counterveil as cv
from counterveil.inference.pooled_means import PooledMeans
from counterveil.inference.quotient import RATIO
from counterveil.results import MeasureResult
from experiments.measures.counting import COLUMNS, covered
from experiments.measures.ratios import trial
from experiments.runner import Row, Table

# Rows and risk without treatment of each site.
SITES = {
    "three sites": ((1500, 0.1), (600, 0.05), (300, 0.2)),
    "rare, four sites": ((1000, 0.01),) * 4,
    "one in noise": ((1500, 0.1), (600, 0.05), (40, 0.2)),
}
# The usual way, and all sites.
METHODS = ("mvagg", "all")


def coverage(cell: int, name: str, protects: str, epsilon: float, *, seeds: range) -> list[Row]:
    """Return how often pooled intervals cover, and how long they are, for every way of pooling."""
    sites, first, rows = SITES[name], seeds.start + 10_000 * cell, []
    found = [_asked(sites, protects, epsilon, first + 10 * number) for number in range(len(seeds))]
    for methods, pooled, weights in _ways(found):
        risk = float(np.dot(weights, [chance for _, chance in sites]))
        means = [each.means for each in pooled if isinstance(each.means, PooledMeans)]
        kept = sum(weight > 0 for weight in weights)
        rows.append([name, protects, epsilon, methods, kept, *covered(means, risk).values])
    return rows


TABLE = Table(
    columns=("sites", "protects", "epsilon", "pooled by", "kept", *COLUMNS),
    cells=[(cell, *asked) for cell, asked in enumerate(product(SITES, ("outcome", "record"), (0.5, 2.0)))],
    row=coverage,
    first_seed=300_000,
)


def _ways(found: list[list[cv.Result]]) -> Iterator[tuple[str, list[MeasureResult], tuple[float, ...]]]:
    """Yield results pooled in every way that differs, with its name and its weights."""
    ways: dict[tuple[float, ...], tuple[list[str], list[MeasureResult]]] = {}
    for method in METHODS:
        pooled = [_pooled(results, method) for results in found]
        # Weights are public: they are the same in all draws.
        (weights,) = {_weights(each) for each in pooled}
        ways.setdefault(weights, ([], pooled))[0].append(method)
    for weights, (methods, pooled) in ways.items():
        yield ", ".join(methods), pooled, weights


def _asked(
    sites: tuple[tuple[int, float], ...], protects: str, epsilon: float, first: int
) -> list[cv.Result]:
    study = cv.Study("t", cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    return [
        cv.ate(
            trial(first + place, rows, chance, 0.5),
            study,
            protects=protects,
            epsilon=epsilon,
            measure=RATIO,
            noise=cv.SeededNoise(first + place),
        )
        for place, (rows, chance) in enumerate(sites)
    ]


def _pooled(results: list[cv.Result], method: str) -> MeasureResult:
    found = cv.pool(results, method=method)
    assert isinstance(found, MeasureResult)
    return found


def _weights(found: MeasureResult) -> tuple[float, ...]:
    return tuple(float(value) for name, value in found.details.items() if name.startswith("weight_"))
