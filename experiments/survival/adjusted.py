"""Stratified and weighted survival of cohorts: coverage, size, and length beside lifelines on the same strata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table
from experiments.survival.designs import Trial
from experiments.survival.ratios import to_horizon

STRATA: dict[str, Any] = {"protects": "record", "epsilon": 1, "method": "stratified"}
WEIGHTS: dict[str, Any] = {"protects": "outcome", "epsilon": 1, "method": "weighting"}
COHORT = Trial(2000, 0.3, confounded=True)
DESIGNS = {
    "n = 2,000": COHORT,
    "n = 10,000": replace(COHORT, rows=10_000),
    "n = 2,000, 10 % treated": replace(COHORT, share=0.1),
    "n = 2,000, rare events": replace(COHORT, left=0.95),
}


def adjusted(name: str, *, seeds: range) -> list[Row]:
    """Return coverage, size and length of the difference at the horizon, the restricted mean and the hazard ratio.

    Lengths are medians as multiples of those of lifelines: Cox's ratio within strata or with weights, and curves of
    strata by their shares. A weighted ratio is that of all people, known where hazards are alike only.
    """
    design, rows = DESIGNS[name], []
    null = replace(design, ratio=1.0)
    plain = np.median([_lifelines(design, seed) for seed in seeds[:40]], axis=0)
    for place, given in enumerate((STRATA, WEIGHTS)):
        truth = np.array([design.gap, design.mean_gap, np.log(design.ratio)])
        found = np.array([_ends(design, given, seed) for seed in seeds])
        nothing = np.array([_ends(null, given, seed) for seed in seeds])
        cover = np.mean((found[:, :, 0] <= truth) & (truth <= found[:, :, 1]), axis=0)
        size = np.mean((nothing[:, :, 0] > 0) | (nothing[:, :, 1] < 0), axis=0)
        length = np.median(found[:, ::2, 1] - found[:, ::2, 0], axis=0) / plain[[0, 1 + place]]
        ratio = cover[2] if given is STRATA else ""
        cells = [cover[0], size[0], length[0], cover[1], size[1], ratio, size[2], length[1]]
        rows.append([name, given["method"], *cells])
    return rows


def _ends(design: Trial, given: dict[str, Any], seed: int) -> list[tuple[float, float]]:
    """Return intervals of the differences at the horizon and of restricted means, and of the ratio's logarithm."""
    found = cv.survival(design.draw(seed), design.study(), noise=cv.SeededNoise(seed), **given)
    low, high = found.hazard_ratio().interval()
    ratio = (float(np.log(low)) if low else -np.inf, float(np.log(high)))
    return [found.difference().interval(), found.restricted_mean_difference.interval(), ratio]


def _lifelines(design: Trial, seed: int) -> list[float]:
    """Return the lengths of the difference, and of the logarithm of the ratio within strata and with weights."""
    import pandas as pd
    from lifelines import CoxPHFitter, KaplanMeierFitter

    people = pd.DataFrame(to_horizon(design.draw(seed)))
    squares = 0.0
    for (x, _), own in people.groupby(["x", "arm"]):
        fitted = KaplanMeierFitter().fit(own["time"], own["event"])
        low, high = fitted.confidence_interval_.to_numpy()[-1]
        squares += ((people["x"] == x).mean() * (high - low)) ** 2
    chance = people.groupby("x")["arm"].transform("mean")
    people["weight"] = np.where(people["arm"] == 1, 1 / chance, 1 / (1 - chance))
    cox = CoxPHFitter().fit(people.drop(columns="weight"), "time", "event", strata="x")
    weighted = CoxPHFitter().fit(people.drop(columns="x"), "time", "event", weights_col="weight", robust=True)
    return [squares**0.5, *(3.92 * float(one.standard_errors_["arm"]) for one in (cox, weighted))]


TABLE = Table(
    columns=(
        "design | method | S cover :.3f | size :.3f | length :.2f | mean cover :.3f | "
        "size :.3f | HR cover :.3f | size :.3f | length :.2f"
    ),
    cells=[(name,) for name in DESIGNS],
    row=adjusted,
)
