"""What the theorems promise, tried: neighbouring data sets under the auditor, sizes of noise, and Algorithm 2."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd

from counterveil.datasets import dataset_1
from counterveil.privacy import Budget
from counterveil.published.cate import (
    BATCH,
    ITERATIVE,
    PRINTED,
    FeatureBox,
    InfluenceSettings,
    KernelSettings,
    PublishedFunction,
    batch_factor,
    cate_functional,
    published_factor,
)
from counterveil.session import SeededNoise
from counterveil_lab.reproduce.papers.cate.neighbours import Neighbours, finding, finite_target, kernel_target
from counterveil_lab.reproduce.protocol import Cell, Row

_ONE = Fraction(1)
_SAMPLES, _QUICK_SAMPLES = 200_000, 20_000
# Second stage, number of queries, and the half that the person who differs belongs to.
_FINITE = (
    ("forest", 1, "second"),
    ("network", 300, "second"),
    ("linear", 300, "second"),
    ("linear", 10_000, "second"),
    ("forest", 300, "first"),
)
# Number of covariates and bandwidth.
_KERNELS = ((2, 0.2), (8, 1.0), (30, 0.5), (30, 1.0))


def guarantee_cells(quick: bool) -> list[Cell]:
    """Return the audited releases: Theorem 1 by learner and queries, Theorem 2 by covariates and bandwidth."""
    samples = _QUICK_SAMPLES if quick else _SAMPLES
    finite: list[Cell] = [
        {"theorem": 1, "learner": learner, "queries": count, "half": half, "samples": samples}
        for learner, count, half in _FINITE
    ]
    return finite + [
        {"theorem": 2, "covariates": covariates, "bandwidth": bandwidth, "samples": samples}
        for covariates, bandwidth in _KERNELS
    ]


def guarantee(cell: Cell) -> list[Row]:
    """Return a lower bound on the true epsilon of a release that claims (1, 1e-5); it holds with probability .999."""
    samples = int(str(cell["samples"]))
    if cell["theorem"] == 1:
        pair = _neighbours(str(cell["half"]))
        target = finite_target(pair, str(cell["learner"]), int(str(cell["queries"])), _ONE)
        queries = "1 query" if cell["queries"] == 1 else f"{cell['queries']:,} queries"
        name = f"{cell['learner']}, {queries}, a person of the {cell['half']} stage"
    else:
        covariates, bandwidth = int(str(cell["covariates"])), float(str(cell["bandwidth"]))
        target = kernel_target(covariates, bandwidth, _ONE)
        name = f"kernel, {covariates} covariates, bandwidth {bandwidth:g}"
    shift = abs(target.means["high"] - target.means["low"]) / target.scales["low"]
    return [{"release": name, "claimed": 1.0, "bound": finding(target, _ONE, samples).found, "shift": shift}]


@lru_cache(maxsize=2)
def _neighbours(half: str) -> Neighbours:
    return Neighbours.drawn(0, half)


def guarantee_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the bounds, one line a release."""
    return rows[["theorem", "release", "claimed", "bound", "shift"]]


# Noise by the number of people, and time by the number of queries.

_PEOPLE = (2700, 10_800, 43_200)
_QUERIES, _QUICK_QUERIES = (300, 1200, 4800), (300, 2400)
_STUDY = dataset_1(100, 0).study


def size_cells(quick: bool) -> list[Cell]:
    """Return what is measured: noise of each form at so many people, seconds of Algorithm 1 at so many queries."""
    queries: Sequence[int] = _QUICK_QUERIES if quick else _QUERIES
    people: list[Cell] = [
        {"measure": "noise", "form": form, "size": size}
        for form in ("finite", "literal", "alpha")
        for size in _PEOPLE
    ]
    return people + [{"measure": "seconds", "form": "Algorithm 1", "size": size} for size in queries]


def size(cell: Cell) -> list[Row]:
    """Return the noise's standard deviation at epsilon 1, or the seconds that its path takes to draw.

    Finite queries are in units of the largest influence, which tends to a constant.
    """
    form, count, budget = str(cell["form"]), int(str(cell["size"])), Budget(1, "1e-5")
    if cell["measure"] == "seconds":
        return [{"value": _seconds(count)}]
    if form == "finite":
        return [{"value": published_factor(budget, InfluenceSettings().counted_rows(count))}]
    settings = KernelSettings(penalty_meaning=form)
    function = PublishedFunction.of(FeatureBox.of(_STUDY), budget, settings, settings.counted_rows(count))
    return [{"value": function.scale * float(np.sqrt(function.kernel.height))}]


def _seconds(queries: int) -> float:
    """Return the CPU seconds of a draw at so many queries, the shorter of two."""
    box = FeatureBox.of(_STUDY)
    function = PublishedFunction.of(box, Budget(1, "1e-5"), KernelSettings(), 2700)
    points, rng, taken = box.draw(queries, 1), np.random.default_rng(0), []
    for _ in range(2):
        began = time.process_time()
        factor, places = batch_factor(function.kernel, points)
        _ = (factor @ rng.standard_normal(len(factor)))[places]
        taken.append(time.process_time() - began)
    return min(taken)


def size_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the measures, one line a size."""
    return rows[["measure", "form", "size", "value"]]


# Algorithm 2: one query after another.

_DRAWS, _QUICK_DRAWS = 60, 20
_LEARNED = 2700
# So large that noise hides nothing.
_EPSILON = 1000


def algorithm_cells(quick: bool) -> list[Cell]:
    """Return the algorithms, each with its number of draws."""
    draws = _QUICK_DRAWS if quick else _DRAWS
    return [{"algorithm": name, "draws": draws} for name in (BATCH, ITERATIVE, PRINTED)]


def algorithm(cell: Cell) -> list[Row]:
    """Return how far answers to three queries are from those of the batch form, at an epsilon without much noise."""
    data = dataset_1(_LEARNED, 1000)
    people = {"x1": [0.1, 0.5, 0.9], "x2": [0.5, 0.5, 0.5]}
    name, draws = str(cell["algorithm"]), int(str(cell["draws"]))

    def answers(chosen: str, seed: int) -> list[float]:
        settings = KernelSettings(algorithm=chosen, outcome="linear", propensity="logistic")
        found = cate_functional(
            data.frame,
            data.study,
            queries=people,
            epsilon=_EPSILON,
            delta="1e-5",
            settings=settings,
            accept="unproved",
            noise=SeededNoise(seed),
        )
        return [float(value) for value in found.effect()]

    fitted = np.mean([answers(BATCH, seed) for seed in range(5)], axis=0)
    drawn = np.array([answers(name, seed) for seed in range(100, 100 + draws)])
    return [
        {"query": place + 1, "fitted": float(fitted[place]), "mean": float(drawn[:, place].mean())}
        | {"sd": float(drawn[:, place].std())}
        for place in range(len(fitted))
    ]


def algorithm_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and spread of the answers, one line an algorithm and query."""
    return rows[["algorithm", "query", "fitted", "mean", "sd"]]
