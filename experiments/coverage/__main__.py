"""`python -m experiments.coverage [--draws N] [--rows N]`: prints the coverage table in Markdown."""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from experiments.coverage.simulation import Cell, simulate

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.coverage")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000])
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    cells = [
        Cell(unit, outcome, rows, share, epsilon, delta)
        for rows, unit, (outcome, share), (epsilon, delta) in product(
            chosen.rows,
            ("outcome", "record"),
            (("binary", 0.5), ("continuous", 0.5), ("rare", 0.5), ("continuous", 0.3)),
            [(epsilon, 0.0) for epsilon in EPSILONS] + [(1.0, 1e-6)],
        )
    ]
    print(
        f"95 % intervals, {chosen.draws} trials a row; width without noise: what ignoring the noise would give.\n"
    )
    print(
        "| protects | outcome | rows | treated | epsilon | delta | coverage | width | width without noise "
        "| its coverage |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(chosen.workers) as pool:
        runs = [pool.submit(simulate, cell, chosen.draws, 1000 + i) for i, cell in enumerate(cells)]
        for cell, run in zip(cells, runs, strict=True):
            found = run.result()
            print(
                f"| {cell.unit} | {cell.outcome} | {cell.rows} | {cell.share:.0%} | {cell.epsilon:g} | {cell.delta:g} "
                f"| {found.covered:.3f} | {found.width:.4f} | {found.width_without_noise:.4f} "
                f"| {found.covered_without_noise:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
