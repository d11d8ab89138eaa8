"""The figures of the paper that have numbers (1, 2 and 8 are drawings), and tables of what its theorems promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from counterveil.report.pictures import GREY, canvas, pyplot
from counterveil_lab.reproduce.page import Figure
from counterveil_lab.reproduce.papers.cate.guarantees import (
    algorithm,
    algorithm_cells,
    algorithm_table,
    guarantee,
    guarantee_cells,
    guarantee_table,
    size,
    size_cells,
    size_table,
)
from counterveil_lab.reproduce.papers.cate.methods import (
    ALPHA,
    ANONYMOUS,
    BOOSTED,
    CONSTANT,
    DIFFERENCE,
    EPSILONS,
    FOREST,
    LINEAR,
    LITERAL,
    NETWORK,
    OURS,
    OURS_OUTCOME,
    SMALL,
    WITHOUT,
    ZERO,
    cells_of,
    errors,
    errors_table,
    predictions,
    predictions_table,
    relative_table,
)
from counterveil_lab.reproduce.papers.cate.studies import DATASET_1, DATASET_2, MIMIC, TCGA
from counterveil_lab.reproduce.plots import style_of

_PANEL = (2.9, 1.9)
_NAMES = {
    "error": "error (PEHE)",
    "noise": "distance to own answers without noise (ours: epsilon 1000)",
}
_LEAST = 1e-3


def draw_predictions(across: str) -> Callable[[pd.DataFrame], Drawing]:
    """Return what draws predictions: a row of panels a method, a column an epsilon."""

    def draw(table: pd.DataFrame) -> Drawing:
        methods, epsilons = (list(dict.fromkeys(table[name])) for name in ("method", "epsilon"))
        size = (_PANEL[0] * len(epsilons) + 0.4, _PANEL[1] * len(methods) + 0.8)
        drawing: Drawing = pyplot().figure(figsize=size, layout="constrained")
        grid = drawing.subplots(len(methods), len(epsilons), squeeze=False, sharey="row")
        for down, method in enumerate(methods):
            for right, epsilon in enumerate(epsilons):
                ax = canvas(grid[down][right])
                _bands(ax, table[(table["method"] == method) & (table["epsilon"] == epsilon)], method)
                ax.tick_params(labelsize=7.5)
                if down == 0:
                    ax.set_title(f"epsilon {epsilon:g}", fontsize=9.5, color="#1c2733")
                if down == len(methods) - 1:
                    ax.set_xlabel(across, fontsize=8.5, color=GREY)
                if right == 0:
                    ax.set_ylabel(f"{method}\neffect", fontsize=8.5, color=GREY)
        _key(drawing)
        return drawing

    return draw


def _bands(ax: Any, part: pd.DataFrame, method: str) -> None:
    colour = style_of(method).colour
    ax.fill_between(part["x"], part["low"], part["high"], color=colour, alpha=0.25, lw=0)
    ax.plot(part["x"], part["middle"], color=colour, lw=1.4)
    ax.plot(part["x"], part["fitted"], color="#51606f", lw=1.2, ls=(0, (1, 1.5)))
    ax.plot(part["x"], part["truth"], color="black", lw=1.2, ls=(0, (5, 2)))


def _key(drawing: Drawing) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color="black", lw=1.2, ls=(0, (5, 2)), label="truth"),
        Line2D([], [], color="#51606f", lw=1.2, ls=(0, (1, 1.5)), label="without noise (ours: epsilon 1000)"),
        Line2D([], [], color="#51606f", lw=1.4, label="private, median"),
        Patch(color="#51606f", alpha=0.25, lw=0, label="private, 10% to 90% of queries"),
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_errors(table: pd.DataFrame) -> Drawing:
    """Return the errors by epsilon beside the distance to what the same method answers without noise."""
    drawing: Drawing = pyplot().figure(figsize=(9.2, 4.6), layout="constrained")
    for ax, (column, title) in zip(drawing.subplots(1, 2), _NAMES.items(), strict=True):
        _curves(ax, table, column)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(title, fontsize=9.5, color="#1c2733")
        # Noise that vanishes would flatten all other lines.
        ax.set_ylim(bottom=max(ax.get_ylim()[0], _LEAST))
    _methods_key(drawing, table)
    return drawing


def draw_relative(table: pd.DataFrame) -> Drawing:
    """Return the error in per cent of the same learner's error without noise."""
    drawing: Drawing = pyplot().figure(figsize=(5.2, 3.9), layout="constrained")
    ax = drawing.add_subplot()
    _curves(ax, table, "relative")
    ax.set_ylabel("error, % of that without noise", fontsize=8.5, color=GREY)
    _methods_key(drawing, table)
    return drawing


def _curves(ax: Any, table: pd.DataFrame, column: str) -> None:
    canvas(ax)
    for method, own in table[table[column] > 0].groupby("method", sort=False):
        style = style_of(str(method))
        look = {"color": style.colour, "marker": style.marker, "ls": style.dash}
        ax.plot(own["epsilon"], own[column], ms=4, lw=1.3, **look)
    ax.set_xlabel("epsilon", fontsize=8.5, color=GREY)


def _methods_key(drawing: Drawing, table: pd.DataFrame) -> None:
    from matplotlib.lines import Line2D

    handles: list[Any] = []
    for method in dict.fromkeys(table["method"]):
        style = style_of(str(method))
        look = {"color": style.colour, "marker": style.marker, "ls": style.dash}
        handles.append(Line2D([], [], ms=4.5, lw=1.3, label=str(method), **look))
    drawing.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


_OTHERS = (OURS, OURS_OUTCOME, CONSTANT, DIFFERENCE, ZERO, WITHOUT)


def _predictions(
    name: str, title: str, study: str, methods: tuple[str, ...], learner: str = "R", across: str = "x1"
) -> Figure:
    return Figure(
        name,
        title,
        cells_of(study, methods, learner),
        predictions,
        predictions_table,
        draw_predictions(across),
    )


def _errors(name: str, title: str, study: str, methods: tuple[str, ...]) -> Figure:
    return Figure(name, title, cells_of(study, methods), errors(EPSILONS), errors_table, draw_errors)


FIGURES = (
    _predictions(
        "figure3",
        "Figure 3: Dataset 1, finite queries, R-learner",
        DATASET_1,
        (FOREST, NETWORK, OURS, OURS_OUTCOME),
    ),
    _predictions(
        "figure4",
        "Figure 4: Dataset 1, functional queries, R-learner",
        DATASET_1,
        (LITERAL, ALPHA, OURS, OURS_OUTCOME),
    ),
    _errors(
        "figure5",
        "Figure 5: errors on Dataset 2, finite and functional queries (empty where a method refuses)",
        DATASET_2,
        (FOREST, NETWORK, LITERAL, ALPHA, *_OTHERS),
    ),
    _predictions(
        "figure6", "Figure 6: MIMIC-III, finite queries", MIMIC, (FOREST, NETWORK, OURS), across="hematocrit"
    ),
    _predictions(
        "figure7", "Figure 7: TCGA, finite queries", TCGA, (FOREST, NETWORK, OURS), across="sum of covariates"
    ),
    _predictions(
        "figure9", "Figure 9: Dataset 1, finite queries, DR-learner", DATASET_1, (FOREST, NETWORK), "DR"
    ),
    _predictions(
        "figure10", "Figure 10: Dataset 1, functional queries, DR-learner", DATASET_1, (LITERAL, ALPHA), "DR"
    ),
    _predictions("figure11", "Figure 11: Dataset 1, private boosted trees", DATASET_1, (BOOSTED,)),
    _predictions(
        "figure12",
        "Figure 12: Dataset 1, finite queries beside Figure 11",
        DATASET_1,
        (FOREST, NETWORK, OURS),
    ),
    _errors(
        "figure13",
        "Figure 13: errors on Dataset 1 beside k-anonymisation",
        DATASET_1,
        (FOREST, NETWORK, *ANONYMOUS, OURS),
    ),
    _errors(
        "figure14",
        "Figure 14: errors on Dataset 1, finite queries",
        DATASET_1,
        (FOREST, NETWORK, LINEAR, *_OTHERS),
    ),
    Figure(
        "figure15",
        "Figure 15: errors on Dataset 1 in per cent of those without noise",
        cells_of(DATASET_1, (FOREST, NETWORK)),
        errors(SMALL),
        relative_table,
        draw_relative,
    ),
    Figure(
        "guarantees",
        "Theorems 1 and 2: lower bounds on the true epsilon",
        guarantee_cells,
        guarantee,
        guarantee_table,
    ),
    Figure("sizes", "Noise by people, seconds by queries", size_cells, size, size_table),
    Figure("algorithm2", "Algorithm 2: one query after another", algorithm_cells, algorithm, algorithm_table),
)
