"""Policy values and targeting curves of trials: coverage, half-widths and errors on outcomes of several shapes.

`python -m experiments.policies` prints both tables with 200 draws a row; `--draws` changes their number, `--only`
names one of values, curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

import counterveil as cv
from experiments.tables import Tally, print_tables, seeds

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


def _rows(
    draws: int, ask: Callable[[Any, cv.Study, dict[str, Any]], Any], where: list[float]
) -> Iterator[str]:
    yield "| outcome | n | budget | treated | coverage | half-width | error | half-width / (1.96 error) |"
    yield "|---|---|---|---|---|---|---|---|"
    for shape in SHAPES:
        for rows, budget, share in ASKED:
            tally = Tally()
            for seed in seeds(draws):
                people, study = drawn(shape, rows, share, seed)
                found = ask(people, study, budget | {"noise": cv.SeededNoise(seed)})
                for one, low in zip(found.gains, where, strict=False):
                    tally.add(one.interval(), one.estimate, truth(shape, low))
            said = ", ".join(f"{name} {value}" for name, value in budget.items())
            long = np.mean(tally.halves) / (1.96 * tally.error)
            yield f"| {shape} | {rows} | {said} | {share:.0%} | {tally.cells(4)} | {long:.2f} |"


class Ranking:
    """A public ranking: by x."""

    def effect(self, columns: Any) -> Any:
        """Return the effect of a row."""
        return columns["x"]


TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "values": partial(
        _rows,
        ask=lambda people, study, given: cv.policy_value(
            people, study, policy=RULE, protects="record", **given
        ),
        where=[0.5],
    ),
    "curves": partial(
        _rows,
        ask=lambda people, study, given: cv.targeting_curve(
            people, study, model=Ranking(), thresholds=RANKED, protects="record", **given
        ),
        where=[*reversed(RANKED), 0.0],
    ),
}

if __name__ == "__main__":
    print_tables(__doc__, TABLES)
