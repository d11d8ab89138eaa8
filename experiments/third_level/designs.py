"""Covariates that stay, with treatments and outcomes drawn anew from known propensities and mean outcomes.

NHEFS and 401(k) have propensities and means fitted to the data set; births is simulated. "Own" designs were written for
this experiment. The others follow surfaces of Nie and Wager (2021) and the form of Kang and Schafer (2007).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from counterveil.data import Observational, Outcome, Range, Study, Table, Treatment
from counterveil.data.features import feature_map
from counterveil.datasets import nhefs, pension401k
from counterveil.datasets.dataset import Dataset
from experiments.causal.designs import births as born

SEED = 47_000
# Rows of the longest weights that a fitted propensity may give.
_FARTHEST = 0.04


@dataclass(frozen=True)
class Design:
    """A study, its covariates, every row's propensity and mean outcomes of both arms, and how outcomes are drawn."""

    name: str
    study: Study
    covariates: dict[str, Any]
    propensity: np.ndarray
    means: tuple[np.ndarray, np.ndarray]
    outcomes: Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]

    def drawn(self, number: int) -> dict[str, Any]:
        """Return the columns of one draw."""
        rng = np.random.default_rng([SEED, number])
        treated = rng.uniform(size=len(self.propensity)) < self.propensity
        y = self.outcomes(rng, treated, np.where(treated, self.means[1], self.means[0]))
        low, high = (float(bound) for bound in self.study.outcome_range)
        study = self.study
        return {
            **self.covariates,
            study.treatment: np.where(treated, study.treated, 0).astype(np.int64),
            study.outcome: np.clip(y, low, high),
        }

    def truth(self, estimand: str) -> float:
        """Return the average effect, rows weighted by the estimand."""
        e = self.propensity
        weights = {"ATE": np.ones(len(e)), "ATT": e, "ATC": 1 - e, "ATO": e * (1 - e)}[estimand]
        return float(np.average(self.means[1] - self.means[0], weights=weights))


def _events(rng: np.random.Generator, _treated: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return (rng.uniform(size=len(mean)) < mean).astype(float)


def _normal(sd: float) -> Callable[..., np.ndarray]:
    return lambda rng, _treated, mean: mean + sd * rng.normal(size=len(mean))


def _study(columns: int, bounds: tuple[float, float], span: tuple[float, float]) -> Study:
    names = {f"x{j + 1}": Range(*span) for j in range(columns)}
    return Study(Treatment("treated", control=0), Outcome("y", bounds), names, assignment=Observational())


def _simulated(
    name: str,
    x: np.ndarray,
    e: np.ndarray,
    means: tuple[np.ndarray, np.ndarray],
    outcomes: Callable[..., np.ndarray],
    bounds: tuple[float, float],
    span: tuple[float, float],
) -> Design:
    columns = {f"x{j + 1}": column for j, column in enumerate(x.T)}
    return Design(name, _study(x.shape[1], bounds, span), columns, e, means, outcomes)


def _fitted(data: Dataset, name: str) -> Design:
    """Return a data set with a logistic model on lines and squares, and ridge regressions on squares and products."""
    study, table = data.study, Table.attach(data.frame, data.study)
    low = float(study.outcome_range[0])
    y = low + float(table.outcome_unit) * table.outcome.astype(float)
    whole = feature_map(study, 2)
    x = whole.block(table.covariates, slice(0, table.rows))
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    lines = list(range(len(whole.columns)))
    lines += [len(lines) + k for k, (i, j) in enumerate(whole.pairs) if i == j]
    e = np.clip(_logistic(x[:, lines], table.treated.astype(float)), _FARTHEST, 1 - _FARTHEST)
    z = np.column_stack([np.ones(len(x)), x])
    means, left = [], []
    for arm in (~table.treated, table.treated):
        gram = z[arm].T @ z[arm] + np.diag([1e-6] + [0.02 * arm.sum()] * x.shape[1])
        means.append(z @ np.linalg.solve(gram, z[arm].T @ y[arm]))
        left.append((y - means[-1])[arm] - (y - means[-1])[arm].mean())

    def outcomes(rng: np.random.Generator, treated: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return mean + np.where(treated, rng.choice(left[1], len(mean)), rng.choice(left[0], len(mean)))

    covariates = {key: data.frame[key] for key in study.covariates}
    # The means of outcomes that are clamped, from many draws of the errors.
    ends = [float(bound) for bound in study.outcome_range]
    rng = np.random.default_rng(SEED)
    means = [
        np.mean([np.clip(m + rng.choice(own, len(m)), *ends) - m for _ in range(200)], axis=0).mean() + m
        for m, own in zip(means, left, strict=True)
    ]
    return Design(name, study, covariates, e, (means[0], means[1]), outcomes)


def _logistic(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    z, b = np.column_stack([np.ones(len(x)), x]), np.zeros(x.shape[1] + 1)
    for _ in range(30):
        e = expit(z @ b)
        gram = (z * (e * (1 - e))[:, None]).T @ z + np.eye(len(b))
        b = b + np.linalg.solve(gram, z.T @ (t - e) - b)
    return np.asarray(expit(z @ b))


def births() -> Design:
    """Return births with the propensities of a logistic model of their treatments."""
    made = born()
    x = np.column_stack([made.columns[name] for name in made.study.covariates])
    e = _logistic((x - x.mean(axis=0)) / x.std(axis=0), made.treated.astype(float))
    covariates = {name: made.columns[name] for name in made.study.covariates}
    return Design("births", made.study, covariates, e, made.means, _normal(530.0))


def rare(rate: float, n: int) -> Design:
    """Own: events of this rate, five covariates that move treatment and events alike."""
    rng = np.random.default_rng([SEED, 1, n])
    x = rng.uniform(-1, 1, (n, 5))
    e = expit(x @ [0.8, 0.5, 0.0, -0.4, 0.3])
    index = x @ [0.9, 0.4, 0.5, 0.0, 0.3]
    base = rate * np.exp(index) / np.exp(index).mean()
    return _simulated(
        f"own: {100 * rate:g}% events", x, e, (1.2 * base, 0.8 * base), _events, (0, 1), (-1, 1)
    )


def twins(n: int = 12_000) -> Design:
    """Own: rows, covariates and events (16%) as many as a register of twins has."""
    rng = np.random.default_rng([SEED, 7])
    x = rng.uniform(-1, 1, (n, 8))
    e = expit(x @ [0.5, 0.4, -0.3, 0.3, 0.2, 0.0, -0.2, 0.0])
    index = x @ [0.5, 0.3, 0.0, 0.4, 0.2, 0.3, 0.0, -0.3]
    base = 0.16 * np.exp(index) / np.exp(index).mean()
    return _simulated("own: twins", x, e, (base, base - 0.02), _events, (0, 1), (-1, 1))


def spend(n: int = 10_000) -> Design:
    """Own: one in a hundred buys, for sums of a skewed distribution up to 500."""
    rng = np.random.default_rng([SEED, 2])
    x = rng.uniform(-1, 1, (n, 4))
    e = expit(x @ [0.6, -0.5, 0.3, 0.0])
    chance = 0.01 * np.exp(x @ [0.6, 0.4, 0.0, 0.3])
    size = np.minimum(np.exp(rng.normal(3.5, 0.8, 20_000)), 500.0)

    def outcomes(rng: np.random.Generator, _treated: np.ndarray, mean: np.ndarray) -> np.ndarray:
        bought = rng.uniform(size=len(mean)) < mean / size.mean()
        return np.where(bought, rng.choice(size, len(mean)), 0.0)

    means = chance * size.mean(), 1.5 * chance * size.mean()
    return _simulated("own: spend", x, e, means, outcomes, (0, 500), (-1, 1))


def steep(n: int = 5_000) -> Design:
    """Own: propensities from .02 to .98, an effect that varies."""
    rng = np.random.default_rng([SEED, 3])
    x = rng.uniform(-1, 1, (n, 6))
    e = expit(x @ [2.0, 1.2, -0.8, 0.5, 0.0, 0.0])
    base = x @ [1.0, 0.5, 0.0, 0.5, 0.5, 0.0]
    return _simulated(
        "own: steep propensities", x, e, (base, base + 0.5 + 0.3 * x[:, 0]), _normal(1.0), (-8, 8), (-1, 1)
    )


def outliers(share: float, n: int = 5_000) -> Design:
    """Own: this share of controls, and 0.4 points more of the treated, lie 40 standard deviations off."""
    rng = np.random.default_rng([SEED, 8])
    x = rng.uniform(-1, 1, (n, 3))
    rates = share, share + 0.004

    def outcomes(rng: np.random.Generator, treated: np.ndarray, mean: np.ndarray) -> np.ndarray:
        rate = np.where(treated, rates[1], rates[0])
        return mean + 40 * ((rng.uniform(size=len(mean)) < rate) - rate) + rng.normal(size=len(mean))

    base = 0.5 * x[:, 0]
    means = base + 40 * rates[0], base + 40 * rates[1]
    name = f"own: {100 * share:g}% outliers"
    return _simulated(name, x, expit(0.4 * x[:, 0]), means, outcomes, (-10, 50), (-1, 1))


def nie_wager_a(n: int = 5_000) -> Design:
    rng = np.random.default_rng([SEED, 4])
    x = rng.uniform(size=(n, 5))
    wave = np.sin(np.pi * x[:, 0] * x[:, 1])
    base = wave + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3] + 0.5 * x[:, 4]
    effect = (x[:, 0] + x[:, 1]) / 2
    means = base - effect / 2, base + effect / 2
    return _simulated("Nie-Wager A", x, np.clip(wave, 0.1, 0.9), means, _normal(1.0), (-5, 9), (0, 1))


def nie_wager_c(n: int = 2_000) -> Design:
    rng = np.random.default_rng([SEED, 5])
    x = rng.normal(size=(n, 5))
    base = 2 * np.log1p(np.exp(x[:, :3].sum(axis=1)))
    e = expit(x[:, 1] + x[:, 2])
    return _simulated("Nie-Wager C", x, e, (base - 0.5, base + 0.5), _normal(1.0), (-6, 22), (-5, 5))


def kang_schafer(n: int = 1_000) -> Design:
    """Covariates that are curved functions of those that treatment and outcome are linear in."""
    rng = np.random.default_rng([SEED, 6])
    u = rng.normal(size=(n, 4))
    e = expit(-u[:, 0] + 0.5 * u[:, 1] - 0.25 * u[:, 2] - 0.1 * u[:, 3])
    base = 210 + u @ [27.4, 13.7, 13.7, 13.7]
    x = np.column_stack(
        [
            np.exp(u[:, 0] / 2),
            u[:, 1] / (1 + np.exp(u[:, 0])) + 10,
            (u[:, 0] * u[:, 2] / 25 + 0.6) ** 3,
            (u[:, 1] + u[:, 3] + 20) ** 2 / 100,
        ]
    )
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return _simulated("Kang-Schafer form", x, e, (base, base + 10), _normal(1.0), (0, 420), (-6, 6))


DESIGNS: dict[str, Callable[[], Design]] = {
    "nhefs": lambda: _fitted(nhefs(), "NHEFS"),
    "births": births,
    "401k": lambda: _fitted(pension401k(), "401(k)"),
    "rare2": lambda: rare(0.02, 5_000),
    "rare.5": lambda: rare(0.005, 20_000),
    "spend": spend,
    "steep": steep,
    "twins": twins,
    "far.2": lambda: outliers(0.002),
    "far2": lambda: outliers(0.02),
    "nwa": nie_wager_a,
    "nwc": nie_wager_c,
    "ks": kang_schafer,
}
