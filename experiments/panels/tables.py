"""The tables: coverage, half-widths and errors, beside intervals that take rows for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

import counterveil as cv
from experiments.panels.designs import Columns, Panel, Visits
from experiments.runner import Draws, Table, judged, mean, of_draws, rmse

_Z = float(ndtri(0.975))


CHANGES = [
    ("plain trends, n = 3000", Panel(), {"protects": "outcome", "epsilon": 1}),
    ("plain trends, n = 600", Panel(rows=600), {"protects": "outcome", "epsilon": 1}),
    ("plain trends, n = 3000", Panel(), {"protects": "record", "epsilon": 1}),
    ("plain trends, n = 3000", Panel(), {"protects": "record", "epsilon": 1, "delta": "1e-6"}),
    ("trends follow x, n = 3000", Panel(confounded=True), {"protects": "outcome", "epsilon": 1}),
    ("trends follow x, n = 10000", Panel(10_000, confounded=True), {"protects": "record", "epsilon": 1}),
    ("two before, n = 3000", Panel(earlier=2, rho=0.8), {"protects": "outcome", "epsilon": 1}),
]


def change(name: str, design: Panel, asked: dict[str, Any], *, seed: int) -> dict[str, float]:
    """Return what one difference in differences is like."""
    found = cv.ate(design.draw(seed), design.study(), noise=cv.SeededNoise(seed), **asked)
    return judged(found.interval(), found.estimate, design.effects[-1])


def labels(name: str, design: Panel | Visits, asked: dict[str, Any]) -> list[Any]:
    """Return the first values of a row."""
    return [name, *_terms(asked)]


def _terms(asked: dict[str, Any]) -> list[str]:
    delta = f", delta {asked['delta']}" if "delta" in asked else ""
    return [asked["protects"], f"eps {asked['epsilon']}{delta}"]


SEVERAL = Panel(earlier=3, later=3, rho=0.9, moving=1.0)
PERIODS = [
    ("6 periods, rho 0.9", SEVERAL, {"protects": "outcome", "epsilon": 2}),
    ("6 periods, rho 0.9", SEVERAL, {"protects": "outcome", "epsilon": 2, "delta": "1e-6"}),
    ("6 periods, rho 0", Panel(earlier=3, later=3, rho=0.0), {"protects": "outcome", "epsilon": 2}),
    (
        "6 periods, trends follow x",
        Panel(earlier=3, later=3, rho=0.9, confounded=True),
        {"protects": "outcome", "epsilon": 2},
    ),
    ("6 periods, rho 0.9", SEVERAL, {"protects": "record", "epsilon": 4}),
    (
        "12 periods, rho 0.9",
        Panel(earlier=6, later=6, rho=0.9),
        {"protects": "outcome", "epsilon": 4, "delta": "1e-6"},
    ),
]


def event_study(name: str, design: Panel, asked: dict[str, Any], *, seed: int) -> dict[str, Any]:
    """Return what the intervals of all periods are like, alone and together, and the test before treatment."""
    truths = [0.0] * (design.earlier - 1) + design.effects
    data, study = design.long(seed)
    found = cv.event_study(data, study, noise=cv.SeededNoise(seed), **asked)
    each = [
        judged(effect.interval(), effect.estimate, truth)
        for effect, truth in zip(found.table, truths, strict=True)
    ]
    ends = found.interval(simultaneous=True).values()
    return {
        "each": [one["covered"] for one in each],
        "half": [one["half"] for one in each],
        "together": all(low <= truth <= high for (low, high), truth in zip(ends, truths, strict=True)),
        "rejected": (found.pre_trend_p_value or 1.0) < 0.05,
        "rows as people": _rows_as_people(design.draw(seed), design),
    }


def _rows_as_people(data: Columns, design: Panel) -> bool:
    """Return whether the interval of two-way fixed effects covers that takes all rows for independent; no privacy."""
    y = np.column_stack([data[name] for name in design.names()])
    treated = data["t"] == 1
    after = np.arange(y.shape[1]) >= design.earlier
    within = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    d = np.outer(treated, after).astype(np.float64)
    d = d - d.mean(axis=1, keepdims=True) - d.mean(axis=0) + d.mean()
    size = float((d * d).sum())
    slope = float((d * within).sum()) / size
    left = within - slope * d
    free = y.size - y.shape[0] - y.shape[1]
    half = _Z * float(np.sqrt((left * left).sum() / free / size))
    return bool(abs(slope - np.mean(design.effects)) <= half)


_GAUSSIAN = {"epsilon": 1, "delta": "1e-6", "mechanism": "gaussian"}
RATIOS = [
    ("more sessions, more clicks each", Visits(), {"protects": "outcome", "epsilon": 1}),
    ("more sessions, fewer clicks each", Visits(link=-0.04), {"protects": "outcome", "epsilon": 1}),
    ("no link, n = 500", Visits(500, link=0.0), {"protects": "outcome", "epsilon": 1}),
    ("some without sessions", Visits(least=0), {"protects": "outcome", "epsilon": 1}),
    (
        "more sessions, more clicks each",
        Visits(),
        {"protects": "outcome"} | _GAUSSIAN,
    ),
    ("more sessions, more clicks each", Visits(), {"protects": "record", "epsilon": 1}),
    ("n = 500", Visits(500), {"protects": "record", "epsilon": 1}),
    (
        "more sessions, more clicks each",
        Visits(),
        {"protects": "record"} | _GAUSSIAN,
    ),
]


def ratio(name: str, design: Visits, asked: dict[str, Any], *, seed: int) -> dict[str, float]:
    """Return what one ratio is like, and whether the interval covers that takes sessions for people."""
    data = design.draw(seed)
    found = cv.ate(data, design.study(), noise=cv.SeededNoise(seed), **asked)
    answer = judged(found.interval(), found.estimate, design.truth())
    return answer | {"sessions as people": _sessions_as_people(data, design.truth())}


def _spend(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    visits = np.clip(rng.poisson(3, rows), 0, 20)
    return np.clip(
        np.where(rng.random(rows) < 0.05, rng.lognormal(3, 1, rows), 0) * (visits > 0), 0, 200
    ), visits


def _bell(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    size = np.clip(rng.normal(10, 2, rows), 0, 20)
    return np.clip(size * (0.5 + rng.normal(0, 0.1, rows)), 0, 20), size


def _rare(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    visits = np.clip(1 + rng.poisson(5, rows), 0, 30)
    return rng.binomial(visits, 0.02), visits


# Numerators and denominators without an effect, and their ranges.
RATIO_SHAPES = {
    "spend per visit, 5 % buy": (_spend, (0, 200), (0, 20)),
    "bell": (_bell, (0, 20), (0, 20)),
    "2 % of visits": (_rare, (0, 30), (1, 30)),
}


SHAPES_ASKED: Sequence[tuple[int, dict[str, Any]]] = (
    (500, {"protects": "record", "epsilon": 1}),
    (5_000, {"protects": "outcome", "epsilon": 1}),
    (5_000, {"protects": "record", "epsilon": 1}),
    (5_000, {"protects": "record", "epsilon": 1, "delta": "1e-6"}),
    (50_000, {"protects": "record", "epsilon": 1}),
)


def ratio_shape(name: str, rows: int, asked: dict[str, Any], *, seed: int) -> dict[str, float]:
    """Return what a ratio without an effect is like; p-values are below .2 a fifth of the time if even."""
    draw, above, below = RATIO_SHAPES[name]
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Ratio("y", above, "s", below),
        assignment=cv.Trial(),
    )
    rng = np.random.default_rng([seed, rows, 18])
    y, size = draw(rng, rows)
    people = {"t": rng.permutation(rows) % 2, "y": y.astype(float), "s": size.astype(float)}
    found = cv.ate(people, study, noise=cv.SeededNoise(seed), **asked)
    return judged(found.interval(), found.estimate, 0.0) | {"low": found.effect.p_value < 0.2}


def _length(draws: Draws) -> float:
    return mean("half")(draws) / (1.96 * rmse("error")(draws))


def _sessions_as_people(data: Columns, truth: float) -> bool:
    """Return whether the interval covers that takes every session for one person; no privacy."""
    shares, variance = [], 0.0
    for arm in (1, 0):
        inside = data["t"] == arm
        sessions = data["sessions"][inside].sum()
        share = data["clicks"][inside].sum() / sessions
        shares.append(share)
        variance += share * (1 - share) / sessions
    return bool(abs(shares[0] - shares[1] - truth) <= _Z * np.sqrt(variance))


_HEAD = ("design", "protects", "budget")
_COVERED = ("coverage :.1%", "half-width :.3f", "error :.3f")
_MEASURES = (mean("covered"), mean("half"), rmse("error"))
TABLES = {
    "changes": Table(columns=(*_HEAD, *_COVERED), cells=CHANGES, row=of_draws(labels, change, _MEASURES)),
    "periods": Table(
        columns=(
            *_HEAD,
            "each :.1%",
            "all at once :.1%",
            "half-width :.3f",
            "pre-trend p < 0.05 :.1%",
            "rows as people :.1%",
        ),
        cells=PERIODS,
        row=of_draws(
            labels,
            event_study,
            [mean(name) for name in ("each", "together", "half", "rejected", "rows as people")],
        ),
    ),
    "ratios": Table(
        columns=(*_HEAD, *_COVERED, "sessions as people :.1%"),
        cells=RATIOS,
        row=of_draws(labels, ratio, [*_MEASURES, mean("sessions as people")]),
    ),
    "ratio_shapes": Table(
        columns=(
            "ratio | n | protects | budget | coverage :.1% | half-width :.3f | error :.4f | "
            "half-width / (1.96 error) :.2f | p < 0.2 :.0%"
        ),
        cells=[(name, *asked) for name in RATIO_SHAPES for asked in SHAPES_ASKED],
        row=of_draws(
            lambda name, rows, asked: [name, rows, *_terms(asked)],
            ratio_shape,
            [*_MEASURES, _length, mean("low")],
        ),
        apart=True,
    ),
}
