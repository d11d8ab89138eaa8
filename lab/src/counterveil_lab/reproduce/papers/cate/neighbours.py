"""Neighbouring data sets for the published forms, and their releases as the auditor sees them.

A published release is normal around non-private answers, so that its projection on the line through the two
sets of answers holds all there is to tell them apart by their centres: scores are drawn from that
distribution. Learners have a fixed public seed, and nuisances are the same on both data sets unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.audit import LowerBound, ThresholdTester
from counterveil.data import Range, Study
from counterveil.datasets import dataset_1
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Budget
from counterveil.published.cate import (
    LEMMA,
    FeatureBox,
    InfluenceSettings,
    Kernel,
    KernelSettings,
    PublishedFunction,
    StageModels,
    StageRows,
    SupremumSearch,
    batch_factor,
    fitted_nuisances,
    published,
    published_factor,
)

Floats = NDArray[np.float64]

DELTA = Fraction(1, 10**5)
ROWS = 2700
PAIR = ("low", "high")
THOROUGH = SupremumSearch()


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
        parts = two_parts(ROWS, InfluenceSettings().first_rows(ROWS))
        box = FeatureBox.of(dataset_1(ROWS, seed).study)
        held = {}
        for name, frame in frames.items():
            columns = {covariate: frame[covariate] for covariate in ("x1", "x2")}
            held[name] = StageRows(box.points(columns), frame["treated"] == 1, frame["y"])
        first = {name: held[name].part(parts[0]) for name in PAIR}
        fits = {"low": fitted_nuisances(first["low"], "network", "network", 0.05)}
        same = place not in parts[0]
        fits["high"] = fits["low"] if same else fitted_nuisances(first["high"], "network", "network", 0.05)
        return cls(box, first, {name: held[name].part(parts[1]) for name in PAIR}, fits)


def record_frames(seed: int = 0, changed: str = "second") -> tuple[dict[str, dict[str, NDArray[Any]]], int]:
    """Return both data sets as columns, and the place of the record that differs."""
    data = dataset_1(ROWS, seed)
    parts = two_parts(ROWS, InfluenceSettings().first_rows(ROWS))
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
    search: SupremumSearch = THOROUGH,
    learner: str = "R",
) -> Projected:
    """Return Theorem 1 for this second stage and number of queries, noise by each data set's own supremum."""
    settings = InfluenceSettings(learner=learner, effect=effect, starts=search.starts, points=search.points)
    factor = published_factor(Budget(epsilon, DELTA), settings.counted_rows(ROWS))
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
        "treated",
        "y",
        (-1, 1),
        {f"x{j}": Range(0, 1) for j in range(1, features + 1)},
        control=0,
        randomised=True,
    )
    box, generator = FeatureBox.of(study), np.random.default_rng(0)
    x = generator.uniform(size=(rows, features))
    treated = generator.uniform(size=rows) < 0.5
    x[0], treated[0] = 0.5, True
    y = generator.uniform(-1.0, 1.0, rows)
    height = Kernel.normalised(bandwidth, features, LEMMA).height
    settings = KernelSettings(bandwidth=bandwidth, lipschitz=1 + height**0.5 / 2, centres=None)
    form = PublishedFunction.of(box, Budget(epsilon, DELTA), settings, rows)
    nothing = StageModels(
        lambda p: np.full(len(p), 0.5), lambda p: np.zeros(len(p)), lambda p: np.zeros(len(p))
    )
    point = np.full((1, features), 0.5)
    answers = {}
    for name, end in zip(PAIR, (-1.0, 1.0), strict=True):
        y[0] = end
        answers[name] = form.effects(StageRows(x, treated, y.copy()), nothing, "R", None, point)
    factor, _ = batch_factor(form.kernel, point)
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
    twice, kernel = np.full((2, 1), 0.5), Kernel.normalised(0.2, 1, LEMMA)
    first, second = answers_with_effect_added(kernel, twice, np.full(2, effect), scale, rng)
    return float(second - scale * first)
