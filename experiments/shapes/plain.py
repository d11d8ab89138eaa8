"""What answers are held against: the analysis without privacy, and the plainest private one of the same guarantee.

The plainest is a difference in means in a trial, and over strata elsewhere: from means with noise where outcomes are
private, from a table of counts and sums with noise where records are. It sets a quarter of its budget aside for its
sampling error, and is told that.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from scipy.special import expit

from experiments.shapes.designs import Floats, Sample, Times

NORMAL = 1.959963984540054
_FOR_EFFECT = 0.75
Answer = tuple[float, float, float]  # estimate, ends of the interval
# How much a person counts for an estimand, by the chance of treatment.
WEIGHTS = {
    "ATE": np.ones_like,
    "ATT": lambda e: e,
    "ATC": lambda e: 1 - e,
    "ATO": lambda e: e * (1 - e),
}


def around(estimate: float, variance: float) -> Answer:
    half = NORMAL * sqrt(max(variance, 0.0))
    return estimate, estimate - half, estimate + half


def without_privacy(sample: Sample, who: Floats | None = None, estimand: str = "ATE") -> Answer:
    """Return the difference in means of a trial, and AIPW elsewhere: linear outcomes, a logistic propensity."""
    keep = np.ones(sample.rows, bool) if who is None else who
    t, y = sample.treated[keep].astype(float), sample.outcome[keep]
    if sample.design.trial:
        one, other = y[t == 1], y[t == 0]
        return around(one.mean() - other.mean(), _of_mean(one) + _of_mean(other))
    x = np.column_stack([np.ones(len(t)), sample.columns[keep]])
    slopes = np.zeros(x.shape[1])
    ridge = 1e-6 * len(t) * np.eye(x.shape[1])
    for _ in range(12):
        e = expit(x @ slopes)
        step = x.T @ (t - e) - ridge @ slopes
        slopes = slopes + np.linalg.solve(x.T @ (x * (e * (1 - e))[:, None]) + ridge, step)
    e = np.clip(expit(x @ slopes), 0.01, 0.99)
    m1, m0 = (x @ np.linalg.solve(x[arm].T @ x[arm] + ridge, x[arm].T @ y[arm]) for arm in (t == 1, t == 0))
    weight = WEIGHTS[estimand](e)
    score = weight * (m1 - m0 + t * (y - m1) / e - (1 - t) * (y - m0) / (1 - e)) / weight.mean()
    value = float(score.mean())
    return around(value, _of_mean(score - value * weight / weight.mean()))


def _of_mean(values: Floats) -> float:
    return float(values.var(ddof=1)) / len(values)


def least_squares(sample: Sample) -> Answer:
    """Return the coefficient of treatment with classical errors."""
    x = np.column_stack([sample.treated, np.ones(sample.rows), sample.columns])
    inverse = np.linalg.inv(x.T @ x)
    slopes = inverse @ x.T @ sample.outcome
    spread = ((sample.outcome - x @ slopes) ** 2).sum() / (sample.rows - x.shape[1])
    return around(float(slopes[0]), float(inverse[0, 0] * spread))


def projected(sample: Sample) -> float:
    """Return the coefficient that least squares has on everybody's mean outcomes."""
    x = np.column_stack([sample.treated, np.ones(sample.rows), sample.columns])
    mean = np.where(sample.treated == 1, *sample.means)
    return float(np.linalg.lstsq(x, mean, rcond=None)[0][0])


def kaplan_meier(sample: Sample, times: Floats, events: Floats) -> Answer:
    """Return the difference of survival at the horizon, with Greenwood's errors."""
    assert isinstance(sample.shape, Times)
    value, variance = 0.0, 0.0
    for arm, sign in ((1, 1.0), (0, -1.0)):
        own = sample.treated == arm
        ends = np.sort(times[own & (events == 1) & (times <= 1)])
        at_risk = own.sum() - np.searchsorted(np.sort(times[own]), ends)
        alive = float(np.prod(1 - 1 / np.maximum(at_risk, 1)))
        value += sign * alive
        variance += alive**2 * float((1 / np.maximum(at_risk * (at_risk - 1.0), 1)).sum())
    return around(value, variance)


def plainest(sample: Sample, level: str, epsilon: float, delta: float, seed: int) -> Answer:
    """Return the plainest private answer; its noise is simulated, for this comparison alone."""
    noise = np.random.default_rng([seed, 7])
    epsilon, delta = _FOR_EFFECT * epsilon, _FOR_EFFECT * delta
    cells = np.zeros(sample.rows, int) if sample.design.trial else sample.strata
    width = float(sample.shape.high - sample.shape.low)
    return (_means if level == "outcome" else _table)(sample, cells, width, epsilon, delta, noise)


def _means(
    sample: Sample, cells: Floats, width: float, epsilon: float, delta: float, noise: np.random.Generator
) -> Answer:
    """Return the difference over strata of public size; one outcome moves it by its weight."""
    counts, sums, spread = _by_cell(sample, cells)
    full = (counts > 0).all(axis=1)
    share = counts[full].sum(axis=1) / counts[full].sum()
    weights = share[:, None] / counts[full]
    value = float((weights * sums[full] * [-1, 1]).sum())
    variance = float((share[:, None] ** 2 * spread[full] / counts[full]).sum())
    sd = width * float(weights.max()) * _unit_sd(epsilon, delta)
    return around(value + noise.normal() * sd, variance + sd**2)


def _table(
    sample: Sample, cells: Floats, width: float, epsilon: float, delta: float, noise: np.random.Generator
) -> Answer:
    """Return the same from noisy counts and sums around the middle of the range, a third and the rest.

    A record that is replaced moves two counts by one, and two sums by half the width each or one by the width.
    """
    counts, sums, spread = _by_cell(sample, cells)
    middle = (sample.shape.low + sample.shape.high) / 2
    count_sd = _unit_sd(epsilon / 3, delta / 2) * (sqrt(2) if delta else 2)
    sum_sd = _unit_sd(epsilon * 2 / 3, delta / 2) * width
    found = counts + noise.normal(size=counts.shape) * count_sd
    centred = sums - middle * counts + noise.normal(size=counts.shape) * sum_sd
    full = (found > 3 * count_sd).all(axis=1)
    if not full.any():
        return around(0.0, width**2)
    found, centred, spread = found[full], centred[full], spread[full]
    share = found.sum(axis=1) / found.sum()
    means = centred / found
    value = float((share * (means[:, 1] - means[:, 0])).sum())
    each = (spread * found + sum_sd**2 + (means * count_sd) ** 2) / found**2
    return around(value, float((share[:, None] ** 2 * each).sum()))


def by_group(
    sample: Sample, level: str, epsilon: float, delta: float, seed: int, group: Floats
) -> list[Answer]:
    """Return the plainest private effects of two groups: they share a table, or the budget's noise apart."""
    found = []
    epsilon, delta = _FOR_EFFECT * epsilon, _FOR_EFFECT * delta
    for value in (0, 1):
        keep = group == value
        noise = np.random.default_rng([seed, 8, value])
        cells = np.zeros(sample.rows, int) if sample.design.trial else sample.strata
        part = _Part(sample, keep)
        width = float(sample.shape.high - sample.shape.low)
        way = _means if level == "outcome" else _table
        found.append(way(part, cells[keep], width, epsilon, delta, noise))  # type: ignore[arg-type]
    return found


class _Part:
    """Some people of a sample."""

    def __init__(self, sample: Sample, keep: Floats) -> None:
        self.treated, self.outcome, self.shape = sample.treated[keep], sample.outcome[keep], sample.shape


def _by_cell(sample: Sample, cells: Floats) -> tuple[Floats, Floats, Floats]:
    """Return counts, sums and variances by cell and arm, controls first."""
    code = 2 * cells + sample.treated
    size = 2 * (int(cells.max()) + 1)
    counts = np.bincount(code, minlength=size)
    sums = np.bincount(code, sample.outcome, minlength=size)
    squares = np.bincount(code, sample.outcome**2, minlength=size)
    some = np.maximum(counts, 1)
    spread = np.maximum(squares / some - (sums / some) ** 2, 0)
    return tuple(found.reshape(-1, 2).astype(float) for found in (counts, sums, spread))  # type: ignore[return-value]


def _unit_sd(epsilon: float, delta: float) -> float:
    """Return the standard deviation of noise for a sensitivity of one: Laplace, or the classical Gaussian bound."""
    laplace = sqrt(2) / epsilon
    return min(laplace, sqrt(2 * log(1.25 / delta)) / epsilon) if delta > 0 and epsilon < 1 else laplace
