"""`python -m experiments.record_level [--tuning] [--draws N]`: prints tables in Markdown; needs COUNTERVEIL_DATA.

Relative errors over seeded draws of the release code of the library. "zero" always answers zero;
"matching without privacy" is what the first table compares with.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from experiments.outcome_level.instances import TUNING, load
from experiments.record_level.draws import estimates

EPSILONS = ("0.5", "1", "1.5", "2", "3", "4")
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


def print_tables(groups: dict[str, list[tuple[str, int]]], draws: int, workers: int) -> None:
    """Print for every group of instances the errors against matching and against the truth."""
    with ProcessPoolExecutor(workers) as pool:
        runs = {
            (group, epsilon): pool.submit(cell, names, epsilon, draws)
            for group, names in groups.items()
            for epsilon in EPSILONS
        }
        for group in groups:
            found = [runs[group, epsilon].result() for epsilon in EPSILONS]
            for place, words in enumerate(
                ("mean error against matching without privacy, as a part of it",
                 "root mean square error against the true effect, as a part of it")
            ):  # fmt: skip
                if np.isnan(found[0]["zero"][place]):
                    continue
                print(f"\n**{group}**: {words}\n\n| epsilon | " + " | ".join(EPSILONS) + " |")
                print("|---|" + "---|" * len(EPSILONS))
                for name in found[0]:
                    print(f"| {name} | " + " | ".join(f"{row[name][place]:.3f}" for row in found) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_level")
    parser.add_argument("--tuning", action="store_true", help="the instances that settings were chosen on")
    parser.add_argument(
        "--draws", type=int, default=400, help="draws for each group and epsilon (ACIC: a fifth)"
    )
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    print_tables(TUNING if chosen.tuning else REPORTED, chosen.draws, chosen.workers)


if __name__ == "__main__":
    main()
