"""`python -m experiments.outcome_level [--tuning | --coverage] [--records]`: prints tables in Markdown.

Needs COUNTERVEIL_DATA. Errors are expected errors over the noise in closed form; nothing is drawn. With `--records`
the tables of the methods for private records follow (`experiments.record_level`, which draws).
"""

from __future__ import annotations

import argparse
import math

from experiments.outcome_level.coverage import print_coverage
from experiments.outcome_level.errors import METHODS
from experiments.outcome_level.instances import HELD_OUT, TUNING, load
from experiments.record_level.__main__ import REPORTED as RECORDS
from experiments.record_level.__main__ import print_tables as record_tables

EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
GOALS = (
    ("to_matching", "mean absolute error against matching without privacy, as a part of it"),
    ("to_truth", "root mean square error against the true effect, as a part of it"),
)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def print_row(label: str, values: list[float]) -> None:
    print(f"| {label} | " + " | ".join(f"{value:.3f}" for value in values) + " |", flush=True)


def print_errors(groups: dict[str, list[tuple[str, int]]]) -> None:
    ratios: dict[tuple[str, str], list[list[float]]] = {}
    for group, names in groups.items():
        instances = [load(*name) for name in names]
        found = {
            label: [[method(instance, epsilon) for instance in instances] for epsilon in EPSILONS]
            for label, method in METHODS.items()
        }
        for field, words in GOALS:
            if field == "to_truth" and math.isnan(instances[0].effect):
                continue
            print(f"\n**{group}**: {words}\n\n| | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
            print("|---|" + "---|" * len(EPSILONS))
            rows = {
                label: [mean([getattr(e, field) for e in row]) for row in cells]
                for label, cells in found.items()
            }
            published = next(iter(rows.values()))
            for label, row in rows.items():
                print_row(label, row)
                part = [ours / theirs for ours, theirs in zip(row, published, strict=True)]
                ratios.setdefault((field, label), []).append(part)
    for field, words in GOALS:
        print(f"\n**Average over the groups above of the ratio to the published method**: {words}\n")
        print("| | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |\n|---|" + "---|" * len(EPSILONS))
        for label in METHODS:
            print_row(label, [mean(list(column)) for column in zip(*ratios[field, label], strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.outcome_level")
    parser.add_argument("--tuning", action="store_true", help="the instances that settings were tuned on")
    parser.add_argument("--coverage", action="store_true", help="coverage and width of the intervals")
    parser.add_argument("--draws", type=int, default=100, help="outcomes drawn for each design (--coverage)")
    parser.add_argument("--records", action="store_true", help="errors with private records as well")
    chosen = parser.parse_args()
    if chosen.coverage:
        print_coverage(EPSILONS, chosen.draws)
    else:
        print_errors(TUNING if chosen.tuning else HELD_OUT)
    if chosen.records:
        print("\n## Private records")
        record_tables(TUNING if chosen.tuning else RECORDS, draws=400, workers=2)


if __name__ == "__main__":
    main()
