"""Coverage of the effects on several outcomes, one by one and together, and the noise of each beside that of one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np

import counterveil as cv
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan
from experiments.runner import Row, Table

COUNTS, CORRELATIONS, ROWS, EFFECT = (5, 20), (0.0, 0.8), 4000, 0.05
BUDGETS = {"pure": {"epsilon": 1}, "delta 1e-6": {"epsilon": 1, "delta": "1e-6"}}


def trial(seed: int, count: int, correlation: float) -> dict[str, np.ndarray]:
    """Return metrics in [0, 1]: even ones are numbers, odd ones 0 or 1, all moved by one shared number."""
    generator = np.random.default_rng(seed)
    treated = (np.arange(ROWS) < ROWS // 2).astype(np.int64)
    shared = generator.normal(size=(ROWS, 1))
    noise = sqrt(correlation) * shared + sqrt(1 - correlation) * generator.normal(size=(ROWS, count))
    columns: dict[str, np.ndarray] = {"t": treated}
    for place in range(count):
        if place % 2:
            # A threshold that the treated pass more often by the effect.
            chance = np.where(treated == 1, 0.2 + EFFECT, 0.2)
            columns[f"y{place}"] = (_rank(noise[:, place]) < chance).astype(np.int64)
        else:
            columns[f"y{place}"] = 0.4 + EFFECT * treated + 0.25 * (_rank(noise[:, place]) - 0.5)
    return columns


def _rank(normal: np.ndarray) -> np.ndarray:
    """Return the chance of a normal number below each, which is uniform."""
    from scipy.special import ndtr

    return np.asarray(ndtr(normal))


def coverage(cell: int, protects: str, count: int, correlation: float, budget: str, *, seeds: range) -> Row:
    """Return how often single intervals cover, how often all, and the length of one."""
    study = cv.Study("t", outcome=cv.Outcomes({f"y{j}": (0, 1) for j in range(count)}), assignment=cv.Trial())
    single, together, lengths = [], [], []
    for seed in range(seeds.start + 1000 * cell, seeds.stop + 1000 * cell):
        found = cv.outcomes(
            trial(seed, count, correlation),
            study,
            protects=protects,
            noise=cv.SeededNoise(seed),
            **BUDGETS[budget],
        )
        ends = np.array([one.interval() for one in found.table])
        wide = np.array([one.interval(simultaneous=True) for one in found.table])
        single.append(np.mean((ends[:, 0] <= EFFECT) & (ends[:, 1] >= EFFECT)))
        together.append(bool(np.all((wide[:, 0] <= EFFECT) & (wide[:, 1] >= EFFECT))))
        lengths.append(float(np.median(ends[:, 1] - ends[:, 0])))
    figures = np.mean(single), np.mean(together), np.median(lengths)
    return [protects, count, correlation, budget, *figures]


def noise(epsilon: float, delta: str, count: int, *, seeds: range) -> Row:
    """Return the noise of each of k outcomes beside that of a single one at the same budget; nothing is drawn."""
    budget = Budget(epsilon, delta)
    mechanism = "staircase" if budget.pure else "gaussian"
    # One number has the smaller of both noises where both are allowed.
    single = Plan.split(budget, {"one": Fraction(1)}, mechanism)
    one = sqrt(single.noise("one", Fraction(1)).variance)
    plan = Plan.split(budget, {"all": Fraction(1)}, mechanism, {"all": Kind.SEVERAL})
    ones = [Fraction(1)] * count
    each = sqrt(plan.several_noise("all", ones, ones)[0].variance)
    parts = Plan.split(Budget(Fraction(epsilon) / count, 0), {"one": Fraction(1)}, "staircase")
    apart = sqrt(parts.noise("one", Fraction(1)).variance)
    name = "pure" if budget.pure else f"delta {delta}"
    return [epsilon, name, count, each / one, each / one / sqrt(count), apart / one]


TABLE = Table(
    columns=(
        "protects | outcomes | correlation | budget | one by one :.3f | all at once :.3f | median length :.3f"
    ),
    cells=[
        (cell, *asked)
        for cell, asked in enumerate(product(("outcome", "record"), COUNTS, CORRELATIONS, BUDGETS))
    ],
    row=coverage,
    first_seed=0,
)
NOISE = Table(
    columns=("epsilon | budget | k | noise of each / noise of one :.2f | / root of k :.2f | k requests :.2f"),
    cells=list(product((0.5, 1, 4), ("0", "1e-6"), COUNTS)),
    row=noise,
)
