"""Coverage of slopes over ordered arms: trials, and weighted studies whose dose follows covariates."""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

DOSES = [0, 5, 10, 20]
# Name, rows, shares of the doses, whether the dose follows a covariate, method.
DESIGNS = (
    ("trial", 1000, (0.25, 0.25, 0.25, 0.25), False, "difference_in_means"),
    ("dose follows x", 2000, (0.25, 0.25, 0.25, 0.25), True, "weighting"),
    ("2% at the highest dose, skewed", 1000, (0.6, 0.3, 0.08, 0.02), False, "difference_in_means"),
)
SLOPE = 0.004


def one(design: tuple[Any, ...], seed: int) -> tuple[float, float, float, float]:
    """Return whether the slope and zero (where there is no slope) are covered, and the length beside least squares."""
    name, rows, shares, follows, method = design
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows).clip(-3, 3)
    ranks = rng.normal(size=rows) + (0.7 * x if follows else 0)
    cuts = np.quantile(ranks, np.cumsum(shares)[:-1])
    dose = np.array(DOSES)[np.searchsorted(cuts, ranks)]
    errors = rng.exponential(0.1, rows) - 0.1 if "skewed" in name else rng.normal(0, 0.1, rows)
    study = cv.Study(
        cv.Treatment("dose", arms=DOSES, reference=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(-3, 3)} if follows else {},
        assignment=cv.Trial() if not follows else cv.Observational(),
    )
    found = []
    for slope in (SLOPE, 0.0):
        y = np.clip(0.4 + slope * dose + (0.03 * x if follows else 0) + errors, 0, 1)
        data = {"dose": dose, "x": x, "y": y}
        noise = cv.SeededNoise(2 * seed + (slope > 0))
        answer = cv.arms(data, study, protects="outcome", epsilon=1, method=method, noise=noise).slope()
        low, high = answer.interval()
        own = np.column_stack((dose, np.ones(rows), x)) if follows else np.column_stack((dose, np.ones(rows)))
        left = y - own @ np.linalg.lstsq(own, y, rcond=None)[0]
        plain = np.sqrt(left.var() * np.linalg.inv(own.T @ own)[0, 0])
        found += [low <= slope <= high, (high - low) / 2 / (1.96 * plain)]
    return found[0], found[2], found[1], found[3]


def row(design: tuple[Any, ...], *, seeds: range) -> Row:
    """Return the row of a design."""
    hits, zeros, lengths, _ = np.mean([one(design, seed) for seed in seeds], axis=0).round(3)
    return [design[0], design[1], design[4], len(seeds), hits, round(1 - zeros, 3), lengths]


TABLE = Table(
    columns="design | n | method | draws | coverage | size | length / OLS",
    cells=[(design,) for design in DESIGNS],
    row=row,
    first_seed=0,
    apart=True,
)
