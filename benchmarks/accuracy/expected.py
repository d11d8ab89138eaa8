"""`python -m benchmarks.accuracy.expected`: errors of linear methods with private outcomes, without the luck of draws.

The league has 40 or 100 draws, and all methods of others share one stream of noise, so that a data set's cells fall
together. A linear estimate has its root mean square error in closed form: bias, sampling and noise, here in percent of
the outcome's range for the data and budgets of the league, first the least. Needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from experiments.outcome_level.supposed import Truth, means, weights

from benchmarks.accuracy.designs import DATA, based
from benchmarks.accuracy.entries import EPSILONS
from counterveil.data import Table
from counterveil.settings import Weighting
from counterveil_lab.reproduce.rivals import simple
from counterveil_lab.reproduce.rivals.encoding import Records
from counterveil_lab.reproduce.rivals.ours import declared

# Coefficients and the variance of their noise, for a range of 1.
Linear = Callable[[Table, Records, float], tuple[np.ndarray, float]]


def _with_laplace(coefficients: Callable[[Records], np.ndarray]) -> Linear:
    def made(_: Table, records: Records, epsilon: float) -> tuple[np.ndarray, float]:
        own = coefficients(records)
        return own, 2 * (simple.public_scale(own, records, epsilon) / records.width) ** 2

    return made


# Auto takes weighting for all data of the league.
METHODS: dict[str, Linear] = {
    "ours, auto": lambda table, _, epsilon: weights(table, epsilon, Weighting()),
    "ours, weighting, value alone": lambda table, _, epsilon: weights(
        table, epsilon, Weighting(variance_share=0)
    ),
    "ours, difference in means": lambda table, _, epsilon: means(table, epsilon, alone=False),
    "ours, difference in means, value alone": lambda table, _, epsilon: means(table, epsilon, alone=True),
    "difference in means, Laplace": _with_laplace(simple.means_coefficients),
    "OLS, Laplace": _with_laplace(simple.ols_coefficients),
    "IPW, Laplace": _with_laplace(simple.weighting_coefficients),
}


def errors(name: str) -> dict[tuple[float, str], float]:
    """Return the error of every method at every epsilon; designs of one data set take turns."""
    squares: dict[tuple[float, str], list[float]] = {}
    for place in range(len(DATA[name].designs)):
        records, design = based(name, place)
        truth, table = Truth.of(design), Table.attach(*declared(records))
        for epsilon in EPSILONS:
            for method, made in METHODS.items():
                found = truth.error(*made(table, records, epsilon))
                squares.setdefault((epsilon, method), []).append(found)
    return {key: sqrt(sum(values) / len(values)) for key, values in squares.items()}


def main() -> None:
    print("| data | epsilon | " + " | ".join(METHODS) + " | first |\n|---|---|" + "---|" * (len(METHODS) + 1))
    won = cells = 0
    for name in DATA:
        found = errors(name)
        for epsilon in EPSILONS:
            own = {method: found[epsilon, method] for method in METHODS}
            first = min(own, key=own.__getitem__)
            won, cells = won + first.startswith("ours"), cells + 1
            figures = " | ".join(f"{100 * error:.3f}" for error in own.values())
            print(f"| {name} | {epsilon:g} | {figures} | {first} |", flush=True)
    print(f"\nOne of ours is first in {won} of {cells} cells.")


if __name__ == "__main__":
    main()
