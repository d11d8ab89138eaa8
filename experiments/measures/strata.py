"""Coverage of ratios that are standardised over strata, where the larger risks are treated more often."""

from __future__ import annotations

from itertools import product

import numpy as np

import counterveil as cv
from counterveil.inference.arm_means import Means
from counterveil.inference.quotient import RATIO
from counterveil.results import MeasureResult
from experiments.measures.counting import COLUMNS, EFFECT, covered
from experiments.runner import Row, Table

# Risk without treatment and share treated in each stratum.
RISKS, SHARES = np.array([0.05, 0.1, 0.2, 0.3]), np.array([0.35, 0.4, 0.5, 0.6])


def people(seed: int, rows: int) -> dict[str, np.ndarray]:
    """Return people in four strata; their sizes and treatments are drawn once."""
    fixed, drawn = np.random.default_rng(rows), np.random.default_rng(seed)
    place = fixed.integers(0, 4, rows)
    treated = (fixed.random(rows) < SHARES[place]).astype(np.int64)
    chance = RISKS[place] * np.where(treated == 1, EFFECT, 1.0)
    labels = np.array(["a", "b", "c", "d"])
    return {"s": labels[place], "t": treated, "y": (drawn.random(rows) < chance).astype(np.int64)}


def coverage(cell: int, rows: int, epsilon: float, *, seeds: range) -> Row:
    """Return how often intervals cover, and how long they are."""
    place = np.searchsorted(["a", "b", "c", "d"], people(0, rows)["s"])
    risk = float(RISKS[place].mean())
    means = (_asked(rows, epsilon, seed + 1000 * cell) for seed in seeds)
    return [rows, epsilon, *covered(means, risk).values]


TABLE = Table(
    columns=("rows :,", "epsilon", *COLUMNS),
    cells=[(cell, *asked) for cell, asked in enumerate(product((500, 5000), (0.5, 4.0)))],
    row=coverage,
    first_seed=400_000,
)


def _asked(rows: int, epsilon: float, seed: int) -> Means:
    """Return the means that a request for the ratio releases."""
    found = cv.ate(
        people(seed, rows),
        cv.Study("t", cv.Outcome("y", (0, 1)), {"s": cv.Categories(["a", "b", "c", "d"])}),
        protects="outcome",
        epsilon=epsilon,
        method="stratified",
        measure=RATIO,
        noise=cv.SeededNoise(seed),
    )
    assert isinstance(found, MeasureResult)
    assert found.means is not None
    return found.means
