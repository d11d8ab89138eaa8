"""Outcomes redrawn on fixed covariates and treatments: how intervals compare with AIPW without privacy.

Covariates, treatments and both lines of a study stay as they are; a draw has new residuals and new noise. "births" is
made like a register of 4,642 births with 20 correlated covariates, half of them labels; "NHEFS" has the covariates,
treatments, lines and residuals of that study (COUNTERVEIL_DATA); in "varying" effects follow the index that treatment
follows; "skewed" has aligned coefficients on skewed covariates that hang together; in "bent" treatment and outcome
follow an index and its square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

import counterveil as cv
from counterveil.data import Binary, Range, Study, Table

DELTA = "1e-6"


@dataclass(frozen=True)
class Fixed:
    """A study whose outcomes can be redrawn; columns in [-1, 1]."""

    x: np.ndarray
    labels: np.ndarray  # which columns have two labels
    t: np.ndarray
    gain: np.ndarray  # everybody's effect
    outcome: Callable[[np.random.Generator], np.ndarray]
    bounds: tuple[float, float]

    def truth(self, estimand: str) -> float:
        whose = {"ATE": np.ones_like(self.t), "ATT": self.t, "ATC": 1 - self.t}[estimand]
        return float(self.gain[whose == 1].mean())

    def table(self, y: np.ndarray) -> Table:
        names = [f"x{j}" for j in range(self.x.shape[1])]
        domains = {
            name: Binary() if two else Range(-1, 1) for name, two in zip(names, self.labels, strict=True)
        }
        study = Study(
            cv.Treatment("t", control=0),
            cv.Outcome("y", self.bounds),
            domains,
            assignment=cv.Observational(),
        )
        columns = {
            name: (column > 0).astype(int) if two else column
            for name, column, two in zip(names, self.x.T, self.labels, strict=True)
        }
        return Table.attach(columns | {"t": self.t, "y": y}, study)


def births(seed: int, n: int = 4642, d: int = 20) -> Fixed:
    r = np.random.default_rng([seed, 1])
    loadings = 0.6 * r.normal(size=(d, 4))
    z = r.normal(size=(n, 4)) @ loadings.T + r.normal(size=(n, d))
    z /= np.sqrt((loadings**2).sum(axis=1) + 1)
    labels = np.arange(d) % 2 == 0
    x = np.where(
        labels, np.where(z > r.uniform(-0.3, 1.5, d), 1.0, -1.0), 2 * ndtr(z) ** r.uniform(0.7, 2.5, d) - 1
    )
    a = r.normal(size=d)
    index, mean = standard(x @ a), 0.35 * standard(x @ (0.7 * r.normal(size=d) + 0.7 * a))
    t = (r.random(n) < expit(-1.6 + 0.7 * index)).astype(int)
    gain = -0.4 + 0.1 * index
    return Fixed(x, labels, t, gain, lambda g: mean + gain * t + g.normal(size=n), (-6.0, 6.0))


def nhefs(_: int) -> Fixed:
    from counterveil.datasets import nhefs as load

    data = load()
    study, frame, columns, labels = data.study, data.frame, [], []
    for name, domain in study.covariates.items():
        values = np.asarray(frame[name])
        if isinstance(domain, Range):
            low, high = domain.floats()
            columns.append(2 * np.clip((values.astype(float) - low) / (high - low), 0, 1) - 1)
            labels.append(False)
        else:
            own = domain.labels[1:] if isinstance(domain, Binary) else domain.labels[:-1]
            columns += [np.where(values == label, 1.0, -1.0) for label in own]
            labels += [True] * len(own)
    x, t = np.column_stack(columns), (np.asarray(frame[study.treatment]) == study.treated).astype(int)
    bounds = (float(study.outcome_range[0]), float(study.outcome_range[1]))
    y = np.clip(np.asarray(frame[study.outcome], dtype=float), *bounds)
    first, second = (line(x, t == arm, y) for arm in (0, 1))
    own = np.where(t == 1, second, first)
    return Fixed(x, np.array(labels), t, second - first, lambda g: own + g.choice(y - own, len(y)), bounds)


def varying(seed: int, n: int = 5000, slope: float = 0.6) -> Fixed:
    r = np.random.default_rng([seed, 2])
    x = r.uniform(-1, 1, (n, 5))
    index = x.sum(axis=1) / np.sqrt(5 / 3)
    t = (r.random(n) < expit(np.clip(-0.5 + 0.7 * index, -1.73, 1.73))).astype(int)
    gain = 1 + slope * index
    return Fixed(x, np.zeros(5, bool), t, gain, lambda g: index + gain * t + g.normal(size=n), (-10.0, 10.0))


def skewed(seed: int, n: int = 4000, d: int = 20, residual: float = 1.0) -> Fixed:
    r = np.random.default_rng([seed, 3])
    a = r.uniform(-1, 1, d)
    x = ndtr(np.sqrt(0.6) * r.normal(size=(n, d)) + np.sqrt(0.4) * r.normal(size=(n, 1))) ** 2
    t = (r.random(n) < expit(np.clip(2 * (x - x.mean(axis=0)) @ a, -1.73, 1.73))).astype(int)
    mean = standard(x @ a)
    gain = np.full(n, 0.5)
    return Fixed(
        2 * x - 1,
        np.zeros(d, bool),
        t,
        gain,
        lambda g: mean + gain * t + residual * g.normal(size=n),
        (-8.0, 8.0),
    )


def bent(seed: int, n: int = 10_000) -> Fixed:
    r = np.random.default_rng([seed, 4])
    x = r.uniform(-1, 1, (n, 5))
    index = x.sum(axis=1) / np.sqrt(5 / 3)
    t = (r.random(n) < expit(-0.3 + 0.8 * index + 0.35 * (index**2 - 1))).astype(int)
    gain = np.ones(n)
    mean = index + 0.5 * index**2
    return Fixed(x, np.zeros(5, bool), t, gain, lambda g: mean + gain * t + g.normal(size=n), (-8.0, 12.0))


def widened(study: Fixed, times: float) -> Fixed:
    """Return the study with a range that is `times` too wide, more so above."""
    low, high = study.bounds
    middle, half = (low + high) / 2, times * (high - low) / 2
    bounds = (middle - 0.7 * half, middle + 1.3 * half)
    return Fixed(study.x, study.labels, study.t, study.gain, study.outcome, bounds)


def standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


def line(x: np.ndarray, own: np.ndarray, y: np.ndarray) -> np.ndarray:
    columns = np.column_stack([np.ones(len(x)), x])
    return columns @ np.linalg.lstsq(columns[own], y[own], rcond=None)[0]


def aipw_width(study: Fixed, y: np.ndarray, estimand: str) -> float:
    """Return the length of a 95 % interval of AIPW with lines and balancing weights, without privacy."""
    u, t, n = np.column_stack([np.ones(len(y)), study.x]), study.t, len(y)
    whose = {"ATE": np.ones(n), "ATT": t / t.mean(), "ATC": (1 - t) / (1 - t.mean())}[estimand]
    target = (u * whose[:, None]).mean(axis=0)
    score = np.zeros(n)
    for arm, sign in ((1, 1), (0, -1)):
        own = t == arm
        gram = u[own].T @ u[own] / n + 1e-9 * np.eye(u.shape[1])
        fitted = line(study.x, own, y)
        score += sign * (whose * fitted + own * (u @ np.linalg.solve(gram, target)) * (y - fitted))
    score -= whose * score.mean()
    return float(2 * 1.96 * np.sqrt((score**2).mean() / (n - 2 * u.shape[1])))


STUDIES: dict[str, Callable[[int], Fixed]] = {
    "births": births,
    "NHEFS": nhefs,
    "births, range 5 times too wide": lambda seed: widened(births(seed), 5),
    "births, range 20 times too wide": lambda seed: widened(births(seed), 20),
    "varying, slope 0.3": lambda seed: varying(seed, slope=0.3),
    "varying, slope 0.6": varying,
    "varying, slope 1": lambda seed: varying(seed, slope=1.0),
    "varying, slope 0.6, n = 50,000": lambda seed: varying(seed, 50_000),
    "skewed": skewed,
    "skewed, little residual": lambda seed: skewed(seed, residual=0.33),
    "bent, n = 2,000": lambda seed: bent(seed, 2000),
    "bent, n = 10,000": bent,
    "bent, n = 50,000": lambda seed: bent(seed, 50_000),
}


def redrawn_cell(name: str, seed: int, draws: int, epsilon: str, delta: str, estimand: str) -> str:
    """Return coverage / root mean square error / median width / the same beside AIPW without privacy."""
    study = STUDIES[name](seed)
    truth, found = study.truth(estimand), []
    for draw in range(draws):
        y = np.clip(study.outcome(np.random.default_rng([seed, draw, 7])), *study.bounds)
        table = study.table(y)
        words = {"protects": "record", "epsilon": epsilon, "delta": delta, "estimand": estimand}
        try:
            result = cv.ate(
                table, table.study, method="doubly_robust", noise=cv.SeededNoise(seed + draw), **words
            )
        except cv.CounterveilError:
            return "refused"
        low, high = result.untruncated_interval()
        found.append(
            (low <= truth <= high, (result.estimate - truth) ** 2, high - low, aipw_width(study, y, estimand))
        )
    covered, square, width, plain = np.array(found, dtype=float).T
    length = np.median(width)
    return f"{covered.mean():.2f} / {np.sqrt(square.mean()):.3g} / {length:.3g} / {length / np.median(plain):.2f}"
