"""Coverage and width of intervals of randomised trials, and how small sampling errors are shown.

`python -m experiments.coverage` prints three tables. `coverage` has 95 % intervals beside those that ignore the noise.
`answers` asks about real data again and again, the data staying the same: answers whose sampling error is shown as 0,
and the shortest interval beside the mean one. `shapes` has trials of several shapes of outcome, 1,000 people, epsilon
1/2 and 2, for differences in means with private outcomes.
"""

from __future__ import annotations

from itertools import product

from experiments.coverage.simulation import Cell, simulate
from experiments.coverage.zero_variance import QUESTIONS, SHAPES, answers
from experiments.runner import Row, Table, run

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
CELLS = [
    Cell(unit, outcome, 1000, share, epsilon, delta)
    for unit, (outcome, share), (epsilon, delta) in product(
        ("outcome", "record"),
        (("binary", 0.5), ("continuous", 0.5), ("rare", 0.5), ("continuous", 0.3)),
        [(epsilon, 0.0) for epsilon in EPSILONS] + [(1.0, 1e-6)],
    )
]


def coverage(place: int, cell: Cell, *, seeds: range) -> Row:
    """Return coverage and width with the noise and without; a cell has one seed."""
    found = simulate(cell, len(seeds), seeds.start + place)
    design = [cell.unit, cell.outcome, cell.rows, cell.share, cell.epsilon, cell.delta]
    return [*design, found.covered, found.width, found.width_without_noise, found.covered_without_noise]


def shapes(place: int, shape: str, epsilon: float, *, seeds: range) -> Row:
    """Return coverage and mean length on one shape of outcome."""
    found = simulate(Cell("outcome", shape, 1000, 0.5, epsilon), len(seeds), seeds.start + place)
    return [shape, epsilon, len(seeds), found.covered, found.width]


TABLES = {
    "coverage": Table(
        columns=(
            "protects | outcome | rows | treated :.0% | epsilon :g | delta :g | coverage :.3f | "
            "width :.4f | width without noise :.4f | its coverage :.3f"
        ),
        cells=list(enumerate(CELLS)),
        row=coverage,
        title="95 % intervals, {draws} trials a row; width without noise: what ignoring the noise would give.",
        draws=2000,
    ),
    "answers": Table(
        columns=(
            "data | epsilon :g | answers | as 0 | least sampling error :.3g | median :.3g | "
            "mean length :.4g | shortest :.2f"
        ),
        cells=QUESTIONS,
        row=answers,
        draws=100,
        first_seed=0,
    ),
    "shapes": Table(
        columns="outcome | epsilon :g | trials | coverage :.3f | mean length :.4g",
        cells=[(place, *cell) for place, cell in enumerate(product(SHAPES, (0.5, 2.0)))],
        row=shapes,
        draws=400,
        first_seed=0,
    ),
}

if __name__ == "__main__":
    run(__doc__, TABLES)
