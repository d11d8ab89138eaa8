"""Simulated trials at several sites, and how often the pooled interval covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import counterveil as cv
from counterveil.inference.site_weights import POOLING_METHODS

MEAN_EFFECT = 0.1
STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial()
)


@dataclass(frozen=True)
class Cell:
    """Rows and epsilon of every site, who is protected, and how far the sites' effects lie apart."""

    name: str
    rows: tuple[int, ...]
    epsilons: tuple[float, ...]
    unit: str = "outcome"
    delta: float = 0.0
    tau: float = 0.0


@dataclass(frozen=True)
class Coverage:
    """How often the interval covers the weighted average, and the mean of all sites there could be."""

    average: float
    mean: float
    width: float
    error: float  # root mean squared error of the estimate, from the mean effect


def draw(cell: Cell, rng: np.random.Generator) -> tuple[list[cv.results.Result], np.ndarray]:
    """Return one result a site, and the sites' true effects."""
    effects = np.clip(rng.normal(MEAN_EFFECT, cell.tau, len(cell.rows)), 0.0, 0.3)
    results = []
    for rows, epsilon, effect in zip(cell.rows, cell.epsilons, effects, strict=True):
        treated = rng.permutation(rows) % 2
        trial = {"t": treated, "y": 0.7 * rng.beta(1.2, 6.0, rows) + effect * treated}
        noise = cv.SeededNoise(int(rng.integers(2**62)))
        results.append(
            cv.ate(trial, STUDY, protects=cell.unit, epsilon=epsilon, delta=cell.delta, noise=noise)
        )
    return results, effects


def simulate(
    cell: Cell, draws: int, seed: int, methods: tuple[str, ...] = POOLING_METHODS
) -> dict[str, Coverage]:
    """Return coverage and mean width of the 95 % interval of every way of pooling."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[tuple[bool, bool, float, float]]] = {method: [] for method in methods}
    for _ in range(draws):
        results, effects = draw(cell, rng)
        for method in methods:
            pooled = cv.pool(results, method=method)
            low, high = pooled.untruncated_interval()
            average = float(np.dot([site.weight for site in pooled.sites], effects))
            off = pooled.estimate - MEAN_EFFECT
            found[method].append((low <= average <= high, low <= MEAN_EFFECT <= high, high - low, off**2))
    means = {method: np.mean(rows, axis=0) for method, rows in found.items()}
    return {method: Coverage(a, m, w, float(e) ** 0.5) for method, (a, m, w, e) in means.items()}
