"""The noise of `trial` with centres of both arms and of everyone.

Root mean square error against the realised difference in means, as a part of the effect.
"""

from __future__ import annotations

import numpy as np

from counterveil.session import SeededNoise
from experiments.outcome_level.instances import load
from experiments.record_level.draws import EPSILONS, plain, prepared
from experiments.runner import Row


def cell(names: list[tuple[str, int]], epsilon: str, draws: int) -> dict[str, float]:
    errors: dict[str, list[float]] = {}
    for family, number in names:
        instance, data = load(family, number), prepared(family, number)
        unit = float(data.table.outcome_unit / data.width)
        difference = float(data.totals.treated.mean() - data.totals.control.mean()) * unit
        source = SeededNoise(100 * EPSILONS.index(epsilon) + number)
        found = [plain(data, epsilon, source) for _ in range(draws)]
        for name in found[0]:
            error = np.sqrt(np.mean([(one[name] - difference) ** 2 for one in found]))
            errors.setdefault(name, []).append(float(error / abs(instance.effect)))
    return {name: float(np.mean(values)) for name, values in errors.items()}


def row(group: str, names: list[tuple[str, int]], *, seeds: range) -> list[Row]:
    """Return a row for each centre."""
    found = [cell(names, epsilon, len(seeds)) for epsilon in EPSILONS]
    return [[group, name, *(errors[name] for errors in found)] for name in found[0]]
