"""Effects as a function beside one number, on three surfaces.

Twelve skewed covariates like those of a trial of antiretroviral drugs; outcomes like counts of cells in [0, 1200].
Effects are the same for everybody, or differ with a standard deviation of 8 or 40 along three covariates. Printed for
`cv.cate` (auto): root mean squared error of effects (PEHE) beside that of one private number for the whole budget and
of least squares with interactions without privacy; how often it answers with a function; of those answers coverage and
median half-width of intervals for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import counterveil as cv
from experiments.runner import Row, Table

Floats = NDArray[np.float64]
SURFACES = {"same for all": 0.0, "weak": 8.0, "strong": 40.0}
_LABELS = {"drugs": 0.13, "gender": 0.83, "homo": 0.66, "race": 0.29, "str2": 0.59, "symptom": 0.17}
_AVERAGE = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One draw: columns, study, every person's effect and the numbers of their covariates."""

    frame: dict[str, Any]
    study: cv.Study
    effects: Floats
    x: Floats


def trial(rows: int, differ: float, seed: int) -> Trial:
    """Return a randomised trial in which effects have about this standard deviation."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "age": np.clip(rng.normal(35, 9, rows), 12, 70),
        "weight": np.clip(rng.normal(75, 13, rows), 31, 160),
        "karnof": np.clip(rng.choice([70, 80, 90, 100], rows, p=[0.01, 0.04, 0.36, 0.59]), 70, 100),
        "preanti": np.where(rng.random(rows) < 0.4, 0, np.clip(rng.exponential(600, rows), 0, 3000)),
        "cd40": np.clip(rng.normal(350, 118, rows), 0, 1200),
        "cd80": np.clip(rng.lognormal(6.8, 0.45, rows), 40, 5000),
    } | {name: (rng.random(rows) < share).astype(int) for name, share in _LABELS.items()}
    x = np.column_stack(list(columns.values())).astype(float)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    effects = _AVERAGE + differ * (z[:, 0] - z[:, 4] + z[:, 10]) / np.sqrt(3)
    t = rng.integers(0, 2, rows)
    y = 320 + 60 * z[:, 4] - 15 * z[:, 3] + 10 * z[:, 5] + t * effects + rng.normal(0, 100, rows)
    ranges = {
        "age": (12, 70),
        "weight": (31, 160),
        "karnof": (70, 100),
        "preanti": (0, 3000),
        "cd40": (0, 1200),
        "cd80": (40, 5000),
    }
    study = cv.Study(
        treatment=cv.Treatment("t", control=0),
        outcome=cv.Outcome("y", (0, 1200)),
        covariates={name: cv.Range(*ends) for name, ends in ranges.items()}
        | dict.fromkeys(_LABELS, cv.Binary()),
        assignment=cv.Trial(share=0.5),
    )
    return Trial(columns | {"t": t, "y": np.clip(y, 0, 1200)}, study, effects, z)


def least_squares(drawn: Trial) -> Floats:
    """Return the effects by least squares with interactions, without privacy."""
    t, y = (np.asarray(drawn.frame[name], dtype=float) for name in ("t", "y"))
    basis = np.column_stack([np.ones(len(t)), drawn.x])
    weights = np.linalg.lstsq(np.column_stack([basis, basis * t[:, None]]), y, rcond=None)[0]
    return np.asarray(basis @ weights[basis.shape[1] :])


def row(level: str, surface: str, rows: int, epsilon: float, *, seeds: range) -> Row:
    """Return one row of the table."""
    found: dict[str, list[float]] = {
        name: [] for name in ("ours", "number", "ols", "function", "covers", "half")
    }
    for seed in seeds:
        drawn = trial(rows, SURFACES[surface], seed)
        asked = {"protects": level, "epsilon": epsilon, "delta": "1e-6", "noise": cv.SeededNoise(seed)}
        model = cv.cate(drawn.frame, drawn.study, **asked)
        people = {name: drawn.frame[name] for name in drawn.study.covariates}
        found["ours"].append(_error(model.effect(people), drawn.effects))
        one = cv.ate(drawn.frame, drawn.study, **asked)
        found["number"].append(_error(np.full(rows, one.estimate), drawn.effects))
        found["ols"].append(_error(least_squares(drawn), drawn.effects))
        found["function"].append(float(model.heterogeneous))
        if model.heterogeneous:
            low, high = model.interval(people)
            found["covers"].append(float(np.mean((low <= drawn.effects) & (drawn.effects <= high))))
            found["half"].append(float(np.median(high - low)) / 2)
    mean = {name: float(np.mean(values)) if values else float("nan") for name, values in found.items()}
    return [level, surface, rows, epsilon, *mean.values()]


def _error(effects: Floats, truth: Floats) -> float:
    return float(np.sqrt(np.mean((effects - truth) ** 2)))


TABLE = Table(
    columns=(
        "protects | effects | rows :, | epsilon :g | PEHE :.1f | one number :.1f | "
        "least squares :.1f | function :.2f | coverage :.3f | half :.0f"
    ),
    cells=list(product(("record", "outcome"), SURFACES, (1000, 4000, 20_000), (1.0, 4.0))),
    row=row,
    draws=20,
    apart=True,
)
