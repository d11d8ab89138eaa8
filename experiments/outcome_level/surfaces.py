"""Studies whose mean outcomes are known for both arms, so that outcomes can be drawn anew on fixed covariates.

IHDP and ACIC 2016 come with their response surfaces. For NHEFS, 401(k), LaLonde and STAR the surfaces are boosted
trees fitted to the outcomes of each arm, and the noise is drawn from their residuals. Bent, varied and wide studies
are simulated. The declared range is that of 40 draws, widened by 2 % at each end, times `wide`.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit

from counterveil.data import Categories, Range, Study, Table
from counterveil.datasets import acic2016, ihdp, lalonde, nhefs, pension401k, star
from counterveil.datasets.dataset import Dataset

EFFECT = 1.0


@dataclass(frozen=True)
class Surface:
    """An attached table, mean outcomes of its rows in both arms, and how noise is drawn around them."""

    name: str
    frame: dict[str, np.ndarray]
    table: Table
    mu0: np.ndarray
    mu1: np.ndarray
    noise: Callable[[np.random.Generator], np.ndarray]

    @property
    def mean(self) -> np.ndarray:
        """Mean outcomes under the treatments that were given."""
        return np.where(self.table.treated, self.mu1, self.mu0)

    @property
    def noise_sd(self) -> float:
        return float(np.sqrt(np.mean([self.noise(np.random.default_rng(k)).var() for k in range(5)])))

    def effect(self, estimand: str = "ATE") -> float:
        """The sample's average effect over those whose effect is asked for."""
        treated = self.table.treated
        whose = {"ATE": np.ones(len(treated), bool), "ATT": treated, "ATC": ~treated}[estimand]
        return float((self.mu1 - self.mu0)[whose].mean())

    def outcomes(self, seed: int) -> np.ndarray:
        return self.mean + self.noise(np.random.default_rng([seed, 77]))

    def drawn(self, seed: int) -> dict[str, np.ndarray]:
        """Return the frame with outcomes drawn anew."""
        return self.frame | {self.table.study.outcome: self.outcomes(seed)}


def surface(name: str, data: Dataset, mu0: np.ndarray, mu1: np.ndarray, noise, wide: float = 1.0) -> Surface:
    """Return the surface with a range declared from 40 of its draws."""
    outcome = data.study.outcome
    table = Table.attach(data.frame, replace(data.study, outcome_range=(-1e6, 1e6), randomised=False))
    mean = np.where(table.treated, mu1, mu0)
    draws = [mean + noise(np.random.default_rng([k, 78])) for k in range(40)]
    low, high = min(y.min() for y in draws), max(y.max() for y in draws)
    middle, half = (low + high) / 2, 0.52 * wide * (high - low)
    study = replace(
        data.study,
        outcome_range=(round(float(middle - half), 6), round(float(middle + half), 6)),
        randomised=False,
        missing={},
    )
    frame = dict(data.frame) | {outcome: draws[0]}
    return Surface(name, frame, Table.attach(frame, study), mu0, mu1, noise)


def gaussian(sd: float | np.ndarray, n: int):
    return lambda rng: sd * rng.normal(size=n)


def _columns(path: str, names: list[str]) -> list[np.ndarray]:
    with gzip.open(Path(os.environ["COUNTERVEIL_DATA"], path), "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    return [np.array([float(row[name]) for row in rows]) for name in names]


@cache
def ihdp_surface(number: int, wide: float = 1.0) -> Surface:
    mu0, mu1 = _columns(f"ihdp/ihdp_npci_{number}.csv.gz", ["mu0", "mu1"])
    return surface(f"IHDP {number}", ihdp(number), mu0, mu1, gaussian(1.0, len(mu0)), wide)


@cache
def acic_surface(setting: int, wide: float = 1.0) -> Surface:
    y0, y1, mu0, mu1 = _columns(f"acic2016/zymu_{setting}.csv.gz", ["y0", "y1", "mu0", "mu1"])
    sd = float(np.sqrt(((y0 - mu0) ** 2 + (y1 - mu1) ** 2).mean() / 2))
    return surface(f"ACIC {setting}", acic2016(setting), mu0, mu1, gaussian(sd, len(mu0)), wide)


@cache
def fitted_surface(name: str, wide: float = 1.0) -> Surface:
    """Return a real study with surfaces fitted by boosted trees in each arm, and its residuals as noise."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    load = {"NHEFS": nhefs, "401(k)": pension401k, "LaLonde": lalonde, "STAR": star}[name]
    data = load()
    table = Table.attach(data.frame, data.study)
    columns, labels = [], []
    for key, domain in data.study.covariates.items():
        columns.append(np.asarray(table.covariates[key], float))
        labels.append(isinstance(domain, Categories))
    x = np.column_stack(columns)
    low, high = (float(end) for end in table.study.outcome_range)
    y, treated = low + float(table.outcome_unit) * table.outcome, table.treated
    means = []
    for arm in (False, True):
        model = HistGradientBoostingRegressor(
            max_iter=60, learning_rate=0.1, max_leaf_nodes=12, min_samples_leaf=20, random_state=0
        )
        means.append(model.fit(x[treated == arm], y[treated == arm]).predict(x))
    left = y - np.where(treated, means[1], means[0])
    left = left - left.mean()
    frame = {key: np.asarray(value) for key, value in table.covariates.items()}
    rebuilt = _recoded(data, table, frame, y)
    return surface(name, rebuilt, means[0], means[1], lambda rng: rng.choice(left, len(left)), wide)


def _recoded(data: Dataset, table: Table, frame: dict[str, np.ndarray], y: np.ndarray) -> Dataset:
    """Return the data set with the covariates as attached: labels as codes, no missing values."""
    domains = {
        key: Categories(list(range(len(domain.labels)))) if isinstance(domain, Categories) else domain
        for key, domain in data.study.covariates.items()
    }
    domains = {
        key: domain if isinstance(domain, Categories | Range) else type(domain)()
        for key, domain in domains.items()
    }
    study = Study("t", "y", data.study.outcome_range, domains, control=0, randomised=False)
    columns = {
        key: value.astype(int) if not isinstance(domains[key], Range) else value
        for key, value in frame.items()
    }
    return replace(data, frame={"t": table.treated.astype(int), "y": y, **columns}, study=study)


BENDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "square": lambda s: s**2 / 1.4,
    "hinge": lambda s: 1.7 * np.maximum(s, 0.0),
    "wave": lambda s: 1.4 * np.sin(2.0 * s),
    "step": lambda s: 2.0 * np.tanh(4.0 * (s - 0.5)),
    "peak": lambda s: 3.0 * np.exp(-2.0 * (s - 0.7) ** 2),
}


@cache
def bent_surface(
    bend: str, n: int, seed: int, effects: float = 0.0, wide: float = 1.0, d: int = 5
) -> Surface:
    """One index of five covariates moves treatment and, bent, outcomes; the effect varies with one of them."""
    rng = np.random.default_rng([seed, n, d])
    x = rng.uniform(-1.0, 1.0, (n, d))
    b = rng.normal(size=d)
    s = x @ (b / np.linalg.norm(b)) * np.sqrt(3.0)
    t = rng.uniform(size=n) < expit(1.0 * s)
    mu0 = BENDS[bend](s)
    mu1 = mu0 + EFFECT + effects * (x[:, 0] + 0.5 * s)
    names = [f"x{j}" for j in range(d)]
    study = Study("t", "y", (0, 1), dict.fromkeys(names, Range(-1, 1)), control=0, randomised=False)
    frame = {"t": t.astype(int), "y": mu0, **dict(zip(names, x.T, strict=True))}
    data = Dataset("bent", frame, study, "simulated", "none")
    label = f"bent {bend} {n}" + (f" varied {effects:g}" if effects else "") + f" #{seed}"
    return surface(label, data, mu0, mu1, gaussian(0.5, n), wide)


@cache
def drawn_surface(seed: int, wide: float = 1.0) -> Surface:
    """The covariates of ACIC 2016 with treatments and surfaces drawn from a family like that of its settings.

    Log-odds of treatment and mean outcomes are sums of lines, squares, cubes, steps and products of a few covariates,
    outcomes also of exponentials. They share none, some or most of their terms; effects vary not at all to much.
    """
    base = acic2016(1)
    rng = np.random.default_rng([seed, 2016])
    table = Table.attach(base.frame, base.study)
    columns = [np.asarray(table.covariates[k], float) for k in base.study.covariates]
    numbers = [
        c
        for c, d in zip(columns, base.study.covariates.values(), strict=True)
        if not isinstance(d, Categories)
    ]
    z = [np.clip((c - c.mean()) / c.std(), -3.0, 3.0) for c in numbers if c.std() > 0.1]
    treat = [
        _term(z, rng, ("line", "square", "cube", "step", "product")) for _ in range(int(rng.integers(4, 11)))
    ]
    logit = sum(treat)
    logit = (logit - logit.mean()) / logit.std() * rng.uniform(0.6, 1.4) + rng.choice([-1.2, -0.6, 0.0])
    t = rng.uniform(size=table.rows) < expit(logit)
    shared = [term * rng.normal() for term in treat if rng.uniform() < rng.choice([0.0, 0.25, 0.75])]
    kinds = ("line", "square", "cube", "step", "product", "exp")
    own = [_term(z, rng, kinds) for _ in range(int(rng.integers(5, 12)))]
    mean = sum([*shared, *own])
    mean = 5.0 * (mean - mean.mean()) / mean.std()
    varied = sum(_term(z, rng, kinds) for _ in range(3)) + sum(shared[:2])
    effects = 3.0 + rng.choice([0.0, 1.0, 2.0]) * (varied - varied.mean()) / varied.std()
    frame = dict(base.frame) | {"z": t.astype(int)}
    data = replace(base, frame=frame)
    return surface(f"drawn {seed}", data, mean, mean + effects, gaussian(1.0, len(t)), wide)


def _term(z: list[np.ndarray], rng: np.random.Generator, kinds: tuple[str, ...]) -> np.ndarray:
    """Return one random term of variance one."""
    kind = rng.choice(kinds)
    one, other = (z[int(rng.integers(len(z)))] for _ in range(2))
    found = {
        "line": lambda: one,
        "square": lambda: one**2 + rng.normal() * one,
        "cube": lambda: one**3 + rng.normal() * one**2,
        "step": lambda: 1.0 * (one > np.quantile(one, rng.uniform(0.2, 0.8))),
        "product": lambda: one * other,
        "exp": lambda: np.exp(0.7 * one),
    }[str(kind)]()
    return (
        (found - found.mean())
        / max(float(found.std()), 1e-9)
        * rng.normal(1.0, 0.5)
        * rng.choice([-1.0, 1.0])
    )
