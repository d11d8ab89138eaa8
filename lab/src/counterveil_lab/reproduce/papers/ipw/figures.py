"""Figures 1 and 2 on synthetic studies, the effect on the treated of Appendix F, and Tables 2 and 3.


Every run draws its rows anew, as the paper did, and then one release of each form at each epsilon. A wrong sign is one
other than that of the same weighting without noise. Sampling with replacement puts a person into several rows: these
are experiments, not private releases. IHDP has 25 files here where the paper had 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import sqrt

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from counterveil.privacy import Estimand
from counterveil.published.weighting import weighted_sum
from counterveil_lab.reproduce.page import Cell, Figure, Row
from counterveil_lab.reproduce.papers.ipw.synthetic import (
    PARTLY,
    PLAIN,
    RELEASED,
    bias_of,
    drawn,
    estimates,
    one_run,
    simulated_bias,
)
from counterveil_lab.reproduce.plots import Axes, panels

EPSILONS = (0.2, 0.4, 0.6, 0.8, 0.99)
SIZES = (500, 1000, 1500, 2000, 2500)
EFFECTS = (0.1, 2.0)
PRINTED, DERIVED, SIMULATED = "as printed", "as derived", "simulated"
# Trials of a cell, how many of them there are, and their draws of the noise in Figure 1.
BLOCK, TRIALS, QUICK_TRIALS, DRAWS = 10, 100, 20, 25
USUAL_SIZE, SMALL_EPSILON = 1000, 0.2


def _blocks(quick: bool) -> range:
    return range((QUICK_TRIALS if quick else TRIALS) // BLOCK)


def _trials(cell: Cell) -> range:
    first = BLOCK * int(cell["block"] or 0)
    return range(first, first + BLOCK)


# Figure 1: the bias that noise in the weights adds.


def bias_cells(quick: bool) -> list[Cell]:
    """Return blocks of trials by size and budget."""
    return [
        {"rows": size, "epsilon": epsilon, "block": block, "seed": 1}
        for size, epsilon, block in product(SIZES[::2] if quick else SIZES, EPSILONS, _blocks(quick))
    ]


def run_bias(cell: Cell) -> list[Row]:
    """Return the bias of each trial, as printed, as derived and as drawn."""
    rows: list[Row] = []
    for trial in _trials(cell):
        study = drawn(trial, int(cell["rows"] or 0), EFFECTS[1])
        epsilon = float(cell["epsilon"] or 0)
        printed, derived = bias_of(study, epsilon)
        found = {
            PRINTED: printed,
            DERIVED: derived,
            SIMULATED: simulated_bias(study, epsilon, DRAWS, trial),
        }
        rows += [{"form": name, "bias": value} for name, value in found.items()]
    return rows


def bias_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean bias over trials."""
    means = rows.groupby(["form", "rows", "epsilon"], sort=False, as_index=False)["bias"].mean()
    return means.assign(budget=[f"epsilon {value:g}" for value in means["epsilon"]])


def draw_bias(table: pd.DataFrame) -> Drawing:
    """Return Figure 1."""
    axes = Axes("rows of the propensity model, m", "bias g")
    return panels(table, axes, x="rows", y="bias", line="budget", columns="form", share_y=True)


# Figure 2: signs by budget, estimates by rows.


def sign_cells(quick: bool) -> list[Cell]:
    """Return blocks of trials by effect and budget."""
    return [
        {"effect": effect, "epsilon": epsilon, "rows": USUAL_SIZE, "block": block, "seed": 2}
        for effect, epsilon, block in product(EFFECTS, EPSILONS[::2] if quick else EPSILONS, _blocks(quick))
    ]


def mean_cells(quick: bool) -> list[Cell]:
    """Return blocks of trials by effect and rows."""
    return [
        {"effect": effect, "epsilon": SMALL_EPSILON, "rows": size, "block": block, "seed": 3}
        for effect, size, block in product(EFFECTS, SIZES[::2] if quick else SIZES, _blocks(quick))
    ]


def run_trials(cell: Cell) -> list[Row]:
    """Return the estimates of each trial."""
    rows: list[Row] = []
    size, epsilon = int(cell["rows"] or 0), float(cell["epsilon"] or 0)
    for trial in _trials(cell):
        study = drawn(trial, size, float(cell["effect"] or 0))
        # Every point has noise of its own; the rows of a trial are the same for all budgets.
        seed = trial + 1000 * (round(100 * epsilon) + size)
        found = estimates(study, epsilon, seed)
        rows += [
            {"trial": trial, "estimate": name, "value": value, "plain": found[PLAIN]}
            for name, value in found.items()
        ]
    return rows


def sign_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often signs differ from those without noise."""
    noisy = rows[rows["estimate"] != PLAIN]
    wrong = noisy.assign(wrong=np.sign(noisy["value"]) != np.sign(noisy["plain"]))
    keys = ["effect", "epsilon", "estimate"]
    kept: pd.DataFrame = (
        wrong.groupby(keys, sort=False)["wrong"].agg(wrong="mean", trials="count").reset_index()
    )
    return kept


def mean_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means with half their 95% interval over trials."""
    keys = ["effect", "rows", "estimate"]
    found = rows.groupby(keys, sort=False)["value"].agg(["mean", "std", "count"]).reset_index()
    half = 1.96 * found["std"] / found["count"].map(sqrt)
    return found.assign(half=half)[[*keys, "mean", "half"]]


def _titled(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with effects as titles of panels."""
    return table.assign(effect=[f"effect {value:g}" for value in table["effect"]])


def draw_signs(table: pd.DataFrame) -> Drawing:
    """Return Figures 2a and 2b."""
    axes = Axes("epsilon", "share of wrong signs")
    return panels(
        _titled(table), axes, x="epsilon", y="wrong", line="estimate", columns="effect", share_y=True
    )


def draw_means(table: pd.DataFrame) -> Drawing:
    """Return Figures 2c and 2d."""
    axes = Axes("rows of the propensity model, m", "mean estimate")
    return panels(_titled(table), axes, x="rows", y="mean", line="estimate", columns="effect", spread="half")


# Appendix F: the effect on the treated, weighted by the true propensity.


def treated_cells(quick: bool) -> list[Cell]:
    """Return blocks of trials."""
    return [{"block": block, "seed": 4} for block in _blocks(quick)]


def run_treated(cell: Cell) -> list[Row]:
    """Return the estimate that Appendix F prints for the treated, the effect, and the share treated."""
    rows: list[Row] = []
    for trial in _trials(cell):
        study = drawn(trial, USUAL_SIZE, EFFECTS[1])
        t, y = study.treated[study.fitted :], study.y[study.fitted :]
        logits = study.x[study.fitted :] @ study.weights
        found = weighted_sum(logits, t, y, Estimand.ATT)
        rows.append({"printed": found, "effect": study.effect, "share": float(t.mean())})
    return rows


def treated_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over trials."""
    return rows[["printed", "effect", "share"]].mean().to_frame().T


FIGURES = (
    Figure(
        "figure-1", "Figure 1: bias by rows and budget, effect 2", bias_cells, run_bias, bias_table, draw_bias
    ),
    Figure(
        "figure-2ab",
        "Figures 2a and 2b: wrong signs by budget",
        sign_cells,
        run_trials,
        sign_table,
        draw_signs,
    ),
    Figure(
        "figure-2cd",
        "Figures 2c and 2d: mean estimates by rows, epsilon 0.2",
        mean_cells,
        run_trials,
        mean_table,
        draw_means,
    ),
    Figure(
        "appendix-f",
        "Appendix F: the effect on the treated as printed",
        treated_cells,
        run_treated,
        treated_table,
    ),
)
TABLE_BLOCK, RUNS, QUICK_RUNS, PAPER_RUNS = 20, 300, 60, 1000
MEAN, MEDIAN, WRONG = "mean", "median", "wrong signs"
OF_THE_PAPER = "paper: "
PRINTED_TABLES: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
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
        blocks = (QUICK_RUNS if quick else RUNS) // TABLE_BLOCK
        return [
            {"data": family, "first_run": TABLE_BLOCK * block, "runs": TABLE_BLOCK} for block in range(blocks)
        ]

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
        _line(f"{OF_THE_PAPER}{name}", measure, values, PAPER_RUNS)
        for (name, measure), values in PRINTED_TABLES[family].items()
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
