"""Clusters whose people have something in common, with a known effect, and how often intervals cover it."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri
from tools.loose_study import study_of

import counterveil as cv

EFFECT, SD, MIDDLE = 0.05, 0.12, 0.5


@dataclass(frozen=True)
class Cell:
    """One row of the table.

    `design`: "trial" assigns whole clusters to arms at random; "by x" has people choose by a covariate which differs
    between clusters, and "cluster by x" whole clusters by its mean, at least a quarter of them in each arm. `icc` is
    the correlation of outcomes within a cluster that covariates leave.
    """

    design: str
    clusters: int
    size: int
    unequal: bool
    icc: float
    method: str
    protects: str
    epsilon: float
    whole: bool = False


@dataclass(frozen=True)
class Found:
    """How often intervals covered, and their mean width: by cluster, and as if rows were independent."""

    covered: float
    width: float
    covered_by_row: float
    width_by_row: float
    error: float


def people(cell: Cell, rng: np.random.Generator) -> dict[str, Any]:
    """Return one data set."""
    g = cell.clusters
    places = ndtri((rng.permutation(g) + 0.5) / g)
    spread = np.exp(0.6 * places) if cell.unequal else np.ones(g)
    sizes = np.maximum(np.rint(cell.size * spread / spread.mean()), 2).astype(int)
    cluster = np.repeat(np.arange(g), sizes)
    rows = len(cluster)
    common = rng.normal(0, 1, g)[cluster]
    x = np.clip(0.6 * common + 0.8 * rng.normal(0, 1, rows), -3, 3)
    if cell.design == "trial":
        arm = rng.permutation(np.arange(g) % 2)[cluster]
    elif cell.design == "by x":
        lean = rng.normal(0, 1.5, g)[cluster]
        arm = (rng.random(rows) < 1 / (1 + np.exp(-0.5 * x - lean))).astype(int)
    else:
        mean = np.bincount(cluster, x) / sizes
        arm = (rng.random(g) < 1 / (1 + np.exp(-mean))).astype(int)[cluster]
        if min(len(np.unique(cluster[arm == a])) for a in (0, 1)) < g / 4:
            return people(cell, rng)
    own = rng.normal(0, 1, rows) * sqrt(1 - cell.icc)
    shared = rng.normal(0, 1, g)[cluster] * sqrt(cell.icc)
    outcome = MIDDLE + EFFECT * arm + 0.04 * x + SD * (own + shared)
    return {"arm": arm, "y": np.clip(outcome, 0, 1), "x": x, "school": cluster}


def study(cell: Cell, clustered: bool) -> cv.Study:
    """Return the declarations of a cell, with its clusters or without."""
    covariates = {} if cell.method in ("difference_in_means", "trial") else {"x": cv.Range(-3, 3)}
    known: dict[str, Any] = {}
    if clustered:
        known = {"cluster": "school", "protects_cluster": cell.whole}
        known["assigned_by_cluster"] = cell.design == "trial"
    return study_of("arm", "y", (0, 1), covariates, control=0, randomised=cell.design == "trial", **known)


def simulate(cell: Cell, draws: int, seed: int) -> Found:
    """Return coverage and width over so many data sets."""
    rng = np.random.default_rng(seed)
    found = []
    for draw in range(draws):
        data = people(cell, rng)
        both = [_interval(data, study(cell, clustered), cell, seed + draw) for clustered in (True, False)]
        found.append([*(part for own in both for part in own)])
    error, covered, width, _, by_row, row_width = np.array(found, dtype=float).T
    return Found(
        float(covered.mean()),
        float(width.mean()),
        float(by_row.mean()),
        float(row_width.mean()),
        float(np.sqrt((error**2).mean())),
    )


def _interval(data: dict[str, Any], declared: cv.Study, cell: Cell, seed: int) -> tuple[float, bool, float]:
    result = cv.ate(
        data,
        declared,
        protects=cell.protects,
        epsilon=cell.epsilon,
        method=cell.method,
        noise=cv.SeededNoise(seed),
    )
    low, high = result.interval()
    return result.estimate - EFFECT, low <= EFFECT <= high, high - low
