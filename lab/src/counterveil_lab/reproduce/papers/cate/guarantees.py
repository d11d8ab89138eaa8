"""What the theorems promise, tried: neighbouring data sets under the auditor, sizes of noise, and Algorithm 2.

A published release is normal around non-private answers, so that its projection on the line through the two
sets of answers holds all there is to tell them apart by their centres: scores are drawn from that
distribution. Learners have a fixed public seed, and nuisances are the same on both data sets unless said otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from counterveil.data import Outcome, Range, Study, Treatment, Trial
from counterveil.datasets import dataset_1
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget
from counterveil.published.cate import (
    BATCH,
    ITERATIVE,
    PRINTED,
    FeatureBox,
    InfluenceSettings,
    Kernel,
    KernelSettings,
    PublishedFunction,
    StageModels,
    StageRows,
    cate_functional,
    counted_rows,
    first_rows,
    fitted_nuisances,
    path_factor,
    published,
    published_factor,
)
from counterveil.session import SeededNoise
from counterveil_lab.audit import LowerBound, ThresholdTester
from counterveil_lab.reproduce.page import Cell, Row

Floats = NDArray[np.float64]
DELTA = Fraction(1, 10**5)
ROWS = 2700
PAIR = ("low", "high")
THOROUGH = InfluenceSettings()


@dataclass(frozen=True)
class Projected:
    """The release on a line: the mean and standard deviation of its score on each of two data sets."""

    means: dict[str, float]
    scales: dict[str, float]

    @classmethod
    def of(cls, answers: dict[str, Floats], scales: dict[str, float]) -> Projected:
        """Return the scores of normal answers along the line through both centres."""
        gap = answers["high"] - answers["low"]
        size = float(np.linalg.norm(gap))
        direction = gap / size if size > 0 else np.eye(len(gap))[0]
        return cls({name: float(answers[name] @ direction) for name in PAIR}, scales)

    def sample(self, dataset: str, count: int, rng: np.random.Generator) -> Floats:
        """Return scores of independent releases."""
        return rng.normal(self.means[dataset], self.scales[dataset], count)


def finding(target: Any, epsilon: Fraction, samples: int, seed: int = 0) -> LowerBound:
    """Return the lower bound on epsilon at DELTA that holds with probability 0.999."""
    tester, claim = ThresholdTester(samples=samples), Budget(epsilon, DELTA)
    return tester.examine(target, PAIR, claim, error=1e-3, rng=np.random.default_rng(seed))


@dataclass(frozen=True)
class Neighbours:
    """Dataset 1 with one record at the middle of the box, treated, its outcome at either end of the range."""

    box: FeatureBox
    first: dict[str, StageRows]
    second: dict[str, StageRows]
    nuisances: dict[str, StageModels]

    @classmethod
    def drawn(cls, seed: int = 0, changed: str = "second") -> Neighbours:
        """Return the pair; the record is one of those that the effect ("second") or nuisances are fitted to."""
        frames, place = record_frames(seed, changed)
        parts = two_parts(ROWS, first_rows(ROWS))
        box = FeatureBox.of(dataset_1(ROWS, seed).study)

        def part(name: str, places: NDArray[np.intp]) -> StageRows:
            frame = frames[name]
            columns = {covariate: frame[covariate] for covariate in ("x1", "x2")}
            return StageRows(box.points(columns, places), (frame["treated"] == 1)[places], frame["y"][places])

        first = {name: part(name, parts[0]) for name in PAIR}
        fits = {"low": fitted_nuisances(first["low"], "network", "network")}
        same = place not in parts[0]
        fits["high"] = fits["low"] if same else fitted_nuisances(first["high"], "network", "network")
        return cls(box, first, {name: part(name, parts[1]) for name in PAIR}, fits)


def record_frames(seed: int = 0, changed: str = "second") -> tuple[dict[str, dict[str, NDArray[Any]]], int]:
    """Return both data sets as columns, and the place of the record that differs."""
    data = dataset_1(ROWS, seed)
    parts = two_parts(ROWS, first_rows(ROWS))
    place = int(parts[0 if changed == "first" else 1][0])
    frames = {}
    for name, end in zip(PAIR, data.study.outcome_range, strict=True):
        frame = {column: np.array(values) for column, values in data.frame.items()}
        frame["x1"][place] = frame["x2"][place] = 0.5
        frame["treated"][place], frame["y"][place] = 1, float(end)
        frames[name] = frame
    return frames, place


def queries(count: int) -> Floats:
    """Return the middle of the box first, then points spread over it."""
    points = np.random.default_rng(1).uniform(size=(count, 2))
    points[0] = 0.5
    return points


def finite_target(
    pair: Neighbours,
    effect: Any,
    count: int,
    epsilon: Fraction,
    search: InfluenceSettings = THOROUGH,
    learner: str = "R",
) -> Projected:
    """Return Theorem 1 for this second stage and number of queries, noise by each data set's own supremum."""
    settings = replace(search, learner=learner, effect=effect)
    factor = published_factor(Budget(epsilon, DELTA), counted_rows(ROWS))
    found = {
        name: published(pair.second[name], pair.nuisances[name], queries(count), pair.box, settings, factor)
        for name in PAIR
    }
    return Projected.of(
        {name: one for name, (one, _) in found.items()}, {name: scale for name, (_, scale) in found.items()}
    )


def kernel_target(features: int, bandwidth: float, epsilon: Fraction, rows: int = 400) -> Projected:
    """Return Theorem 2 at one query for a trial with known share 1/2, no outcome model, and a right L.

    With outcomes in [-1, 1] the loss is (phi - g)^2 / 4 with |phi| <= 2, and lambda |g|^2 is no more than the mean
    loss of g = 0, which is 1: |g(x)| <= sqrt(K(x, x) / lambda), so that L = (2 + that) / 2 bounds its slope.
    """
    study = Study(
        Treatment("treated", control=0),
        Outcome("y", (-1, 1)),
        {f"x{j}": Range(0, 1) for j in range(1, features + 1)},
        assignment=Trial(),
    )
    box, generator = FeatureBox.of(study), np.random.default_rng(0)
    x = generator.uniform(size=(rows, features))
    treated = generator.uniform(size=rows) < 0.5
    x[0], treated[0] = 0.5, True
    y = generator.uniform(-1.0, 1.0, rows)
    form = PublishedFunction.of(box, Budget(epsilon, DELTA), KernelSettings(bandwidth=bandwidth), rows)
    form = replace(form, scale=form.scale * (1 + form.kernel.height**0.5 / 2))
    nothing = StageModels(
        lambda p: np.full(len(p), 0.5), lambda p: np.zeros(len(p)), lambda p: np.zeros(len(p))
    )
    point = np.full((1, features), 0.5)
    answers = {}
    for name, end in zip(PAIR, (-1.0, 1.0), strict=True):
        y[0] = end
        answers[name] = form.effects(StageRows(x, treated, y.copy()), nothing, "R", None, point)
    factor, _ = path_factor(form.kernel, point)
    return Projected.of(answers, dict.fromkeys(PAIR, form.scale * float(factor[0, 0])))


def answers_with_effect_added(
    kernel: Kernel, points: Floats, effects: Floats, scale: float, rng: np.random.Generator
) -> Floats:
    """Return the answers of Algorithm 2 if the effect is added to each of its draws, the obvious repair.

    Every draw is made given the answers before it, which hold the effect, and not given their noise.
    """
    answers: list[float] = []
    for place, point in enumerate(points):
        before = points[:place]
        mean, variance = 0.0, 1.0
        if place:
            covariances = kernel.unit(before, point[None])[:, 0]
            solved = np.linalg.lstsq(kernel.unit(before, before), covariances, rcond=None)[0]
            mean, variance = float(solved @ np.array(answers)), max(1.0 - float(solved @ covariances), 0.0)
        answers.append(float(effects[place] + scale * (mean + np.sqrt(variance) * rng.standard_normal())))
    return np.array(answers)


def recovered(effect: float, scale: float, rng: np.random.Generator) -> float:
    """Return the effect as read off two of those answers to one query: the second less scale times the first."""
    twice, kernel = np.full((2, 1), 0.5), Kernel.normalised(0.2, 1)
    first, second = answers_with_effect_added(kernel, twice, np.full(2, effect), scale, rng)
    return float(second - scale * first)


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
        return [{"value": published_factor(budget, counted_rows(count))}]
    settings = KernelSettings(penalty_meaning=form)
    function = PublishedFunction.of(FeatureBox.of(_STUDY), budget, settings, counted_rows(count))
    return [{"value": function.scale * float(np.sqrt(function.kernel.height))}]


def _seconds(queries: int) -> float:
    """Return the CPU seconds of a draw at so many queries, the shorter of two."""
    box = FeatureBox.of(_STUDY)
    function = PublishedFunction.of(box, Budget(1, "1e-5"), KernelSettings(), 2700)
    points, rng, taken = box.draw(queries, 1), np.random.default_rng(0), []
    for _ in range(2):
        began = time.process_time()
        factor, places = path_factor(function.kernel, points)
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
