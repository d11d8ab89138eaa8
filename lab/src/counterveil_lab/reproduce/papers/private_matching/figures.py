"""Figures 2 to 12, and Tables IV and V: relative errors; CPU seconds and peak memory, each estimate in a fresh process.

The paper plots |estimate - matched| / |matched|, where `matched` is propensity score matching without privacy. Beside
it every table has the root mean square error to the true effect as a part of it, where that is known.
Seconds are those of one estimate with the data in memory and the code compiled; megabytes are the peak of the whole
process, with the interpreter and its libraries. AIM runs in a second process, whose megabytes are added, and on the
smallest study alone: the paper's own figure for ACIC is 12,570 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from counterveil.published.matching import PaperNumbers
from counterveil.settings import Matching
from counterveil.settings.methods import ADAPTIVE
from counterveil_lab.reproduce.page import Cell, Figure, Row, Scalar
from counterveil_lab.reproduce.papers.private_matching.studies import (
    AIM_STUDY,
    COMPARED,
    COMPETITORS,
    DELTA,
    LABEL,
    SAMPLE,
    STUDIES,
    Floats,
    estimates,
    label_draws,
    records_of,
    repetitions,
    sample_draws,
    study_named,
)
from counterveil_lab.reproduce.plots import Axes, heatmaps, panels
from counterveil_lab.reproduce.rivals.catalogue import RIVALS
from counterveil_lab.reproduce.rivals.encoding import Budget, Records
from counterveil_lab.reproduce.rivals.environment import unavailable
from counterveil_lab.reproduce.rivals.measuring import measured

EPSILON = 1.0
OURS = (
    "ours, matching (outcome)",
    "ours, weighting (outcome)",
    "ours, difference in means (outcome)",
    "ours, difference in means (record)",
)
METHODS = {
    **{name: name for name in (*COMPETITORS, *OURS)},
    SAMPLE: "PrivATE, sample",
    LABEL: "PrivATE, label",
}
# The printed figures of both tables by study.
PRINTED = {
    "IPW-PP": {"seconds": (0.29, 0.16, 0.32, 0.06), "megabytes": (471.13, 470.92, 493.67, 472.70)},
    "SmoothDPM": {"seconds": (0.03, 0.04, 0.06, 0.02), "megabytes": (469.13, 468.92, 477.31, 470.81)},
    "DPCI": {"seconds": (0.09, 0.04, 0.94, 0.08), "megabytes": (479.84, 476.26, 483.60, 476.05)},
    "PrivSyn": {"seconds": (67.02, 5.18, 4861.72, 8.11), "megabytes": (540.44, 534.98, 572.21, 537.60)},
    "AIM": {"seconds": (210.35, 22.24, 12569.72, 104.63), "megabytes": (1712.74, 933.76, 4177.00, 1043.12)},
    SAMPLE: {"seconds": (0.08, 0.04, 0.68, 0.05), "megabytes": (470.60, 469.97, 484.55, 470.92)},
    LABEL: {"seconds": (0.06, 0.02, 0.55, 0.04), "megabytes": (468.19, 467.46, 479.83, 468.29)},
}


def cells(quick: bool) -> list[Cell]:
    """Return every method on every study, AIM where it ends in a minute; one study in quick mode."""
    found: list[Cell] = []
    for data in (AIM_STUDY,) if quick else STUDIES:
        for method in METHODS:
            slow = method == "AIM" and (quick or data != AIM_STUDY or unavailable(RIVALS["AIM"]) is not None)
            if not slow:
                found.append({"data": data, "method": method, "epsilon": EPSILON, "seed": 1})
    return found


def run(cell: Cell) -> list[Row]:
    """Return seconds and megabytes of one estimate; both tables come from one run of it."""
    return [dict(_measured(str(cell["method"]), str(cell["data"]), int(cell["seed"] or 0)))]


@cache
def _measured(method: str, data: str, seed: int) -> Row:
    rival = RIVALS[METHODS[method]]
    budget = Budget(EPSILON, DELTA if rival.delta == "needed" else 0.0)
    found = measured(rival, _by_columns(data), budget, seed)
    return {
        "seconds": found.seconds,
        "megabytes": found.peak,
        "first": found.first,
        "added": found.peak - found.before,
        "refused": found.refused,
    }


def _by_columns(data: str) -> Records:
    """Return a study's records with each column in one piece, as data frames keep them."""
    records = records_of(data)
    return replace(records, x=np.asfortranarray(records.x))


def table_of(measure: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one line for each method, one column for each study, the printed figures below."""
    ours = rows.pivot(index="method", columns="data", values=measure)
    ours = ours.reindex(index=[m for m in METHODS if m in ours.index], columns=list(STUDIES)).reset_index()
    paper = pd.DataFrame(
        [
            {"method": f"{method}, as printed"} | dict(zip(STUDIES, figures[measure], strict=True))
            for method, figures in PRINTED.items()
        ]
    )
    return pd.concat([ours, paper], ignore_index=True)


TABLES = (
    Figure("table-4", "Table IV: CPU seconds of one estimate", cells, run, partial(table_of, "seconds")),
    Figure(
        "table-5",
        "Table V: peak megabytes, of both processes for AIM",
        cells,
        run,
        partial(table_of, "megabytes"),
    ),
)


def _not_printed(measure: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what makes a table of a measure that the paper does not have."""

    def table(rows: pd.DataFrame) -> pd.DataFrame:
        found = rows.pivot(index="method", columns="data", values=measure)
        known = [method for method in METHODS if method in found.index]
        return found.reindex(index=known, columns=list(STUDIES)).reset_index()

    return table


BESIDE = (
    Figure(
        "table-4-first",
        "Beside Table IV: CPU seconds of the first estimate in a new process",
        cells,
        run,
        _not_printed("first"),
    ),
    Figure(
        "table-5-added",
        "Beside Table V: megabytes that estimates add to the process",
        cells,
        run,
        _not_printed("added"),
    ),
)
EPSILONS, QUICK_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0), (0.5, 1.0, 2.0, 4.0)
LINES = (0.5, 1.0, 2.0, 4.0)  # budgets that are lines of a figure
LIMITS = (0, 1, 10, 50)  # 0 stands for the adaptive limit
C_GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
H_GRID = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SPLIT_EPSILONS = (1.5, 2.5, 3.5)
FIRST, OTHERS = (5,), (1, 3, 7)  # neighbours of the figures of the text and of the appendix
LABEL_DRAWS, SAMPLE_DRAWS = 100, 10
_ERROR = "relative error"


def grid(**entries: Sequence[Scalar]) -> list[Cell]:
    """Return all combinations as cells, each with a seed of its own."""
    return [
        {**dict(zip(entries, values, strict=True)), "seed": seed}
        for seed, values in enumerate(product(*entries.values()), 1)
    ]


def errors(data: str, neighbours: int, values: Floats) -> Row:
    """Return the errors of repeated estimates, which are in units of the outcome's range."""
    study = study_named(data)
    matched = study.matched_with(neighbours)
    relative = np.abs(values / matched - 1)
    return {
        "error": float(relative.mean()),
        "spread": float(relative.std(ddof=1)) if len(values) > 1 else 0.0,
        "to_truth": float(np.sqrt(np.mean((values / study.effect - 1) ** 2))),
    }


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without their seeds."""
    return rows.drop(columns="seed")


# Figures 2 and 7: all methods by budget.


def compared_cells(neighbours: tuple[int, ...]) -> Callable[[bool], list[Cell]]:
    """Return the cells of the comparison of methods for these numbers of neighbours."""

    def cells(quick: bool) -> list[Cell]:
        found: list[Cell] = []
        for count, data, epsilon in product(
            neighbours[:1] if quick else neighbours,
            STUDIES,
            QUICK_EPSILONS if quick or len(neighbours) > 1 else EPSILONS,
        ):
            for method in COMPARED:
                draws = repetitions(method, data, epsilon, quick)
                # AIM takes minutes and does not match: Figure 2 has it.
                if draws and (method != "AIM" or neighbours == FIRST):
                    asked: dict[str, Scalar] = {
                        "neighbours": count,
                        "data": data,
                        "epsilon": epsilon,
                        "method": method,
                    }
                    # Methods that do not match are drawn once for every number of neighbours.
                    seed = len(COMPARED) * round(10 * epsilon) + COMPARED.index(method)
                    found.append({**asked, "draws": draws, "seed": seed})
        return found

    return cells


def compared_figure(
    number: int, title: str, neighbours: tuple[int, ...], draw: Callable[[pd.DataFrame], Drawing]
) -> Figure:
    """Return a figure that compares all methods."""
    cells = compared_cells(neighbours)
    return Figure(
        f"figure-{number}", f"Figure {number}: all methods, {title}", cells, run_compared, in_order, draw
    )


def run_compared(cell: Cell) -> list[Row]:
    """Return the errors of one method at one budget."""
    data, neighbours = str(cell["data"]), int(cell["neighbours"] or 0)
    method, epsilon = str(cell["method"]), float(cell["epsilon"] or 0)
    values = estimates(method, data, epsilon, neighbours, int(cell["draws"] or 0), int(cell["seed"] or 0))
    return [errors(data, neighbours, values)]


def draw_both(table: pd.DataFrame) -> Drawing:
    """Return Figure 2 with errors to matching, as in the paper, above those to the true effect."""
    kept = table[table["method"] != "without privacy"]
    truth = kept.assign(error=kept["to_truth"], to="true effect").dropna(subset=["error"])
    both = pd.concat([kept.assign(to="matching"), truth])
    axes = Axes("epsilon", _ERROR, log_y=True)
    return panels(both, axes, x="epsilon", y="error", line="method", columns="data", rows="to")


def draw_compared(table: pd.DataFrame) -> Drawing:
    """Return the picture of the comparison for several numbers of neighbours."""
    return panels(
        table[table["method"] != "without privacy"],
        Axes("epsilon", f"{_ERROR} to matching", log_y=True),
        x="epsilon",
        y="error",
        line="method",
        columns="data",
        rows="neighbours",
    )


# Figures 3 to 6 and 8 to 11: PrivATE by its limit and by its error coefficient.


def _published(level: str, cell: Cell, limit: int = 0, **settings: Any) -> list[Row]:
    """Return the errors of PrivATE under its own limit or a fixed one."""
    data, neighbours, epsilon = str(cell["data"]), int(cell["neighbours"] or 0), float(cell["epsilon"] or 0)
    study, draws, seed = study_named(data), int(cell["draws"] or 0), int(cell["seed"] or 0)
    if level == "label":
        asked = Matching(neighbours=neighbours, limit=limit or ADAPTIVE, **settings)
        values, lost = label_draws(study, epsilon, asked, draws, seed)
    else:
        record = PaperNumbers(neighbours=neighbours, **settings)
        values, lost = sample_draws(study, epsilon, record, draws, seed, limit or None)
    return [{**errors(data, neighbours, values), "true_epsilon": lost}]


def limit_figure(name: str, number: str, level: str, neighbours: tuple[int, ...]) -> Figure:
    """Return a figure of fixed limits beside the adaptive one."""
    draws = LABEL_DRAWS if level == "label" else SAMPLE_DRAWS

    def cells(quick: bool) -> list[Cell]:
        return grid(
            neighbours=neighbours[:1] if quick else neighbours,
            data=list(STUDIES),
            epsilon=QUICK_EPSILONS if quick else EPSILONS,
            limit=LIMITS,
            draws=[draws // 2 if quick else draws],
        )

    def run(cell: Cell) -> list[Row]:
        return _published(level, cell, int(cell["limit"] or 0))

    def table(rows: pd.DataFrame) -> pd.DataFrame:
        named = ["adaptive limit" if limit == 0 else f"limit {limit}" for limit in rows["limit"]]
        return in_order(rows).assign(limit=named)

    def draw(found: pd.DataFrame) -> Drawing:
        axes = Axes("epsilon", f"{_ERROR} to matching", log_y=True)
        return panels(found, axes, x="epsilon", y="error", line="limit", columns="data", rows="neighbours")

    return Figure(name, f"{number}: matching limits, {level} level", cells, run, table, draw)


def coefficient_figure(name: str, number: str, level: str, neighbours: tuple[int, ...]) -> Figure:
    """Return a figure of the error coefficient: c at label level, h at sample level."""
    symbol, values, draws = ("c", C_GRID, LABEL_DRAWS) if level == "label" else ("h", H_GRID, SAMPLE_DRAWS)

    def cells(quick: bool) -> list[Cell]:
        return grid(
            neighbours=neighbours[:1] if quick else neighbours,
            data=list(STUDIES),
            epsilon=LINES[1::2] if quick else LINES,
            coefficient=values,
            draws=[draws // 2 if quick else draws],
        )

    def run(cell: Cell) -> list[Row]:
        settings: dict[str, Any] = {symbol: float(cell["coefficient"] or 0)}
        return _published(level, cell, **settings)

    def table(rows: pd.DataFrame) -> pd.DataFrame:
        return in_order(rows).assign(budget=[f"epsilon {value:g}" for value in rows["epsilon"]])

    def draw(found: pd.DataFrame) -> Drawing:
        axes = Axes(f"error coefficient {symbol}", f"{_ERROR} to matching", log_x=True, log_y=True)
        return panels(
            found, axes, x="coefficient", y="error", line="budget", columns="data", rows="neighbours"
        )

    return Figure(name, f"{number}: error coefficient {symbol}, {level} level", cells, run, table, draw)


# Figure 12: the split of the budget.


def split_cells(quick: bool) -> list[Cell]:
    """Return the cells of Figure 12: tenths of epsilon for the scores and for the treatments."""
    tenths = (1, 3, 5, 7) if quick else range(1, 9)
    return [
        {**cell, "seed": seed}
        for seed, cell in enumerate(
            {
                "neighbours": 5,
                "data": data,
                "epsilon": epsilon,
                "first": one,
                "second": two,
                "draws": SAMPLE_DRAWS // 2 if quick else SAMPLE_DRAWS,
            }
            for data, epsilon, one, two in product(
                STUDIES, SPLIT_EPSILONS[::2] if quick else SPLIT_EPSILONS, tenths, tenths
            )
            if one + two < 10
        )
    ]


def run_split(cell: Cell) -> list[Row]:
    """Return the errors of one split."""
    one, two = int(cell["first"] or 0) / 10, int(cell["second"] or 0) / 10
    return _published(
        "sample", cell, weights=one / 2, scores=one / 2, treatments=two, effect=round(1 - one - two, 3)
    )


def split_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the shares as parts of epsilon."""
    return in_order(rows).assign(first=rows["first"] / 10, second=rows["second"] / 10)


def draw_split(table: pd.DataFrame) -> Drawing:
    """Return the maps of Figure 12."""
    axes = Axes("share of the scores, epsilon 1", "share of the treatments, epsilon 2")
    return heatmaps(table, axes, x="first", y="second", value="error", columns="data", rows="epsilon")


FIGURES = (
    compared_figure(2, "5 neighbours", FIRST, draw_both),
    limit_figure("figure-3", "Figure 3", "label", FIRST),
    coefficient_figure("figure-4", "Figure 4", "label", FIRST),
    limit_figure("figure-5", "Figure 5", "sample", FIRST),
    coefficient_figure("figure-6", "Figure 6", "sample", FIRST),
    compared_figure(7, "1, 3 and 7 neighbours", OTHERS, draw_compared),
    limit_figure("figure-8", "Figure 8", "label", OTHERS),
    coefficient_figure("figure-9", "Figure 9", "label", OTHERS),
    limit_figure("figure-10", "Figure 10", "sample", OTHERS),
    coefficient_figure("figure-11", "Figure 11", "sample", OTHERS),
    Figure(
        "figure-12",
        "Figure 12: split of the budget, sample level",
        split_cells,
        run_split,
        split_table,
        draw_split,
    ),
)
