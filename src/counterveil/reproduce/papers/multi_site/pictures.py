"""The figures: error against alpha, a column a panel and a row a method; sensitivities and the noise they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from counterveil.report.canvas import GREY, canvas, pyplot
from counterveil.reproduce.papers.multi_site.errors import ALPHA_NAMES, MEAN, SD, line
from counterveil.reproduce.papers.multi_site.repetition import AGGREGATIONS
from counterveil.reproduce.papers.multi_site.sensitivities import MEASURES
from counterveil.reproduce.plots import style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

# Methods that are drawn in rows; the others are lines for comparison in the row of ours.
_ROWS = ("published, global", "published, smooth", "published", "ours")
_COMPARED = {"difference in means": "MVAgg", "zero": "-"}
# The sensitivity and the noise of one method have one style.
_NAMES = dict(
    zip(
        MEASURES,
        ("published, smooth", "proved", "published, smooth", "published, global", "ours"),
        strict=True,
    )
)
_SMALLEST = 0.1  # a bar ends at a tenth of its mean where it would leave a logarithmic axis


def draw_errors(table: pd.DataFrame) -> Drawing:
    """Return the picture of a figure of errors: mean and standard deviation over repetitions."""
    panels = list(dict.fromkeys(zip(table["study"], table["sites"], strict=True)))
    methods = [method for method in _ROWS if (table["method"] == method).any()]
    size = (max(2.7 * len(panels) + 0.9, 4.6), 2.2 * len(methods) + 0.8)
    drawing: Drawing
    drawing, grid = pyplot().subplots(
        len(methods),
        len(panels),
        figsize=size,
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    for column, (study, sites) in enumerate(panels):
        for row, method in enumerate(methods):
            ax = canvas(grid[row][column])
            _panel(ax, table, (study, sites), method)
        divided = "four kinds of school" if sites == "schools" else sites.replace(":", " : ")
        grid[0][column].set_title(f"{study}, {divided}", fontsize=9.5)
        grid[-1][column].set_xlabel("alpha: budget of the last site / first", fontsize=8, color=GREY)
    for row, method in enumerate(methods):
        grid[row][0].set_ylabel(f"{method}\nmean absolute error", fontsize=8, color=GREY)
    handles, labels = grid[-1][0].get_legend_handles_labels()
    drawing.legend(
        handles, labels, loc="outside upper center", ncols=min(3 * len(panels), 6), fontsize=8, frameon=False
    )
    return drawing


def _panel(ax: Any, table: pd.DataFrame, panel: tuple[str, str], method: str) -> None:
    places = np.arange(len(ALPHA_NAMES))
    # Side by side, so that bars of equal methods do not hide each other.
    for shift, pooled_by in zip((-0.21, -0.07, 0.07, 0.21), AGGREGATIONS, strict=True):
        mean = line(table, *panel, method, pooled_by)
        sd = line(table, *panel, method, pooled_by, SD)
        down = np.minimum(sd, (1 - _SMALLEST) * mean)
        style = style_of(pooled_by)
        look = {"color": style.colour, "marker": style.marker, "ls": style.dash, "ms": 3.5, "lw": 1.1}
        ax.errorbar(
            places + shift, mean, yerr=[down, sd], elinewidth=0.5, capsize=1.5, label=pooled_by, **look
        )
    for other, pooled_by in _COMPARED.items():
        drawn = (table["method"] == other) & (table["study"] == panel[0]) & (table["measure"] == MEAN)
        if method == "ours" and drawn.any():
            style = style_of(other)
            look = {"color": style.colour, "ls": style.dash, "lw": 1, "ms": 3, "mfc": "white"}
            marker = "" if other == "zero" else style.marker
            ax.plot(places, line(table, *panel, other, pooled_by), marker=marker, label=other, **look)
    ax.set_yscale("log")
    ax.set_xticks(places, list(ALPHA_NAMES.values()), fontsize=7.5)
    ax.tick_params(axis="y", labelsize=7.5)


def draw_by_size(table: pd.DataFrame) -> Drawing:
    """Return the picture of Figure 6: sensitivities and noise against the number of people."""
    return _sensitivities(table, "people", "people in the data set (100 strata)", log_x=True)


def draw_by_slope(table: pd.DataFrame) -> Drawing:
    """Return the picture of Figure 7: sensitivities and noise against the slope of the propensity."""
    return _sensitivities(
        table.assign(place=table["slope"].astype(float), slope="0"),
        "place",
        "slope a of the propensity (10,000 people, 100 strata)",
        log_x=False,
    )


def _sensitivities(table: pd.DataFrame, x: str, label: str, *, log_x: bool) -> Drawing:
    drawing: Drawing
    drawing, grid = pyplot().subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
    titles = ("smooth sensitivity, ranges of the outcome", "SD of the noise on the effect at epsilon 1")
    for ax, title, measures in zip(grid, titles, (MEASURES[:2], MEASURES[2:]), strict=True):
        canvas(ax)
        for slope in dict.fromkeys(table["slope"]):
            own = table[table["slope"] == slope]
            for measure in measures:
                style = style_of(_NAMES[measure])
                name = measure.removeprefix("noise SD, ") + ("" if slope == "0" else ", drawn slope")
                # Drawn slopes are hollow.
                fill = style.colour if slope == "0" else "white"
                look = {"color": style.colour, "marker": style.marker, "ls": style.dash, "ms": 5, "lw": 1.2}
                ax.plot(own[x], own[measure], mfc=fill, label=name, **look)
        if measures[0] == MEASURES[0]:
            ax.axhline(1.0, color=GREY, lw=1, ls=(0, (4, 4)), label="global (1 as printed)")
        ax.set_yscale("log")
        ax.set_xscale("log" if log_x else "linear")
        ax.set_title(title, fontsize=9.5)
        ax.set_xlabel(label, fontsize=8.5, color=GREY)
        ax.legend(fontsize=7.5, frameon=False)
    return drawing
