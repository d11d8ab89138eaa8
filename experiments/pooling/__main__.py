"""Coverage of intervals for effects pooled over sites.

`python -m experiments.pooling` prints tables of 1000 draws a row: `rows` from rows to interval, `differing` and `alike`
from released numbers of sites that differ and of sites that do not. `heterogeneity` has intervals for tau and for one
more site: 200 draws take 3 minutes, and `--out` the folder writes heterogeneity.csv.
"""

from __future__ import annotations

from pathlib import Path

from experiments.pooling import differing, heterogeneity
from experiments.pooling.simulation import Cell, simulate
from experiments.runner import Row, Table, run

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


def from_rows(place: int, cell: Cell, *, seeds: range) -> list[Row]:
    """Return how often each way of pooling covers; a cell has one seed."""
    found = simulate(cell, len(seeds), seeds.start + place)
    return [[cell.name, method, one.average, one.mean, one.width, one.error] for method, one in found.items()]


TABLES = {
    "rows": Table(
        columns=(
            "sites | method | covers the weighted average :.3f | covers the mean effect :.3f | "
            "width :.4f | error :.4f"
        ),
        cells=list(enumerate(CELLS)),
        row=from_rows,
        title="## From rows to interval: 95 %, {draws} draws a row",
        draws=1000,
        first_seed=2000,
    ),
    **differing.TABLES,
    "heterogeneity": heterogeneity.TABLE,
}

if __name__ == "__main__":
    run(__doc__, TABLES, folder=Path(__file__).parent)
