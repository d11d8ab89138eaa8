"""Designs drawn at random, on which nothing was set: `python -m experiments.shapes.search [--seed 1] [--cells 200]`.

Cells that miss in the first replications are drawn again with new seeds, and judged by these alone.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.shapes.designs import Design, Floats, Shape
from experiments.shapes.plain import WEIGHTS, plainest, without_privacy

FIRST, AGAIN, REFUSED = 16, 48, 3
# Of cells that cover 95%, about this part is drawn again, and this part of these is shown.
SEEMS, SURE = 0.05, 0.01


def _rate(base: float, slope: float, effect: float, least: float) -> Any:
    return lambda s, t: np.clip(base + slope * s + effect * t, least, None)


def _events(rng: np.random.Generator, mean: Floats) -> Floats:
    return (rng.random(len(mean)) < mean).astype(float)


SHAPES = (
    Shape("bell", 0, 10, _rate(5, 1, 1, 0), lambda rng, m: m + rng.standard_normal(len(m))),
    Shape("binary", 0, 1, _rate(0.3, 0.1, 0.1, 0.02), _events),
    Shape("binary, rare", 0, 1, _rate(0.012, 0.004, 0.006, 0.001), _events),
    Shape(
        "spend",
        0,
        300,
        _rate(0.03, 0.01, 0.01, 0.001),
        lambda rng, m: _events(rng, m) * rng.exponential(40, len(m)),
    ),
    Shape("gamma", 0, 40, _rate(2, 0.5, 0.5, 0.1), lambda rng, m: m * rng.exponential(size=len(m))),
    Shape("t, 3 df", -40, 40, _rate(1, 1, 1, -9), lambda rng, m: m + rng.standard_t(3, len(m))),
    Shape("count", 0, 40, _rate(2, 0.5, 0.5, 0.05), lambda rng, m: rng.poisson(m).astype(float)),
    Shape(
        "two",
        -2,
        11,
        _rate(0.5, 0.05, 0.05, 0),
        lambda rng, m: 8 * _events(rng, m) + rng.normal(0, 0.3, len(m)),
    ),
    Shape("constant", 0, 10, lambda s, t: 3 + 0 * s * t, lambda _, m: m),
)
CHOICES: dict[str, tuple[Any, ...]] = {
    "level": ("outcome", "record", "record", "treatment and outcome"),
    "rows": (300, 1_000, 3_000, 10_000),
    "epsilon": ("0.3", "1", "1", "3", "10"),
    "delta": ("0", "0", "1e-6"),
    "trial": (True, False),
    "share": ("0.5", "0.5", "0.2", "0.1"),
    "steep": (0.4, 1, 2),
    "columns": (1, 3, 8),
    "shape": tuple(range(len(SHAPES))),
    "effect": (0, 1, -1),
    "estimand": ("ATE", "ATE", "ATT", "ATC", "ATO"),
    "outcome_range": (1, 1, 1, 20),
    "covariate_range": ((0, 1), (0, 1), (0, 1), (-5, 5)),
    "declared": (True, False),
    "measure": ("difference", "difference", "ratio", "odds_ratio"),
}


def drawn(seed: int, number: int) -> dict[str, Any]:
    """Return the settings of a cell."""
    rng = np.random.default_rng([seed, number])
    cell = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    if cell["trial"]:
        cell["estimand"] = "ATE"
    if SHAPES[cell["shape"]].binary:
        cell["outcome_range"] = 1
    else:
        cell["measure"] = "difference"
    return cell


@dataclass(frozen=True)
class People:
    """People of one draw, as `plain` takes them."""

    cell: dict[str, Any]
    seed: Any
    rows: int

    @property
    def shape(self) -> Shape:
        shape, times = SHAPES[self.cell["shape"]], self.cell["outcome_range"]
        middle, half = (shape.low + shape.high) / 2, times * (shape.high - shape.low) / 2
        return Shape(shape.name, middle - half, middle + half, shape.mean, shape.draw)

    @property
    def design(self) -> Design:
        declared: dict[str, Any] = {"randomised": True} if self.cell["trial"] else {}
        if self.cell["trial"] and self.cell["declared"]:
            declared["treated_share"] = self.cell["share"]
        return Design("", 0, declared)

    @cached_property
    def columns(self) -> Floats:
        return np.random.default_rng(self.seed).random((self.rows, self.cell["columns"]))

    @cached_property
    def index(self) -> Floats:
        p = self.cell["columns"]
        return (2 * self.columns - 1) @ np.linspace(1, 0.2, p) * 1.7 / np.sqrt(p)

    @cached_property
    def odds(self) -> Floats:
        steep = 0 if self.cell["trial"] else self.cell["steep"]
        return expit(logit(float(self.cell["share"])) + steep * self.index)

    @cached_property
    def treated(self) -> Floats:
        return (np.random.default_rng([*self.seed, 1]).random(self.rows) < self.odds).astype(int)

    def outcomes(self, arm: int) -> Floats:
        """Return what outcomes would be in an arm; the same chances for both."""
        shape = SHAPES[self.cell["shape"]]
        t = np.full(self.rows, float(self.cell["effect"] * arm))
        return shape.outcomes(np.random.default_rng([*self.seed, 2]), self.index, t)

    @cached_property
    def outcome(self) -> Floats:
        return np.where(self.treated == 1, self.outcomes(1), self.outcomes(0))

    @property
    def strata(self) -> Floats:
        halves = self.columns[:, :3] > 0.5
        return halves @ 2 ** np.arange(halves.shape[1])

    def truth(self) -> float:
        """Return what is true of these people's weighted means."""
        weights = WEIGHTS[self.cell["estimand"]](self.odds)
        one, other = (float(np.average(self.outcomes(arm), weights=weights)) for arm in (1, 0))
        if self.cell["measure"] == "difference":
            return one - other
        return one / other if self.cell["measure"] == "ratio" else one / (1 - one) / (other / (1 - other))

    @property
    def study(self) -> cv.Study:
        ranges = {f"x{j}": cv.Range(*self.cell["covariate_range"]) for j in range(self.cell["columns"])}
        shape = self.shape
        return study_of("t", "y", (shape.low, shape.high), ranges, control=0, **self.design.declared)

    @property
    def frame(self) -> dict[str, Floats]:
        names = self.study.covariates
        return {"t": self.treated, "y": self.outcome} | dict(zip(names, self.columns.T, strict=True))

    def answer(self, noise: int) -> Any:
        asked = {name: self.cell[name] for name in ("epsilon", "delta", "measure")}
        if not self.cell["trial"]:
            asked["estimand"] = self.cell["estimand"]
        kind = {"protects": self.cell["level"], "noise": cv.SeededNoise(noise)}
        return cv.ate(self.frame, self.study, **kind, **asked)


@dataclass
class Tally:
    """How often intervals covered, how long they were and how far estimates were off."""

    covered: list[bool] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def add(self, ends: tuple[float, float], estimate: float, truth: float) -> None:
        """Count one interval."""
        self.covered.append(ends[0] <= truth <= ends[1])
        self.halves.append((ends[1] - ends[0]) / 2)
        self.errors.append(estimate - truth)

    @property
    def error(self) -> float:
        """Root mean squared error."""
        return float(np.sqrt(np.mean(np.square(self.errors))))


@dataclass
class Found:
    """Our intervals, those without privacy, the plainest private ones, and the truth, which zero is off by."""

    truth: float
    ours: Tally = field(default_factory=Tally)
    free: Tally = field(default_factory=Tally)
    plain: Tally = field(default_factory=Tally)
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def missed(self) -> int:
        return len(self.ours.covered) - sum(self.ours.covered)

    def beyond(self, chance: float) -> bool:
        """Whether there are more misses than intervals of 95% have with this chance."""
        return bool(binom.sf(self.missed - 1, len(self.ours.covered), 0.05) < chance)

    def line(self) -> str:
        kinds = (("ours", self.ours), ("AIPW", self.free), ("plainest", self.plain))
        told = [
            f"{name} {len(one.covered) - sum(one.covered)}/{len(one.covered)} missed, "
            f"half {np.median(one.halves):.3g}, RMSE {one.error:.3g}"
            for name, one in kinds
            if one.covered
        ]
        return "; ".join(
            [*told, f"zero {abs(self.truth):.3g}", *(f"{k}: {v}" for k, v in self.codes.items())]
        )


def run(cell: dict[str, Any], seed: int, number: int, draws: range, truth: float) -> Found:
    """Return what some replications of a cell come to; cells that are always refused are left early."""
    found = Found(truth)
    for draw in draws:
        people = People(cell, [seed, number, draw], cell["rows"])
        try:
            result = people.answer(draw)
        except CounterveilError as refusal:
            found.codes[refusal.code] += 1
            if draw - draws.start + 1 == REFUSED and not found.ours.covered:
                break
            continue
        found.ours.add(result.interval(), result.estimate, truth)
        if cell["measure"] == "difference" and 2 <= people.treated.sum() <= people.rows - 2:
            estimate, *ends = without_privacy(people, estimand=cell["estimand"])  # type: ignore[arg-type]
            found.free.add((ends[0], ends[1]), estimate, truth)
            budget = float(cell["epsilon"]), float(cell["delta"])
            estimate, *ends = plainest(people, cell["level"], *budget, draw)  # type: ignore[arg-type]
            found.plain.add((ends[0], ends[1]), estimate, truth)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--from", type=int, default=0, dest="start", help="number of the first cell")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    judged: Counter[str] = Counter()
    for number in range(given.start, given.start + given.cells):
        cell = drawn(given.seed, number)
        truth = People(cell, [given.seed, number, 1 << 20], 1_000_000).truth()
        found = run(cell, given.seed, number, range(FIRST), truth)
        kind = "refused" if not found.ours.covered else "answered"
        if found.ours.covered and found.beyond(SEEMS):
            found = run(cell, given.seed, number, range(FIRST, FIRST + AGAIN), truth)
            kind = "beyond" if found.beyond(SURE) else kind
        judged[kind] += 1
        if kind == "beyond":
            told = cell | {"shape": SHAPES[cell["shape"]].name}
            print(number, ", ".join(f"{k} {v}" for k, v in told.items()), "\n ", found.line(), flush=True)
    print(dict(judged), flush=True)


if __name__ == "__main__":
    main()
