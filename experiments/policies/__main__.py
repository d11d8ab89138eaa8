"""Policy values and targeting curves of trials: coverage, half-widths and errors on outcomes of several shapes.

`python -m experiments.policies` prints both tables with 200 draws a row (`--only values` or `curves`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Draws, Table, judged, mean, of_draws, rmse, run

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]
# Outcomes at a relative gain, and their range.
SHAPES: dict[str, tuple[Draw, tuple[float, float]]] = {
    "bell": (lambda rng, gain: 10 + 2 * gain + rng.normal(0, 2, len(gain)), (0, 20)),
    "gamma": (lambda rng, gain: rng.gamma(1, 2, len(gain)) * (1 + gain / 2), (0, 20)),
    "lognormal": (lambda rng, gain: np.exp(rng.normal(0, 1.2, len(gain))) * (1 + gain / 2), (0, 50)),
    "5% spend": (lambda rng, gain: rng.gamma(2, 5, len(gain)) * _yes(rng, 0.05 * (1 + gain)), (0, 100)),
    "binary 40%": (lambda rng, gain: _yes(rng, 0.4 * (1 + gain / 2)), (0, 1)),
    "binary 5%": (lambda rng, gain: _yes(rng, 0.05 * (1 + gain / 2)), (0, 1)),
    "binary 2%": (lambda rng, gain: _yes(rng, 0.02 * (1 + gain / 2)), (0, 1)),
}
# Rows, budget, part treated.
ASKED: list[tuple[int, dict[str, Any], float]] = [
    (500, {"epsilon": 1}, 0.5),
    (5_000, {"epsilon": 1}, 0.5),
    (5_000, {"epsilon": 1, "delta": "1e-6"}, 0.5),
    (5_000, {"epsilon": 1}, 0.05),
    (50_000, {"epsilon": 1}, 0.5),
]
RULE = cv.Policy.where(x=(0.5, 2))
RANKED = (0.25, 0.5, 0.75)


def _yes(rng: np.random.Generator, chance: np.ndarray) -> np.ndarray:
    return (rng.random(len(chance)) < chance).astype(np.float64)


def _gain(x: np.ndarray) -> np.ndarray:
    return 2 * (x - 0.3)


def drawn(shape: str, rows: int, share: float, seed: int) -> tuple[dict[str, np.ndarray], cv.Study]:
    """Return one trial and its study."""
    draw, ends = SHAPES[shape]
    rng = np.random.default_rng([seed, rows, 41])
    x, treated = rng.random(rows), (rng.random(rows) < share).astype(np.float64)
    people = {"t": treated, "y": np.clip(draw(rng, treated * _gain(x)), *ends), "x": x}
    return people, cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", ends),
        {"x": cv.Range(0, 1)},
        assignment=cv.Trial(),
    )


@cache
def truth(shape: str, low: float) -> float:
    """Return what treating those with x from `low` on gains, per person, of two million people."""
    draw, ends = SHAPES[shape]
    rng = np.random.default_rng(99)
    x = rng.random(2_000_000)
    with_, without = (np.clip(draw(rng, gain), *ends) for gain in (_gain(x), np.zeros(len(x))))
    return float(np.mean((with_ - without) * (x >= low)))


def gains(
    ask: Callable[..., Any],
    lows: list[float],
    shape: str,
    rows: int,
    budget: dict[str, Any],
    share: float,
    *,
    seed: int,
) -> dict[str, Any]:
    """Return what the gains of one draw are like, each against the truth of those with x from its `low` on."""
    people, study = drawn(shape, rows, share, seed)
    found = ask(people, study, protects="record", noise=cv.SeededNoise(seed), **budget)
    each = [
        judged(gain.interval(), gain.estimate, truth(shape, low))
        for gain, low in zip(found.gains, lows, strict=False)
    ]
    return {name: [one[name] for one in each] for name in each[0]}


def labels(shape: str, rows: int, budget: dict[str, Any], share: float) -> list[Any]:
    """Return the first values of a row."""
    return [shape, rows, ", ".join(f"{name} {value}" for name, value in budget.items()), share]


def length(draws: Draws) -> float:
    """Return the mean half-width beside that of an interval which knows its error."""
    return mean("half")(draws) / (1.96 * rmse("error")(draws))


class Ranking:
    """A public ranking: by x."""

    def effect(self, columns: Any) -> Any:
        """Return the effect of a row."""
        return columns["x"]


def table(ask: Callable[..., Any], lows: list[float]) -> Table:
    """Return the table of one question."""
    return Table(
        columns=(
            "outcome | n | budget | treated :.0% | coverage :.1% | half-width :.3f | error :.4f | "
            "half-width / (1.96 error) :.2f"
        ),
        cells=[(shape, *asked) for shape in SHAPES for asked in ASKED],
        row=of_draws(
            labels, partial(gains, ask, lows), [mean("covered"), mean("half"), rmse("error"), length]
        ),
    )


TABLES = {
    "values": table(partial(cv.policy_value, policy=RULE), [0.5]),
    "curves": table(
        partial(cv.targeting_curve, model=Ranking(), thresholds=RANKED), [*reversed(RANKED), 0.0]
    ),
}

if __name__ == "__main__":
    run(__doc__, TABLES)
