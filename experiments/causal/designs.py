"""Designs with known mean outcomes: covariates and treatments stay as they are, outcomes are drawn anew.

Simulated people come from seeds that no setting was chosen on. A real data set without known mean outcomes gets those
of a ridge regression on squares and products in each arm, and errors drawn from its residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from counterveil.data import Observational, Outcome, Range, Study, Treatment
from counterveil.privacy import exact

Errors = Callable[[np.random.Generator], np.ndarray]
# Seeds of simulated people. Guards of the record level were set on 77,000 (experiments/record_effect/RESULTS.md).
FIRST_SEED = 91_000


@dataclass(frozen=True)
class Design:
    """A study, its columns without the outcome, the mean outcome of every row in both arms, and how errors are drawn.

    Means are those of the untreated and the treated.
    """

    name: str
    study: Study
    columns: dict[str, Any]
    treated: np.ndarray
    means: tuple[np.ndarray, np.ndarray]
    errors: Errors
    levels: tuple[str, ...] = ("outcome", "record")
    estimands: tuple[str, ...] = ("ATE",)
    binary: bool = False
    # Of the outcomes that are clamped to the range, where that changes them.
    expected: tuple[np.ndarray, np.ndarray] | None = None

    def outcomes(self, draw: int) -> np.ndarray:
        """Return the outcomes of a draw, inside the declared range."""
        rng = np.random.default_rng([FIRST_SEED, draw])
        mean = np.where(self.treated, self.means[1], self.means[0])
        if self.binary:
            return (rng.uniform(size=len(mean)) < mean).astype(float)
        low, high = (float(bound) for bound in self.study.outcome_range)
        return np.clip(mean + self.errors(rng), low, high)

    def truth(self, estimand: str) -> float:
        """Return the average effect over the rows that the estimand names."""
        rows = {"ATE": np.ones(len(self.treated), bool), "ATT": self.treated, "ATC": ~self.treated}[estimand]
        untreated, treated = self.expected or self.means
        return float((treated - untreated)[rows].mean())

    def widened(self, times: float) -> Design:
        """Return the design with a range declared so many times too wide, around the same middle."""
        low, high = (float(bound) for bound in self.study.outcome_range)
        middle, half = (low + high) / 2, (high - low) / 2 * times
        study = replace_range(self.study, (middle - half, middle + half))
        return replace(self, name=f"{self.name}, range x {times:g}", study=study)


def replace_range(study: Study, bounds: tuple[float, float]) -> Study:
    return study._changed(outcome_range=tuple(exact(round(bound, 6), "outcome") for bound in bounds))


def normal(sd: float | np.ndarray, n: int) -> Errors:
    return lambda rng: sd * rng.normal(size=n)


def simulated(
    name: str,
    x: np.ndarray,
    treated: np.ndarray,
    means: tuple[np.ndarray, np.ndarray],
    errors: Errors,
    bounds: tuple[float, float],
    covariates: tuple[float, float] = (-1.0, 1.0),
    **more: Any,
) -> Design:
    names = [f"x{j + 1}" for j in range(x.shape[1])]
    study = Study(
        Treatment("treated", control=0),
        Outcome("y", bounds),
        dict.fromkeys(names, Range(*covariates)),
        assignment=Observational(),
    )
    columns = {"treated": treated.astype(np.int64)} | dict(zip(names, x.T, strict=True))
    return Design(name, study, columns, treated, means, errors, **more)


def varying(slope: float, n: int, seed: int = 0, pull: float = 0.7) -> Design:
    """Five covariates, one index that moves treatment, outcome and, with this slope, the effect."""
    rng = np.random.default_rng([FIRST_SEED, seed, n])
    x = rng.uniform(-1, 1, (n, 5))
    index = x.sum(axis=1) / np.sqrt(5 / 3)
    treated = rng.uniform(size=n) < expit(pull * index - 0.5)
    effect = 1 + slope * index
    name = f"varying {slope:g}, n = {n:,}"
    return simulated(
        name,
        x,
        treated,
        (index, index + effect),
        normal(1.0, n),
        (-10, 10),
        estimands=("ATE", "ATT", "ATC"),
    )


def bent(n: int, seed: int = 0) -> Design:
    """A single index whose bend moves both treatment and outcome."""
    rng = np.random.default_rng([FIRST_SEED, 1, seed, n])
    x = rng.uniform(-1, 1, (n, 5))
    index = x @ np.array([1.0, 0.8, 0.6, 0.4, 0.2]) / 0.856
    bend = np.abs(index) + 0.3 * index
    treated = rng.uniform(size=n) < expit(1.2 * (bend - bend.mean()))
    name = f"bent index, n = {n:,}"
    return simulated(name, x, treated, (bend, bend + 1.0), normal(0.7, n), (-4, 8))


def correlated(n: int, aligned: bool, seed: int = 0) -> Design:
    """Twenty skewed covariates that hang together; aligned: what moves treatment moves outcomes likewise."""
    rng = np.random.default_rng([FIRST_SEED, 2, seed, n])
    d = 20
    x = ndtr(np.sqrt(0.6) * rng.normal(size=(n, d)) + np.sqrt(0.4) * rng.normal(size=(n, 1))) ** 2
    a = rng.uniform(-1, 1, d)
    b = 0.3 * a if aligned else rng.uniform(-0.3, 0.3, d)
    treated = rng.uniform(size=n) < expit((2 * x - 1) @ a)
    base = x @ b
    effect = 0.5 + 0.3 * (x[:, 0] - x[:, 0].mean())
    name = f"correlated{', aligned' if aligned else ''}, n = {n:,}"
    return simulated(
        name, x, treated, (base, base + effect), normal(0.3, n), (-3, 4), (0.0, 1.0), estimands=("ATE", "ATT")
    )


def births(n: int = 4642, seed: int = 0) -> Design:
    """People like those of a birth-weight study: 20 correlated covariates, a fifth treated, grams."""
    rng = np.random.default_rng([FIRST_SEED, 3, seed, n])
    latent = np.sqrt(0.7) * rng.normal(size=(n, 20)) + np.sqrt(0.3) * rng.normal(size=(n, 1))
    flags = (latent[:, :14] > rng.uniform(-0.5, 1.3, 14)).astype(float)
    numbers = np.column_stack(
        [np.clip(26 + 5.5 * latent[:, 14], 13, 46), np.clip(np.round(12.5 + 2.5 * latent[:, 15]), 0, 17)]
        + [np.clip(np.round(np.exp(0.6 * latent[:, k]) - 0.6), 0, 12) for k in range(16, 20)]
    )
    x = np.column_stack([flags, numbers])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    pull = rng.normal(size=20) / 5
    slopes = 35 * (0.8 * rng.normal(size=20) - 3 * pull)
    treated = rng.uniform(size=n) < expit(z @ pull - 1.6)
    base = 3350 + z @ slopes
    effect = -220 + 40 * z[:, 14]
    names = [f"x{j + 1}" for j in range(20)]
    ranges = [Range(0, 1)] * 14 + [Range(12, 48), Range(0, 17)] + [Range(0, 40)] * 4
    study = Study(
        Treatment("treated", control=0),
        Outcome("y", (200, 5600)),
        dict(zip(names, ranges, strict=True)),
        assignment=Observational(),
    )
    columns = {"treated": treated.astype(np.int64)} | dict(zip(names, x.T, strict=True))
    return Design(
        "births",
        study,
        columns,
        treated,
        (base, base + effect),
        normal(530.0, n),
        estimands=("ATE", "ATT", "ATC"),
    )


def yes_or_no(n: int, seed: int = 0) -> Design:
    """An outcome of 0 or 1, eight covariates, 30 % treated."""
    rng = np.random.default_rng([FIRST_SEED, 4, seed, n])
    x = rng.uniform(-1, 1, (n, 8))
    treated = rng.uniform(size=n) < expit(x @ np.linspace(0.9, -0.5, 8) - 0.9)
    index = x @ np.linspace(0.8, 0.1, 8) - 1.0
    means = expit(index), expit(index + 0.5)
    return simulated(
        f"0 or 1, n = {n:,}", x, treated, means, normal(0.0, n), (0, 1), binary=True, estimands=("ATE", "ATT")
    )


def nie_wager(kind: str, n: int, seed: int = 0) -> Design:
    """The four set-ups of Nie and Wager (2021), with five of their covariates and unit errors."""
    rng = np.random.default_rng([FIRST_SEED, 5, ord(kind), seed, n])
    x = rng.uniform(0, 1, (n, 5)) if kind == "A" else np.clip(rng.normal(size=(n, 5)), -3, 3)
    a, b, c, d, e = x.T
    first, second = np.maximum(a + b + c, 0), np.maximum(d + e, 0)
    base, propensity, effect = {
        "A": (
            np.sin(np.pi * a * b) + 2 * (c - 0.5) ** 2 + d + 0.5 * e,
            np.clip(np.sin(np.pi * a * b), 0.1, 0.9),
            (a + b) / 2,
        ),
        "B": (np.maximum(np.maximum(a + b, c), 0) + second, np.full(n, 0.5), a + np.log1p(np.exp(b))),
        "C": (2 * np.log1p(np.exp(a + b + c)), 1 / (1 + np.exp(b + c)), np.ones(n)),
        "D": ((first + second) / 2, 1 / (1 + np.exp(-a) + np.exp(-b)), first - second),
    }[kind]
    treated = rng.uniform(size=n) < propensity
    means, bounds = (base - effect / 2, base + effect / 2), (0, 1) if kind == "A" else (-3, 3)
    return simulated(f"Nie-Wager {kind}, n = {n:,}", x, treated, means, normal(1.0, n), (-8, 14), bounds)


def kang_schafer(n: int, seed: int = 0) -> Design:
    """Kang and Schafer's (2007) transformed covariates, with an effect of 10."""
    rng = np.random.default_rng([FIRST_SEED, 6, seed, n])
    z = rng.normal(size=(n, 4))
    treated = rng.uniform(size=n) < expit(z @ np.array([-1.0, 0.5, -0.25, -0.1]))
    base = 210 + z @ np.array([27.4, 13.7, 13.7, 13.7])
    x = np.column_stack(
        [
            np.exp(z[:, 0] / 2),
            z[:, 1] / (1 + np.exp(z[:, 0])) + 10,
            (z[:, 0] * z[:, 2] / 25 + 0.6) ** 3,
            (z[:, 1] + z[:, 3] + 20) ** 2,
        ]
    )
    ranges = [Range(0, 6), Range(6, 14), Range(0, 1), Range(200, 650)]
    x = np.column_stack(
        [np.clip(column, float(one.lo), float(one.hi)) for column, one in zip(x.T, ranges, strict=True)]
    )
    names = [f"x{j + 1}" for j in range(4)]
    study = Study(
        Treatment("treated", control=0),
        Outcome("y", (0, 400)),
        dict(zip(names, ranges, strict=True)),
        assignment=Observational(),
    )
    columns = {"treated": treated.astype(np.int64)} | dict(zip(names, x.T, strict=True))
    return Design(f"Kang-Schafer, n = {n:,}", study, columns, treated, (base, base + 10), normal(1.0, n))


def twins(n: int = 12_000, seed: int = 0) -> Design:
    """People like pairs of twins: eight covariates, most of them flags, an outcome of 0 or 1 that 16 % have."""
    rng = np.random.default_rng([FIRST_SEED, 7, seed, n])
    latent = np.sqrt(0.8) * rng.normal(size=(n, 8)) + np.sqrt(0.2) * rng.normal(size=(n, 1))
    x = np.column_stack(
        [latent[:, :5] > rng.uniform(-0.5, 1.0, 5), np.clip(latent[:, 5:] / 3, -1, 1)]
    ).astype(float)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    treated = rng.uniform(size=n) < expit(z @ rng.normal(0, 0.3, 8))
    index = z @ rng.normal(0, 0.35, 8) - 1.75
    means = expit(index), expit(index - 0.15)
    return simulated(f"twins-like, n = {n:,}", x, treated, means, normal(0.0, n), (0, 1), binary=True)
