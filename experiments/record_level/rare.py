"""Rare outcomes, and declared shares of trials.

Coverage / half-length of 95 % intervals of `cv.ate` of records, in half-lengths without privacy, which cover as the
column beside them says. An outcome is an amount that a row has with a chance; both follow an index of five covariates.
Settings were chosen on seed 1; the tables that pages quote are of seed 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import gamma, lognorm, norm, t

import counterveil as cv
from counterveil.data import Range, Study, Table
from counterveil.errors import CounterveilError
from counterveil.privacy import exact
from experiments import runner
from experiments.causal.plain import aipw, means

NORMAL = 1.96
# Levels at which amounts are averaged: a row's mean is found to about a thousandth of the amount's deviation.
LEVELS = (np.arange(2000) + 0.5) / 2000
Amount = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Shape:
    """Outcomes of a declared range: the chance of one that is not zero, and its amount at a level from 0 to 1.

    Both depend on the index, which has variance one, and on treatment.
    """

    bounds: tuple[float, float]
    chance: Callable[[np.ndarray, np.ndarray], np.ndarray]
    amount: Amount

    def drawn(self, index: np.ndarray, treated: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return outcomes of all rows."""
        some = rng.uniform(size=len(index)) < self.chance(index, treated)
        return np.where(some, self._clamped(index, treated, rng.uniform(size=len(index))), 0.0)

    def effect(self, index: np.ndarray) -> float:
        """Return the average effect on these rows, found on rows of quantiles of their index."""
        v = np.quantile(index, (np.arange(500) + 0.5) / 500)
        arms = []
        for arm in (0.0, 1.0):
            at = np.full(len(v), arm)
            amounts = self._clamped(v[:, None], at[:, None], LEVELS[None, :]).mean(axis=1)
            arms.append(float((self.chance(v, at) * amounts).mean()))
        return arms[1] - arms[0]

    def _clamped(self, v: np.ndarray, treated: np.ndarray, level: np.ndarray) -> np.ndarray:
        return np.clip(self.amount(v, treated, level), *self.bounds)


def always(v: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.ones_like(v)


def rare(rate: float, change: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda v, treated: np.minimum(rate * np.exp(0.5 * v - 0.125) * np.where(treated, change, 1.0), 1.0)


def bell(half: float) -> Shape:
    return Shape((-half, half), always, lambda v, treated, u: v + 0.5 * treated + norm.ppf(u))


def event(rate: float) -> Shape:
    return Shape((0.0, 1.0), rare(rate, 0.6), lambda v, _, u: 1.0 + 0 * (v + u))


def spend(rate: float, high: float) -> Shape:
    return Shape((0.0, high), rare(rate, 1.5), lambda v, _, u: lognorm.ppf(u, 0.8, scale=40.0) + 0 * v)


SHAPES = {
    "bell": bell(6.0),
    "bell, range x 5": bell(30.0),
    "bell, range x 20": bell(120.0),
    "binary 40 %": event(0.4),
    "binary 5 %": event(0.05),
    "binary 2 %": event(0.02),
    "binary .5 %": event(0.005),
    "spend": spend(0.01, 500.0),
    "spend, range x 5": spend(0.01, 2500.0),
    "gamma": Shape((0.0, 30.0), always, lambda v, treated, u: np.exp(0.3 * v + 0.2 * treated) * gamma.ppf(u, 2.0)),
    "t3": Shape((-30.0, 30.0), always, lambda v, treated, u: v + 0.5 * treated + t.ppf(u, 3.0)),
    "constant": Shape((0.0, 10.0), always, lambda v, _, u: 3.0 + 0 * (v + u)),
    "edge": Shape((0.0, 10.0), always, lambda v, treated, u: 9.0 + 0.5 * v + 0.3 * treated + norm.ppf(u)),
}  # fmt: skip


Draw = tuple[Table, float]


def drawn(shape: Shape, rows: int, share: float | None, count: int, seed: int) -> list[Draw]:
    """Return tables and effects: of a trial with this share treated, or of treatment that follows the index."""
    names = [f"x{j}" for j in range(5)]
    study = Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", shape.bounds),
        dict.fromkeys(names, Range(-1, 1)),
        assignment=cv.Trial() if share is not None else cv.Observational(),
    )
    found = []
    for draw in range(count):
        rng = np.random.default_rng([seed, rows, draw])
        x = rng.uniform(-1, 1, (rows, 5))
        index = x.sum(axis=1) / np.sqrt(5 / 3)
        treated = rng.uniform(size=rows) < (expit(0.7 * index) if share is None else share)
        columns = {"t": treated.astype(int), "y": shape.drawn(index, treated, rng)}
        table = Table.attach(columns | dict(zip(names, x.T, strict=True)), study)
        found.append((table, shape.effect(index)))
    return found


@dataclass
class Cell:
    """Answers to all draws: errors and half-lengths, and the code of a refusal."""

    errors: list[float]
    halves: list[float]
    refused: str = ""

    @property
    def length(self) -> float:
        """Median half-length."""
        return float(np.median(self.halves))

    def beside(self, length: float) -> str:
        """Return coverage / half-length, in this length."""
        if not self.errors:
            return self.refused
        covered = np.mean(np.abs(self.errors) <= np.array(self.halves))
        return f"{covered:.2f} / {self.length / length:.2f}"


def free(tables: list[Draw], trial: bool) -> Cell:
    """Return AIPW, or the difference in means of a trial, without privacy."""
    found = [(means if trial else aipw)(table, "ATE") for table, _ in tables]
    errors = [one[0] - truth for one, (_, truth) in zip(found, tables, strict=True)]
    return Cell(errors, [NORMAL * one[1] for one in found])


def private(tables: list[Draw], epsilon: str, delta: str, **asked: object) -> Cell:
    """Return the answers of `cv.ate`; `treated_share` is declared where it is among what is asked."""
    cell, declared = Cell([], []), asked.pop("treated_share", None)
    for place, (table, truth) in enumerate(tables):
        study = table.study._changed(
            treated_share=None if declared is None else exact(declared, "treated_share")
        )
        try:
            found = cv.ate(
                replace(table, study=study),
                study,
                protects="record",
                epsilon=epsilon,
                delta=delta,
                noise=cv.SeededNoise(place),
                **asked,
            )
        except CounterveilError as refusal:
            cell.refused = refusal.code
            continue
        low, high = found.untruncated_interval()
        cell.errors.append(found.estimate - truth)
        cell.halves.append((high - low) / 2)
    return cell


BUDGETS = [(epsilon, delta) for epsilon in ("2", "8") for delta in ("0", "1e-6")]


def observational(name: str, rows: int, *, seeds: range) -> runner.Row:
    """Return the row of a shape and number of rows; a table has one seed."""
    tables = drawn(SHAPES[name], rows, None, len(seeds), seeds.start)
    plain = free(tables, trial=False)
    unit = plain.length or 1.0
    return [name, rows, plain.beside(unit), *(private(tables, *budget).beside(unit) for budget in BUDGETS)]


def trial(name: str, rows: int, share: float, *, seeds: range) -> runner.Row:
    """Return half-lengths of a trial with the share declared, beside those without."""
    tables = drawn(SHAPES[name], rows, share, len(seeds), seeds.start)
    plain = free(tables, trial=True)
    open_share, known = (private(tables, "4", "0", **more) for more in ({}, {"treated_share": share}))
    words = [cell.beside(plain.length) for cell in (plain, open_share, known)]
    return [name, rows, share, *words, known.length / open_share.length]


def table(cells: list[tuple[str, int]]) -> runner.Table:
    """Return the table of studies that are not randomised."""
    return runner.Table(
        columns=("outcome", "rows :,", "without privacy", *(f"epsilon {e}, delta {d}" for e, d in BUDGETS)),
        cells=cells,
        row=observational,
        draws=40,
        first_seed=2,
        apart=True,
    )


IN_TRIALS = ("spend", "binary 40 %", "binary 5 %", "binary 2 %", "bell", "gamma", "edge", "bell, range x 5")
TABLES = {
    "rare": table([("binary 2 %", 5000), ("binary .5 %", 20_000)]),
    "shapes": table([(name, 5000) for name in SHAPES]),
    "shares": runner.Table(
        columns="outcome | rows :, | share :g | without privacy | not declared | declared | ratio :.2f",
        cells=[(name, 12_000, 0.5) for name in IN_TRIALS],
        row=trial,
        draws=40,
        first_seed=2,
        apart=True,
    ),
}
