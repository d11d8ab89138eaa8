"""`python -m experiments.record_level.centres`: the noise of `trial` with centres of both arms and of everyone.

Root mean square error against the realised difference in means, as a part of the effect, on the tuning
instances; needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from counterveil.session import SeededNoise
from experiments.outcome_level.instances import TUNING, load
from experiments.record_level.__main__ import EPSILONS
from experiments.record_level.draws import plain, prepared


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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_level.centres")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    print("| epsilon | " + " | ".join(EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
    with ProcessPoolExecutor(chosen.workers) as pool:
        runs = {
            group: [pool.submit(cell, names, epsilon, chosen.draws) for epsilon in EPSILONS]
            for group, names in TUNING.items()
        }
        for group, cells in runs.items():
            found = [run.result() for run in cells]
            for name in found[0]:
                print(
                    f"| {group}: {name} | " + " | ".join(f"{row[name]:.3f}" for row in found) + " |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
