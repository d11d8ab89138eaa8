"""Effects of groups of private records beside the plainest private answer: a noisy table of outcomes by group and arm.

The table releases for each group and arm the sums of u and of 1 - u, u being the outcome in parts of its range, with
Laplace noise for one record of L1 size 2; its variance of outcomes is that of a binary one, the largest there can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tools.loose_study import study_of

import counterveil as cv
from experiments.runner import Row

Floats = NDArray[np.float64]
GROUPS = 5
_TRUTH_ROWS = 1_000_000
Draw = Callable[[np.random.Generator, NDArray[np.int64], NDArray[np.int64]], Floats]


@dataclass(frozen=True, slots=True)
class Shape:
    """Outcomes of rows with a treatment and a group, and their declared range."""

    name: str
    draw: Draw
    low: float = 0.0
    high: float = 1.0


def _binary(rate: float) -> Draw:
    return lambda rng, t, g: (rng.random(len(t)) < rate * (1 + 0.2 * t) * (0.8 + 0.1 * g)).astype(float)


def _bell(rng: np.random.Generator, t: NDArray[np.int64], g: NDArray[np.int64]) -> Floats:
    return np.clip(0.5 + 0.15 * rng.normal(size=len(t)) + 0.05 * t + 0.02 * g, 0, 1)


def _gamma(rng: np.random.Generator, t: NDArray[np.int64], g: NDArray[np.int64]) -> Floats:
    return np.clip(rng.gamma(2, 0.05, len(t)) * (1 + 0.2 * t) + 0.01 * g, 0, 1)


def _spend(rng: np.random.Generator, t: NDArray[np.int64], g: NDArray[np.int64]) -> Floats:
    buys = rng.random(len(t)) < 0.01 * (1 + 0.5 * t) * (0.8 + 0.1 * g)
    return np.where(buys, np.clip(rng.gamma(2, 10, len(t)), 0, 100), 0.0)


def _t3(rng: np.random.Generator, t: NDArray[np.int64], g: NDArray[np.int64]) -> Floats:
    return np.clip(0.5 + 0.05 * rng.standard_t(3, len(t)) + 0.03 * t + 0.01 * g, 0, 1)


SHAPES = [
    *(Shape(f"binary, {rate:g}%", _binary(rate / 100)) for rate in (40, 5, 2, 0.5)),
    Shape("bell", _bell),
    Shape("gamma", _gamma),
    Shape("spend, 1% positive", _spend, 0.0, 100.0),
    Shape("t with 3 degrees", _t3),
    Shape("bell, range 5 times", _bell, -2.0, 3.0),
    Shape("bell, range 20 times", _bell, -9.5, 10.5),
]


def plain_table(
    u: Floats, cells: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return differences of arms and half-widths of 95% intervals, in parts of the range."""
    ones, others = (np.bincount(cells, part, 2 * GROUPS) for part in (u, 1 - u))
    ones, others = (sums + rng.laplace(0, 2 / epsilon, 2 * GROUPS) for sums in (ones, others))
    sizes = np.maximum(ones + others, 1.0)
    p = np.clip(ones / sizes, 0.0, 1.0)
    noise = 8 / epsilon**2 * ((1 - p) ** 2 + p**2) / sizes**2
    variances = noise + np.maximum(p * (1 - p), 1 / sizes) / sizes
    return p[1::2] - p[::2], 1.96 * np.sqrt(variances[1::2] + variances[::2])


def without_privacy(u: Floats, cells: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the same without privacy."""
    parts = [u[cells == cell] for cell in range(2 * GROUPS)]
    means, errors = (
        np.array([one.mean() for one in parts]),
        np.array([one.var(ddof=1) / len(one) for one in parts]),
    )
    return means[1::2] - means[::2], 1.96 * np.sqrt(errors[1::2] + errors[::2])


def shape_row(
    shape: Shape, rows: int, epsilon: float, delta: float, share: float | None, *, seeds: range
) -> Row:
    """Return ratios of half-widths and errors to those without privacy, and coverage."""
    truth, width = _truth(shape), shape.high - shape.low
    found: dict[str, list[tuple[Floats, Floats]]] = {"groups": [], "table": [], "none": []}
    declared = {} if share is None else {"treated_share": share}
    study = study_of(
        treatment="t",
        outcome="y",
        outcome_range=(shape.low, shape.high),
        covariates={"g": cv.Categories([str(k) for k in range(GROUPS)]), "x": cv.Range(0, 1)},
        control=0,
        randomised=True,
        **declared,
    )
    for place in seeds:
        rng = np.random.default_rng(place)
        g, t = rng.integers(0, GROUPS, rows), (rng.random(rows) < (share or 0.5)).astype(np.int64)
        y = shape.draw(rng, t, g)
        frame = {"t": t, "y": y, "g": g.astype(str), "x": rng.random(rows)}
        noise = cv.SeededNoise(place)
        asked = {"protects": "record", "epsilon": epsilon, "delta": delta, "noise": noise}
        answer = cv.groups(frame, study, by="g", **asked)
        ends = np.array([one.interval() for one in answer.groups])
        values = np.array([one.estimate for one in answer.groups])
        found["groups"].append((values - truth, (ends - truth[:, None])))
        u, cells = (y - shape.low) / width, 2 * g + t
        for name, (value, half) in {
            "table": plain_table(u, cells, epsilon, rng),
            "none": without_privacy(u, cells),
        }.items():
            error = value * width - truth
            found[name].append((error, np.stack([error - half * width, error + half * width], axis=1)))
    half = {name: np.median([np.diff(ends, axis=1) for _, ends in kept]) for name, kept in found.items()}
    rmse = {name: np.sqrt(np.mean([error**2 for error, _ in kept])) for name, kept in found.items()}
    covers = {
        name: np.mean([(ends[:, 0] <= 0) & (ends[:, 1] >= 0) for _, ends in kept])
        for name, kept in found.items()
    }
    declared_words = "not declared" if share is None else f"{share:g}"
    figures = [
        figure
        for name in ("groups", "table")
        for figure in (half[name] / half["none"], rmse[name] / rmse["none"], covers[name])
    ]
    return [shape.name, rows, delta, declared_words, answer.method.split(",")[0], *figures]


def _truth(shape: Shape) -> Floats:
    rng = np.random.default_rng(0)
    g = rng.integers(0, GROUPS, _TRUTH_ROWS)
    sizes = np.bincount(g, minlength=GROUPS)
    arms = [np.bincount(g, shape.draw(rng, np.full(_TRUTH_ROWS, arm), g), GROUPS) / sizes for arm in (0, 1)]
    return np.asarray(arms[1] - arms[0])
