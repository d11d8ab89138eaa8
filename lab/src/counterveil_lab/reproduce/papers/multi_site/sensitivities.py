"""Figures 6 and 7: the smooth sensitivity of matching on Synth, beside a proved one, and all pictures."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

import counterveil as cv
from counterveil.datasets import synth_strata
from counterveil.published.strata import printed_smooth_change, printed_smoothness
from counterveil.published.strata_sensitivity import StratumCounts, smooth_change
from counterveil.report.pictures import GREY, canvas, pyplot
from counterveil_lab.reproduce.page import Cell, Row
from counterveil_lab.reproduce.papers.multi_site.errors import AGGREGATIONS, ALPHA_NAMES, MEAN, SD, line
from counterveil_lab.reproduce.plots import style_of

EPSILON, DELTA, STRATA = 1.0, 1e-5, 100
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
SLOPES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
QUICK, FULL = 5, 20
# Balanced data, the slope that is drawn where none is mentioned, and the ends of that draw.
BALANCED, DRAWN = "0", "drawn from [-1, 1]"
# Noise of each release alone at epsilon 1: a Laplace scale of 2 S, a Laplace scale of the range, and all of ours.
MEASURES = ("printed S", "proved S", "noise SD, printed smooth", "noise SD, printed global", "noise SD, ours")


def by_size(quick: bool) -> Sequence[Cell]:
    """Return the cells of Figure 6: sizes, with balanced data and with a drawn slope."""
    return [
        {"figure": 6, "people": size, "slope": slope, "seed": 0, "repetitions": QUICK if quick else FULL}
        for size in SIZES
        for slope in (BALANCED, DRAWN)
    ]


def by_slope(quick: bool) -> Sequence[Cell]:
    """Return the cells of Figure 7: slopes of the propensity at 10,000 people."""
    return [
        {
            "figure": 7,
            "people": 10_000,
            "slope": f"{slope:g}",
            "seed": 0,
            "repetitions": QUICK if quick else FULL,
        }
        for slope in SLOPES
    ]


def run(cell: Cell) -> list[Row]:
    """Return the sensitivities of each drawn data set, in ranges of the outcome, and the noise they lead to."""
    first = int(cell["seed"] or 0)
    slope = None if cell["slope"] == DRAWN else float(cell["slope"] or 0)
    return [
        {"repetition": seed, "measure": name, "value": value}
        for seed in range(first, first + int(cell["repetitions"] or 0))
        for name, value in zip(MEASURES, _measured(int(cell["people"] or 0), slope, seed), strict=True)
    ]


def _measured(people: int, slope: float | None, seed: int) -> tuple[float, ...]:
    data = synth_strata(seed=30_000 + seed, n=people, levels=STRATA, slope=slope)
    level, treated = data.frame["x"], data.frame["treated"]
    everyone = np.bincount(level, minlength=STRATA)
    in_treatment = np.bincount(level, treated, STRATA).astype(np.int64)
    counts = StratumCounts.of(in_treatment, everyone - in_treatment, STRATA)
    beta = printed_smoothness(EPSILON, DELTA)
    printed = printed_smooth_change(counts, beta) / people
    proved = float(smooth_change(counts, Fraction(beta), "ATE", "single")) / people
    ours = cv.ate(
        data.frame, data.study, protects="record", epsilon=1, method="stratified", noise=cv.SeededNoise(seed)
    )
    noise = ours.uncertainty.noise
    return (
        printed,
        proved,
        8**0.5 * printed / EPSILON,
        2**0.5 / EPSILON,
        noise.variance**0.5 if noise else 0.0,
    )


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over data sets, one column a measure."""
    found = []
    for (people, slope), own in rows.groupby(["people", "slope"], sort=False):
        means = {name: own.loc[own["measure"] == name, "value"].mean() for name in MEASURES}
        drawn = own["repetition"].nunique()
        found.append({"people": people, "slope": slope, **means, "repetitions": drawn})
    return pd.DataFrame(found)


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
