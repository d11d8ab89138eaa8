"""Simulated randomised trials, and how often the interval for their effect covers it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import counterveil as cv


@dataclass(frozen=True)
class Cell:
    """One design: who is protected, the outcome, rows, share treated, budget."""

    unit: str
    outcome: str
    rows: int
    share: float
    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Coverage:
    covered: float
    covered_without_noise: float
    width: float
    width_without_noise: float


def draw(cell: Cell, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], float]:
    """Return a trial and its true effect. Assignment is by lot with fixed arm sizes."""
    treated = np.zeros(cell.rows, dtype=np.int64)
    treated[rng.permutation(cell.rows)[: round(cell.share * cell.rows)]] = 1
    if cell.outcome == "binary":
        y = rng.random(cell.rows) < 0.3 + 0.1 * treated
        return {"t": treated, "y": y.astype(float)}, 0.1
    if cell.outcome == "rare":
        y = rng.random(cell.rows) < 0.05 + 0.03 * treated
        return {"t": treated, "y": y.astype(float)}, 0.03
    if cell.outcome == "scarce":
        return {"t": treated, "y": (rng.random(cell.rows) < 0.005).astype(float)}, 0.0
    if cell.outcome == "bell":
        return {"t": treated, "y": np.clip(rng.normal(0.5, 0.1, cell.rows), 0, 1)}, 0.0
    if cell.outcome == "spend":  # one in a hundred buys
        return {"t": treated, "y": (rng.random(cell.rows) < 0.01) * rng.beta(1.0, 3.0, cell.rows)}, 0.0
    if cell.outcome == "constant":
        return {"t": treated, "y": np.full(cell.rows, 0.4)}, 0.0
    # Skewed like earnings: most of the range is rarely used.
    y = rng.beta(1.2 + 0.4 * treated, 6.0)
    return {"t": treated, "y": y}, 1.6 / 7.6 - 1.2 / 7.2


def simulate(cell: Cell, draws: int, seed: int) -> Coverage:
    """Return coverage and mean width of the 95 % interval over fresh trials and fresh (seeded) noise."""
    rng = np.random.default_rng(seed)
    study = cv.Study(
        treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), assignment=cv.Trial()
    )
    hits = bare_hits = 0
    width = bare_width = 0.0
    for _ in range(draws):
        trial, truth = draw(cell, rng)
        result = cv.ate(
            trial,
            study,
            protects=cell.unit,
            epsilon=cell.epsilon,
            delta=cell.delta,
            # Left open, `auto` would keep to pure noise, which the other rows have.
            mechanism="gaussian" if cell.delta else None,
            noise=cv.SeededNoise(int(rng.integers(2**62))),
        )
        low, high = result.untruncated_interval()
        bare = result.uncertainty.naive_half_width(0.95)
        hits += low <= truth <= high
        bare_hits += abs(result.estimate - truth) <= bare
        width += high - low
        bare_width += 2 * bare
    return Coverage(hits / draws, bare_hits / draws, width / draws, bare_width / draws)
