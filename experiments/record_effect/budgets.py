"""Widths of adjusted effects of records over epsilon.

Median half-widths of 95 % intervals and, in brackets, the number of features, for designs A and C of Nie and Wager
(2021) with six covariates and for 401(k). A width that grows with epsilon is marked.
"""

from __future__ import annotations

from itertools import product

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

EPSILONS = (1, 2, 4, 6, 8, 12, 16)
ESTIMANDS = ("ATE", "ATT", "ATC", "ATO")
# Medians of few draws, and features that a larger budget buys, may cost this much.
ROOM = 1.1
COVARIATES = 6


def design_a(rows: int, seed: int) -> tuple[dict[str, object], cv.Study]:
    """Return a draw of design A: treatment and outcome bend in the same product."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, COVARIATES))
    wave = np.sin(np.pi * x[:, 0] * x[:, 1])
    base = wave + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + 0.5 * x[:, 4]
    return _drawn(rng, x, np.clip(wave, 0.1, 0.9), base, (x[:, 0] + x[:, 1]) / 2, (-4, 8), cv.Range(0, 1))


def design_c(rows: int, seed: int) -> tuple[dict[str, object], cv.Study]:
    """Return a draw of design C: an easy propensity, a hard baseline, one effect for all."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(rows, COVARIATES)), -4, 4)
    share = 1 / (1 + np.exp(x[:, 1] + x[:, 2]))
    base = 2 * np.log1p(np.exp(x[:, 0] + x[:, 1] + x[:, 2]))
    return _drawn(rng, x, share, base, np.ones(rows), (-5, 15), cv.Range(-4, 4))


def _drawn(rng, x, share, base, effect, limits, domain):  # type: ignore[no-untyped-def]
    t = (rng.random(len(x)) < share).astype(int)
    y = np.clip(base + (t - 0.5) * effect + rng.normal(size=len(x)), *limits)
    names = [f"x{place}" for place in range(COVARIATES)]
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", limits), dict.fromkeys(names, domain))
    return {"t": t, "y": y} | dict(zip(names, x.T, strict=True)), study


def pension(rows: int, seed: int) -> tuple[dict[str, object], cv.Study]:
    """Return 401(k)."""
    data = cv.datasets.pension401k()
    return data.frame, data.study


DESIGNS = {
    "Nie-Wager A": (design_a, 2000),
    "Nie-Wager C": (design_c, 2000),
    "401(k)": (pension, 0),
}


def row(name: str, estimand: str, delta: int | str, *, seeds: range) -> Row:
    """Return one row of the table."""
    make, rows = DESIGNS[name]
    cells, least = [], np.inf
    for epsilon in EPSILONS:
        halves = []
        for seed in seeds:
            frame, study = make(rows, seed)
            try:
                found = cv.ate(
                    frame,
                    study,
                    protects="record",
                    epsilon=epsilon,
                    delta=delta,
                    method="doubly_robust",
                    estimand=estimand,
                    noise=cv.SeededNoise(seed),
                )
            except cv.errors.ParameterError as refusal:
                cells.append(refusal.code)
                break
            low, high = found.interval()
            halves.append((high - low) / 2)
        else:
            half = float(np.median(halves))
            grown = "GROWN " if half > ROOM * least else ""
            cells.append(f"{grown}{half:.3g} ({found.details['features']:.0f})")
            least = min(least, half)
    return [name, estimand, delta, *cells]


TABLE = Table(
    columns=("design", "estimand", "delta", *(f"eps {epsilon}" for epsilon in EPSILONS)),
    cells=list(product(DESIGNS, ESTIMANDS, (0, "1e-6"))),
    row=row,
    draws=20,
    first_seed=0,
    apart=True,
)
