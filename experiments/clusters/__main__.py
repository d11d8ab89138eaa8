"""`python -m experiments.clusters [--draws N] [--only TABLE]`: prints coverage with clusters in Markdown."""

from __future__ import annotations

import argparse
from itertools import product

from experiments.clusters.simulation import Cell, simulate


def outcome_cells() -> list[Cell]:
    """Return the table of public clusters and private outcomes."""
    trials = [
        Cell("trial", clusters, 20, unequal, icc, "difference_in_means", "outcome", 1.0)
        for clusters, unequal, icc in product((20, 50, 200), (False, True), (0.05, 0.3))
    ]
    others = [
        Cell(design, clusters, 20, True, 0.3, method, "outcome", 1.0)
        for design, fewest in (("by x", 20), ("cluster by x", 30))
        for clusters, method in (
            (fewest, "weighting"),
            (50, "weighting"),
            (50, "matching"),
            (200, "weighting"),
        )
    ]
    few = [
        Cell("trial", clusters, 20, unequal, 0.1, "difference_in_means", "outcome", epsilon)
        for (clusters, unequal), epsilon in product(((6, False), (10, False), (10, True)), (1.0, 8.0))
    ]
    return [*few, *trials, *others]


def record_cells() -> list[Cell]:
    """Return the table of private records in public clusters."""
    return [
        Cell("trial", clusters, size, unequal, icc, "trial", "record", epsilon)
        for clusters, size, unequal, icc, epsilon in (
            (50, 20, False, 0.3, 2.0),
            *((g, 20, True, icc, 2.0) for g, icc in product((20, 50, 200), (0.05, 0.3))),
            (10, 100, True, 0.1, 1.0),
            (50, 100, True, 0.1, 1.0),
        )
    ]


def whole_cells() -> list[Cell]:
    """Return the table of protected clusters."""
    return [
        Cell("trial", clusters, 20, True, 0.1, method, protects, epsilon, whole=True)
        for protects, method in (("outcome", "difference_in_means"), ("record", "trial"))
        for clusters, epsilon in ((20, 4.0), (50, 4.0), (200, 2.0))
    ]


TABLES = {"outcome": outcome_cells, "record": record_cells, "whole": whole_cells}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.clusters")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", choices=TABLES)
    chosen = parser.parse_args()
    print(f"95 % intervals, {chosen.draws} draws a row; by row: the same without cluster=.\n")
    print(
        "| protects | design | clusters | size | sizes | ICC | method | epsilon | coverage | width | error "
        "| by row: coverage | width |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, cells in TABLES.items():
        for place, cell in enumerate(cells() if chosen.only in (None, name) else []):
            found = simulate(cell, chosen.draws, 5000 + place)
            unit = "cluster" if cell.whole else cell.protects
            print(
                f"| {unit} | {cell.design} | {cell.clusters} | {cell.size} | {'unequal' if cell.unequal else 'equal'} "
                f"| {cell.icc:g} | {cell.method} | {cell.epsilon:g} | {found.covered:.3f} | {found.width:.3f} "
                f"| {found.error:.3f} | {found.covered_by_row:.3f} | {found.width_by_row:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
