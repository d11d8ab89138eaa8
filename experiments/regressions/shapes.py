"""Outcomes of several shapes for regressions where outcomes alone are private; the treatment has no effect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
SHAPES: dict[str, Draw] = {
    "bell": lambda rng, x: np.clip(rng.normal(0.4 + 0.1 * x, 0.15), 0, 1),
    "bell, range 5 times too wide": lambda rng, x: np.clip(rng.normal(0.4 + 0.02 * x, 0.03), 0, 1),
    "binary, 40%": lambda rng, x: (rng.random(len(x)) < 0.4).astype(float),
    "binary, 1%": lambda rng, x: (rng.random(len(x)) < 0.01).astype(float),
    "gamma": lambda rng, x: np.clip(rng.gamma(1, 0.08, len(x)), 0, 1),
    "t, 3 degrees of freedom": lambda rng, x: np.clip(0.5 + 0.05 * rng.standard_t(3, len(x)), 0, 1),
}
STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)}, assignment=cv.Trial())


def shapes(place: int, name: str, rows: int, delta: str, *, seeds: range) -> Row:
    """Return coverage and half-widths of the treatment's coefficient beside those of least squares."""
    found = np.array([_one(SHAPES[name], rows, delta, 1000 * place + seed) for seed in seeds])
    return [name, rows, delta, found[:, 0].mean(), *np.quantile(found[:, 1], (0.5, 0.9, 1.0))]


def _one(draw: Draw, rows: int, delta: str, seed: int) -> tuple[float, float]:
    """Return whether no effect is covered, and the half-width beside that without privacy."""
    rng = np.random.default_rng(seed)
    t, x = rng.integers(0, 2, rows), rng.random(rows)
    y = draw(rng, x)
    moments = cv.moments(
        {"t": t, "x": x, "y": y},
        STUDY,
        protects="outcome",
        epsilon=1,
        delta=delta,
        noise=cv.SeededNoise(seed),
    )
    low, high = moments.regress("y ~ t + x").coefficient("t").interval()
    columns = np.column_stack((np.ones(rows), t, x))
    left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    error = np.sqrt(left @ left / (rows - 3) * np.linalg.inv(columns.T @ columns)[1, 1])
    return float(low <= 0 <= high), float((high - low) / 2 / (1.96 * error))


TABLE = Table(
    columns=(
        "outcome | n :, | delta | coverage :.3f | half-width / non-private: median :.2f | "
        "90% :.2f | largest :.2f"
    ),
    cells=[
        (place, name, *asked)
        for place, name in enumerate(SHAPES)
        for asked in ((2000, "1e-6"), (2000, "0"), (20_000, "1e-6"))
    ],
    row=shapes,
    first_seed=0,
)
