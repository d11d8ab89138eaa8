"""`python -m experiments.pooling [--draws N] [--differing N] [--alike N]`: prints the coverage tables in Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from experiments.pooling import differing
from experiments.pooling.simulation import Cell, simulate

CELLS = (
    Cell("two alike", (500, 500), (1, 1)),
    Cell("two, one with little budget", (500, 500), (1, 0.125)),
    Cell("three, 9:9:2", (900, 900, 200), (0.5, 1, 2)),
    Cell("six small", (150,) * 6, (1, 2, 1, 2, 1, 2)),
    Cell("four, Gaussian noise", (500,) * 4, (1,) * 4, delta=1e-6),
    Cell("four, private records", (1000,) * 4, (1, 1, 2, 2), unit="record"),
    Cell("six that differ", (600,) * 6, (1,) * 6, tau=0.05),
    Cell("twelve that differ", (600,) * 12, (1,) * 12, tau=0.05),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.pooling")
    parser.add_argument("--draws", type=int, default=1000, help="studies for each row of the first table")
    parser.add_argument("--differing", type=int, default=1000, help="draws for each row of the second table")
    parser.add_argument("--alike", type=int, default=1000, help="draws for each row of the third table")
    chosen = parser.parse_args()
    if chosen.draws:
        _from_rows(chosen.draws)
    if chosen.differing:
        print(f"\n## Sites that differ: 95 % intervals, {chosen.differing} draws a row\n")
        _print(differing.table(chosen.differing, seed=900))
    if chosen.alike:
        print(f"\n## Sites that do not differ: coverage of 95 % intervals, {chosen.alike} draws a row\n")
        _print(differing.homogeneous_table(chosen.alike, seed=901))


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _from_rows(draws: int) -> None:
    print(f"## From rows to interval: 95 %, {draws} draws a row\n")
    print("| sites | method | covers the weighted average | covers the mean effect | width | error |")
    print("|---|---|---|---|---|---|")
    for place, cell in enumerate(CELLS):
        for method, found in simulate(cell, draws, 2000 + place).items():
            print(
                f"| {cell.name} | {method} | {found.average:.3f} | {found.mean:.3f} | {found.width:.4f} "
                f"| {found.error:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
