"""Relative errors of methods for private records, over seeded draws of the release code of the library.

`python -m experiments.record_level` prints the reported instances (needs COUNTERVEIL_DATA); "zero" always answers zero,
"matching without privacy" is what `to matching` compares with. `tuning` has the instances that settings were chosen on,
`centres` the noise of `trial` with centres of both arms and of everyone, `rare` and `shares` are of rare outcomes and
declared shares of trials, `shapes` of all shapes.
"""

from __future__ import annotations

import numpy as np

from experiments.outcome_level.instances import TUNING, load
from experiments.record_level import centres, rare
from experiments.record_level.draws import EPSILONS, estimates
from experiments.runner import Row, Table, run

REPORTED = {
    "IHDP 6-9": [("ihdp", i) for i in range(6, 10)],
    "LaLonde": [("lalonde", 0)],
    "ACIC 1": [("acic", 1)],
    "Synth 10-13": [("synth", i) for i in range(10, 14)],
}
ROWS_OF_ACIC = 4802


def cell(names: list[tuple[str, int]], epsilon: str, draws: int) -> dict[str, tuple[float, float]]:
    """Return for every method the mean relative error to matching and the relative RMSE to the truth."""
    found: dict[str, list[tuple[float, float]]] = {}
    for family, number in names:
        instance = load(family, number)
        count = max(draws // len(names) // (5 if instance.table.rows >= ROWS_OF_ACIC else 1), 20)
        values = estimates(family, number, epsilon, count, seed=100 * EPSILONS.index(epsilon) + number)
        values |= {"zero": np.zeros(1), "matching without privacy": np.array([instance.matched])}
        for name, value in values.items():
            to_matching = np.abs(value - instance.matched).mean() / abs(instance.matched)
            to_truth = np.sqrt(((value - instance.effect) ** 2).mean()) / abs(instance.effect)
            found.setdefault(name, []).append((float(to_matching), float(to_truth)))
    return {name: tuple(np.mean(pairs, axis=0)) for name, pairs in found.items()}


ERRORS = (
    "mean error against matching without privacy, as a part of it",
    "root mean square error against the true effect, as a part of it",
)


def errors(group: str, names: list[tuple[str, int]], *, seeds: range) -> list[Row]:
    """Return the errors of every method on a group, against matching and, where it is known, against the truth."""
    found = [cell(names, epsilon, len(seeds)) for epsilon in EPSILONS]
    return [
        [group, words, name, *(row[name][place] for row in found)]
        for place, words in enumerate(ERRORS)
        if not np.isnan(found[0]["zero"][place])
        for name in found[0]
    ]


def table(groups: dict[str, list[tuple[str, int]]], *, apart: bool) -> Table:
    """Return the table of groups of instances."""
    return Table(
        columns=("instances", "error", "method", *(f"epsilon {epsilon} :.3f" for epsilon in EPSILONS)),
        cells=list(groups.items()),
        row=errors,
        title="Draws for each group and epsilon: {draws} (ACIC: a fifth).",
        draws=400,
        first_seed=0,
        apart=apart,
    )


TABLES = {
    "reported": table(REPORTED, apart=False),
    "tuning": table(TUNING, apart=True),
    "centres": Table(
        columns=("instances", "centre", *(f"epsilon {epsilon} :.3f" for epsilon in EPSILONS)),
        cells=list(TUNING.items()),
        row=centres.row,
        draws=400,
        first_seed=0,
        apart=True,
    ),
    **rare.TABLES,
}

if __name__ == "__main__":
    run(__doc__, TABLES)
