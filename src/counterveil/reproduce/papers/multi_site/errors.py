"""Figures 3 to 5 and 8 to 11: errors of pooled effects, by cells of ten repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.reproduce.papers.multi_site.panels import ALPHAS, PANELS, Panel
from counterveil.reproduce.papers.multi_site.repetition import reference, repeat
from counterveil.reproduce.protocol import Cell, Row

if TYPE_CHECKING:
    import pandas as pd

QUICK, FULL, BLOCK = 20, 100, 10
ALPHA_NAMES = {alpha: {0.125: "1/8", 0.25: "1/4", 0.5: "1/2"}.get(alpha, f"{alpha:g}") for alpha in ALPHAS}
KEYS = ["study", "sites", "method", "pooled_by"]
MEASURES = MEAN, SD, OUTSIDE = ("mean error", "SD of errors", "share outside [-1, 1]")


def cells_of(figure: int) -> Callable[[bool], Sequence[Cell]]:
    """Return the cells of a figure; `seed` is the number of a cell's first repetition."""

    def cells(quick: bool) -> list[Cell]:
        return [
            {
                "figure": figure,
                "study": panel.study,
                "sites": panel.cut,
                "epsilon": panel.epsilon,
                "seed": first,
                "repetitions": BLOCK,
            }
            for panel in PANELS
            if panel.figure == figure
            for first in range(0, QUICK if quick else FULL, BLOCK)
        ]

    return cells


def panel_of(cell: Cell) -> Panel:
    """Return the panel that a cell names."""
    sites = str(cell["sites"])
    sizes = None if sites == "schools" else tuple(map(int, sites.split(":")))
    return Panel(int(cell["figure"] or 0), str(cell["study"]), sizes, float(cell["epsilon"] or 0))


def run(cell: Cell) -> list[Row]:
    """Return, for every method, way of pooling and alpha, the sums over the cell's repetitions.

    `error` adds absolute errors in ranges of the outcome, `square` their squares; `outside` counts estimates that no
    effect can have.
    """
    panel, first = panel_of(cell), int(cell["seed"] or 0)
    sums: dict[tuple[str, str, float], Floats] = {}
    for place in range(first, first + int(cell["repetitions"] or 0)):
        truth = reference(panel, place)
        for key, estimate in repeat(panel, place).items():
            error = abs(estimate - truth)
            sums.setdefault(key, np.zeros(3))
            sums[key] += np.array([error, error**2, abs(estimate) > 1])
    return [
        {
            "method": method,
            "pooled_by": pooled_by,
            "alpha": alpha,
            "error": float(error),
            "square": float(square),
            "outside": int(outside),
        }
        for (method, pooled_by, alpha), (error, square, outside) in sums.items()
    ]


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of the absolute error, and the share of impossible estimates, by alpha."""
    import pandas as pd

    parts = []
    for key, own in rows.groupby([*KEYS, "alpha"], sort=False):
        n, error, square, outside = (
            own[name].sum() for name in ("repetitions", "error", "square", "outside")
        )
        mean = error / n
        sd = max(square - n * mean**2, 0.0) ** 0.5 / max(n - 1, 1) ** 0.5
        parts.append((*key, int(n), mean, sd, outside / n))
    found = pd.DataFrame(parts, columns=[*KEYS, "alpha", "repetitions", *MEASURES])
    # Lines in the order in which they came; pandas sorts them by name otherwise.
    lines = list(dict.fromkeys(found[KEYS].itertuples(index=False, name=None)))
    panels = dict.fromkeys((study, sites) for study, sites, *_ in lines)
    by_key = found.set_index([*KEYS, "alpha"])
    return pd.DataFrame(
        [
            {"study": key[0], "sites": key[1], "measure": measure, "method": key[2], "pooled_by": key[3]}
            | {name: float(by_key.at[(*key, alpha), measure]) for alpha, name in ALPHA_NAMES.items()}
            | {"repetitions": int(by_key.at[(*key, ALPHAS[0]), "repetitions"])}
            for panel in panels
            for measure in MEASURES
            for key in lines
            if key[:2] == panel
        ]
    )


def line(
    found: pd.DataFrame, study: str, sites: str, method: str, pooled_by: str, measure: str = MEAN
) -> Floats:
    """Return one line of the table: a number for each alpha."""
    wanted = {"study": study, "sites": sites, "method": method, "pooled_by": pooled_by, "measure": measure}
    chosen = np.logical_and.reduce([(found[name] == value).to_numpy() for name, value in wanted.items()])
    numbers: Floats = found.loc[chosen, list(ALPHA_NAMES.values())].to_numpy(dtype=np.float64)[0]
    return numbers
