"""Coverage of the effects on several outcomes, one by one and together, and the noise of each beside that of one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np

import counterveil as cv
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan

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


def coverage(draws: int) -> Iterator[str]:
    """Yield a line for each cell: how often single intervals cover, how often all, and the length of one."""
    yield "protects   outcomes  correlation  budget       one by one  all at once  median length"
    cells = product(("outcome", "record"), COUNTS, CORRELATIONS, BUDGETS.items())
    for cell, (protects, count, correlation, (name, budget)) in enumerate(cells):
        study = cv.Study(
            "t", outcome=cv.Outcomes({f"y{j}": (0, 1) for j in range(count)}), assignment=cv.Trial()
        )
        single, together, lengths = [], [], []
        for seed in range(1000 * cell, 1000 * cell + draws):
            found = cv.outcomes(
                trial(seed, count, correlation),
                study,
                protects=protects,
                noise=cv.SeededNoise(seed),
                **budget,
            )
            ends = np.array([one.interval() for one in found.table])
            wide = np.array([one.interval(simultaneous=True) for one in found.table])
            single.append(np.mean((ends[:, 0] <= EFFECT) & (ends[:, 1] >= EFFECT)))
            together.append(bool(np.all((wide[:, 0] <= EFFECT) & (wide[:, 1] >= EFFECT))))
            lengths.append(float(np.median(ends[:, 1] - ends[:, 0])))
        yield (
            f"{protects:8} {count:10} {correlation:12.1f}  {name:12} {np.mean(single):10.3f} {np.mean(together):12.3f} "
            f"{np.median(lengths):14.3f}"
        )


def noise() -> Iterator[str]:
    """Yield the noise of each of k outcomes beside that of a single one at the same budget."""
    yield "epsilon  budget        k    noise of each / noise of one    / root of k   k requests"
    for epsilon, (name, delta) in product((0.5, 1, 4), (("pure", "0"), ("delta 1e-6", "1e-6"))):
        budget = Budget(epsilon, delta)
        mechanism = "staircase" if budget.pure else "gaussian"
        # One number has the smaller of both noises where both are allowed.
        single = Plan.split(budget, {"one": Fraction(1)}, mechanism)
        one = sqrt(single.noise("one", Fraction(1)).variance)
        for count in COUNTS:
            plan = Plan.split(budget, {"all": Fraction(1)}, mechanism, {"all": Kind.SEVERAL})
            ones = [Fraction(1)] * count
            each = sqrt(plan.several_noise("all", ones, ones)[0].variance)
            parts = Plan.split(Budget(Fraction(epsilon) / count, 0), {"one": Fraction(1)}, "staircase")
            apart = sqrt(parts.noise("one", Fraction(1)).variance)
            yield (
                f"{epsilon:7}  {name:12} {count:3} {each / one:20.2f} {each / one / sqrt(count):22.2f} "
                f"{apart / one:12.2f}"
            )
