"""Tables 2 and 3: means, medians and wrong signs on IHDP and LaLonde, the printed figures beside them.

Every run draws its rows anew, as the paper did, and then one release of each form at each epsilon. A wrong sign is one
other than that of the same weighting without noise. Sampling with replacement puts a person into several rows: these
are experiments, not private releases. IHDP has 25 files here where the paper had 1000.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from counterveil_lab.reproduce.page import Cell, Figure, Row
from counterveil_lab.reproduce.papers.ipw.figures import EPSILONS
from counterveil_lab.reproduce.papers.ipw.forms import PARTLY, PLAIN, RELEASED, one_run

BLOCK, RUNS, QUICK_RUNS, PAPER_RUNS = 20, 300, 60, 1000
MEAN, MEDIAN, WRONG = "mean", "median", "wrong signs"
PAPER = "paper: "
PRINTED: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    "ihdp": {
        (PARTLY, MEAN): (-237487.30, 32.34, 8.37, 5.22, 5.31),
        (RELEASED, MEAN): (-237477.13, 32.20, 8.50, 5.09, 5.40),
        (PARTLY, WRONG): (0.515, 0.425, 0.344, 0.287, 0.229),
        (RELEASED, WRONG): (0.517, 0.425, 0.347, 0.301, 0.228),
    },
    "lalonde": {
        (PARTLY, MEAN): (872.21, 899.15, 895.26, 906.70, 904.17),
        (RELEASED, MEAN): (876.83, 897.75, 893.37, 903.95, 900.25),
        (PARTLY, WRONG): (0.143, 0.072, 0.049, 0.027, 0.035),
        (RELEASED, WRONG): (0.154, 0.071, 0.050, 0.039, 0.034),
    },
}


def table_cells(family: str) -> Callable[[bool], list[Cell]]:
    """Return blocks of runs."""

    def cells(quick: bool) -> list[Cell]:
        blocks = (QUICK_RUNS if quick else RUNS) // BLOCK
        return [{"data": family, "first_run": BLOCK * block, "runs": BLOCK} for block in range(blocks)]

    return cells


def run_table(cell: Cell) -> list[Row]:
    """Return the estimates of the runs of a block; the number of a run is its seed."""
    first = int(cell["first_run"] or 0)
    return [
        {"run": run, "epsilon": epsilon, **values}
        for run in range(first, first + int(cell["runs"] or 0))
        for epsilon, values in zip(EPSILONS, one_run(str(cell["data"]), run, EPSILONS), strict=True)
    ]


def made_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each estimate and measure, one column for each epsilon."""
    family = str(rows["data"].iloc[0])
    names = [str(name) for name in rows.columns[list(rows.columns).index("epsilon") + 1 :]]
    lines = [
        _line(f"{PAPER}{name}", measure, values, PAPER_RUNS)
        for (name, measure), values in PRINTED[family].items()
    ]
    by_epsilon = [rows[rows["epsilon"] == epsilon] for epsilon in EPSILONS]
    runs = len(by_epsilon[0])
    for name in names:
        lines.append(_line(name, MEAN, [float(part[name].mean()) for part in by_epsilon], runs))
        lines.append(_line(name, MEDIAN, [float(part[name].median()) for part in by_epsilon], runs))
        if name != PLAIN:
            wrong = [float((np.sign(part[name]) != np.sign(part[PLAIN])).mean()) for part in by_epsilon]
            lines.append(_line(name, WRONG, wrong, runs))
    return pd.DataFrame(lines)


def _line(name: str, measure: str, values: list[float] | tuple[float, ...], runs: int) -> dict[str, object]:
    found = {f"{epsilon:g}": value for epsilon, value in zip(EPSILONS, values, strict=True)}
    return {"estimate": name, "measure": measure, **found, "runs": runs}


TABLES = (
    Figure("table-2", "Table 2: IHDP", table_cells("ihdp"), run_table, made_table),
    Figure("table-3", "Table 3: LaLonde, in dollars", table_cells("lalonde"), run_table, made_table),
)
