"""Coverage where what moves outcomes also moves treatment.

People are simulated: one index of five covariates moves both, which is the case that harms an estimate most.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.privacy import Estimand
from counterveil.questions.plan import AssumedPeople, simulate
from experiments.runner import Row, Table

STUDY = cv.Study(
    treatment="t",
    outcome=cv.Outcome("y", (0, 1)),
    covariates={f"x{k}": cv.Range(0, 1) for k in range(5)},
)
# The same people with outcomes ten times as large: the range is then not taken as that of a binary outcome.
WIDE = cv.Study(treatment="t", outcome=cv.Outcome("y", (0, 10)), covariates=STUDY.covariates)
DESIGNS = {
    "binary, 30 % explained, confounding 0.7": (
        STUDY,
        {"mean": 0.3, "effect": 0.1, "explained": 0.3, "confounding": 0.7, "binary": True},
    ),
    "numbers, 30 % explained, confounding 0.7": (
        WIDE,
        {"mean": 4.0, "effect": 1.0, "explained": 0.3, "confounding": 0.7},
    ),
    "numbers, 70 % explained, confounding 1": (
        WIDE,
        {"mean": 4.0, "effect": 1.0, "explained": 0.7, "confounding": 1.0},
    ),
}
ROWS, EPSILONS, ESTIMANDS = (500, 2000), (0.25, 0.5, 1.0, 4.0), (Estimand.ATE, Estimand.ATT)
SEED = 100  # 0, 1, 7 and 9 were looked at while the usual standard deviations were chosen
# With which settings each method is asked: as usual, or assuming a small standard deviation of outcomes.
ASKED: dict[str, tuple[str, Any]] = {
    "weighting": ("weighting", None),
    "weighting, 1/16 supposed": ("weighting", cv.settings.Weighting(signal=1 / 16, residual=1 / 16)),
    "matching": ("matching", None),
}


def cell(name: str, rows: int, epsilon: float, estimand: Estimand, asked: str, draws: int) -> str:
    """Return coverage, and the width and rms error of the estimate as parts of the effect."""
    study, supposed = DESIGNS[name]
    assumed = AssumedPeople.of(study, **supposed)
    method, settings = ASKED[asked]
    covered, widths, errors = 0, [], []
    for draw in range(draws):
        people = simulate(study, rows, assumed, np.random.default_rng([SEED, draw]))
        found = cv.ate(
            people.frame,
            study,
            protects="outcome",
            epsilon=epsilon,
            method=method,
            estimand=estimand.value,
            settings=settings,
            noise=cv.SeededNoise(draw),
        )
        low, high = found.interval()
        truth = people.effect(estimand)
        covered += low <= truth <= high
        widths.append(high - low)
        errors.append(found.estimate - truth)
    rms = float(np.sqrt(np.mean(np.square(errors))))
    return f"{covered / draws:.2f} / {np.mean(widths) / assumed.effect:.2f} / {rms / assumed.effect:.2f}"


def row(name: str, rows: int, estimand: Estimand, asked: str, *, seeds: range) -> Row:
    """Return the cells of all epsilons."""
    cells = [cell(name, rows, epsilon, estimand, asked, len(seeds)) for epsilon in EPSILONS]
    return [name, f"{rows}, {estimand.value}, {asked}", *cells]


TABLE = Table(
    columns=("design", "rows, effect, method", *(f"{epsilon:g}" for epsilon in EPSILONS)),
    cells=list(product(DESIGNS, ROWS, ESTIMANDS, ASKED)),
    row=row,
    title="Coverage / width / rms error, the last two as parts of the effect.",
    draws=100,
    apart=True,
)
