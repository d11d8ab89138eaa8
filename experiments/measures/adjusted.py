"""Risk ratios of private records adjusted for five covariates: coverage, size, length beside AIPW without privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

# Draws that lengths without privacy are the median of.
_FREE = 20
_COLUMNS = tuple(f"x{place}" for place in range(5))


@dataclass(frozen=True)
class Design:
    """A cohort: risks without treatment that depend on two covariates, the first of which decides on treatment too."""

    rows: int
    risk: float
    ratio: float = 1.4
    log_odds: float = -0.3
    given: tuple[tuple[str, Any], ...] = (("epsilon", 2), ("delta", "1e-6"))

    def draw(self, seed: int, ratio: float) -> dict[str, np.ndarray]:
        """Return one simulated cohort."""
        rng = np.random.default_rng([seed, self.rows])
        x = rng.normal(size=(self.rows, len(_COLUMNS)))
        treated = rng.random(self.rows) < 1 / (1 + np.exp(-(0.5 * x[:, 0] - 0.4 * x[:, 1] + self.log_odds)))
        risk = self.risk * (1 + 0.3 * np.tanh(x[:, 0]) + 0.2 * np.tanh(x[:, 2])) * np.where(treated, ratio, 1)
        found = {"t": treated.astype(np.int64), "y": (rng.random(self.rows) < risk).astype(np.float64)}
        return found | {name: np.clip(x[:, place], -3, 3) for place, name in enumerate(_COLUMNS)}


STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 1)),
    dict.fromkeys(_COLUMNS, cv.Range(-3, 3)),
    assignment=cv.Observational(),
)
DESIGNS = {
    "risk .3, n = 5,000, ε = 2": Design(5000, 0.3),
    "risk .3, n = 10,000, ε = 1": Design(10_000, 0.3, given=(("epsilon", 1), ("delta", "1e-6"))),
    "risk .3, n = 10,000, ε = 2, δ = 0": Design(10_000, 0.3, given=(("epsilon", 2),)),
    "risk .05, n = 10,000, ε = 2": Design(10_000, 0.05, 1.6),
    "risk .2, 10% treated, n = 10,000, ε = 2": Design(10_000, 0.2, log_odds=-2.3),
}


def coverage(name: str, *, seeds: range) -> Row:
    """Return coverage of the ratio, how often none is rejected where there is none, and length of its logarithm."""
    design = DESIGNS[name]
    held, missed, lengths = [], [], []
    for seed in seeds:
        low, high = _interval(design, seed, design.ratio)
        held.append(low <= design.ratio <= high)
        lengths.append(np.log(high / max(low, 1e-9)) / 3.92)
        low, high = _interval(design, seed + len(seeds), 1.0)
        missed.append(not low <= 1 <= high)
    free = range(seeds.start, seeds.start + _FREE)
    plain = np.median([_aipw(design.draw(seed, design.ratio)) for seed in free])
    return [name, np.mean(held), np.mean(missed), np.median(lengths) / plain]


TABLE = Table(
    columns="design | coverage :.3f | size :.3f | length :.3f",
    cells=[(name,) for name in DESIGNS],
    row=coverage,
)


def _interval(design: Design, seed: int, ratio: float) -> tuple[float, float]:
    words = {"protects": "record", "measure": "ratio", "method": "doubly_robust", **dict(design.given)}
    return cv.ate(design.draw(seed, ratio), STUDY, noise=cv.SeededNoise(seed), **words).interval()


def _aipw(data: dict[str, np.ndarray]) -> float:
    """Return the standard error of the log risk ratio without privacy: lines by arm and a logistic score."""
    x = np.column_stack([np.ones(len(data["y"])), *(data[name] for name in _COLUMNS)])
    t, y, beta = data["t"], data["y"], np.zeros(x.shape[1])
    for _ in range(8):
        e = 1 / (1 + np.exp(-x @ beta))
        beta += np.linalg.solve(x.T @ (x * (e * (1 - e))[:, None]), x.T @ (t - e))
    scores = []
    for inside, chance in ((t == 1, e), (t == 0, 1 - e)):
        line = x @ np.linalg.lstsq(x[inside], y[inside], rcond=None)[0]
        scores.append(line + inside * (y - line) / chance)
    one, other = (score / score.mean() for score in scores)
    return float(np.std(one - other) / np.sqrt(len(y)))
