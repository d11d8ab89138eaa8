"""Coverage with clusters.

`python -m experiments.clusters` prints tables of public clusters with private outcomes or records, of protected
clusters, of effects by group (`groups`), and of the classes and schools of STAR (`star`, needs COUNTERVEIL_DATA).
"""

from __future__ import annotations

from itertools import product

from experiments.clusters import groups, star
from experiments.clusters.simulation import Cell, simulate
from experiments.runner import Row, Table, run


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


def coverage(place: int, cell: Cell, *, seeds: range) -> Row:
    """Return how often intervals cover, with clusters and as if rows were independent; a cell has one seed."""
    found = simulate(cell, len(seeds), seeds.start + place)
    unit, sizes = "cluster" if cell.whole else cell.protects, "unequal" if cell.unequal else "equal"
    design = [unit, cell.design, cell.clusters, cell.size, sizes, cell.icc, cell.method, cell.epsilon]
    return [*design, found.covered, found.width, found.error, found.covered_by_row, found.width_by_row]


def table(cells: list[Cell]) -> Table:
    """Return a table of coverage."""
    return Table(
        columns=(
            "protects | design | clusters | size | sizes | ICC :g | method | epsilon :g | "
            "coverage :.3f | width :.3f | error :.3f | by row: coverage :.3f | width :.3f"
        ),
        cells=list(enumerate(cells)),
        row=coverage,
        title="95 % intervals, {draws} draws a row; by row: the same without cluster=.",
        first_seed=5000,
    )


TABLES = {
    "outcome": table(outcome_cells()),
    "record": table(record_cells()),
    "whole": table(whole_cells()),
    "groups": groups.TABLE,
    "star": star.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES)
