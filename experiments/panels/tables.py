"""The tables: coverage, half-widths and errors, beside intervals that take rows for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtri

import counterveil as cv
from experiments.panels.designs import Columns, Panel, Visits
from experiments.tables import Tally, seeds

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


def changes(draws: int) -> Iterator[str]:
    """Yield the table of differences in differences."""
    yield "| design | protects | budget | coverage | half-width | error |"
    yield "|---|---|---|---|---|---|"
    for name, design, asked in CHANGES:
        tally = Tally()
        for seed in seeds(draws):
            found = cv.ate(design.draw(seed), design.study(), noise=cv.SeededNoise(seed), **asked)
            tally.add(found.interval(), found.estimate, design.effects[-1])
        yield f"| {name} | {_terms(asked)} | {tally.cells()} |"


def _terms(asked: dict[str, Any]) -> str:
    delta = f", delta {asked['delta']}" if "delta" in asked else ""
    return f"{asked['protects']} | eps {asked['epsilon']}{delta}"


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


def periods(draws: int) -> Iterator[str]:
    """Yield the table of event studies; the last column takes all rows of a panel for independent."""
    yield "| design | protects | budget | each | all at once | half-width | pre-trend p < 0.05 | rows as people |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, design, asked in PERIODS:
        truths = [0.0] * (design.earlier - 1) + design.effects
        each, every, rejected, naive, tally = [], [], [], [], Tally()
        for seed in seeds(draws):
            data, study = design.long(seed)
            found = cv.event_study(data, study, noise=cv.SeededNoise(seed), **asked)
            for effect, truth in zip(found.table, truths, strict=True):
                tally.add(effect.interval(), effect.estimate, truth)
            each += tally.covered[-len(truths) :]
            ends = found.interval(simultaneous=True).values()
            every.append(all(a <= truth <= b for (a, b), truth in zip(ends, truths, strict=True)))
            rejected.append((found.pre_trend_p_value or 1.0) < 0.05)
            naive.append(_rows_as_people(design.draw(seed), design))
        parts = (each, every, rejected, naive)
        one, all_of_them, tested, plain = (f"{100 * np.mean(part):.1f} %" for part in parts)
        half = np.mean(tally.halves)
        yield f"| {name} | {_terms(asked)} | {one} | {all_of_them} | {half:.3f} | {tested} | {plain} |"


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


def ratios(draws: int) -> Iterator[str]:
    """Yield the table of ratios; the last column takes sessions for people."""
    yield "| design | protects | budget | coverage | half-width | error | sessions as people |"
    yield "|---|---|---|---|---|---|---|"
    for name, design, asked in RATIOS:
        tally, naive = Tally(), []
        for seed in seeds(draws):
            data = design.draw(seed)
            found = cv.ate(data, design.study(), noise=cv.SeededNoise(seed), **asked)
            tally.add(found.interval(), found.estimate, design.truth())
            naive.append(_sessions_as_people(data, design.truth()))
        yield f"| {name} | {_terms(asked)} | {tally.cells()} | {100 * np.mean(naive):.1f} % |"


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


def ratio_shapes(draws: int) -> Iterator[str]:
    """Yield coverage and p-values of ratios without an effect; p-values are below .2 a fifth of the time if even."""
    yield "| ratio | n | protects | budget | coverage | half-width | error | half-width / (1.96 error) | p < 0.2 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, (draw, above, below) in RATIO_SHAPES.items():
        study = cv.Study(
            cv.Treatment("t", control=0),
            cv.Ratio("y", above, "s", below),
            assignment=cv.Trial(),
        )
        for rows, protects, budget in (
            (500, "record", {"epsilon": 1}),
            (5_000, "outcome", {"epsilon": 1}),
            (5_000, "record", {"epsilon": 1}),
            (5_000, "record", {"epsilon": 1, "delta": "1e-6"}),
            (50_000, "record", {"epsilon": 1}),
        ):
            tally, low = Tally(), []
            for seed in seeds(draws):
                rng = np.random.default_rng([seed, rows, 18])
                y, size = draw(rng, rows)
                people = {"t": rng.permutation(rows) % 2, "y": y.astype(float), "s": size.astype(float)}
                found = cv.ate(people, study, protects=protects, noise=cv.SeededNoise(seed), **budget)
                tally.add(found.interval(), found.estimate, 0.0)
                low.append(found.effect.p_value < 0.2)
            long = np.mean(tally.halves) / (1.96 * tally.error)
            said = _terms({"protects": protects} | budget)
            yield f"| {name} | {rows} | {said} | {tally.cells(4)} | {long:.2f} | {100 * np.mean(low):.0f} % |"


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
