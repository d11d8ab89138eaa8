"""Pictures of tables in long form: every method has one colour, marker and dash throughout, readable in grey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
from matplotlib.figure import Figure as Drawing

from counterveil.report.pictures import GREY, canvas, pyplot

# Colours that differ in lightness as well (after Okabe and Ito), markers and dashes.
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4c9a", "#7f7f7f")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
# Methods of fixed style; the style of any other comes from its name.
_FIXED = {
    "ours, outcome": (1, 0, 0),
    "ours, record": (2, 1, 0),
    "PrivATE (label)": (6, 0, 1),
    "PrivATE (sample)": (5, 1, 1),
    "difference in means": (7, 4, 2),
    "zero": (8, 8, 2),
    "without privacy": (0, 5, 0),
    "constant effect": (8, 3, 1),
    "DP-CATE forest": (3, 2, 1),
    "DP-CATE network": (4, 3, 1),
    "DP-CATE linear": (5, 6, 1),
    "DP-CATE kernel": (6, 4, 3),
    "DP-CATE kernel, alpha": (6, 7, 2),
    "k-anonymous forest": (3, 6, 2),
    "k-anonymous network": (4, 7, 2),
    "DP-EBM": (5, 5, 3),
    "DP-EBM, published": (7, 2, 3),
    "DP-EBM, R-learner, declared bounds": (5, 5, 3),
    "ours, epsilon 1000": (0, 5, 0),
    "IPW-PP": (3, 2, 1),
    "difference in means, Laplace": (4, 4, 2),
    "difference in means, OpenDP": (4, 4, 1),
    "OLS, Laplace": (3, 1, 1),
    "IPW, Laplace": (5, 2, 3),
    "OLS, noisy Gram": (3, 1, 3),
    "MST": (6, 5, 2),
    "DP-EBM, T-learner": (5, 5, 3),
    "DP-EBM, X-learner": (5, 6, 2),
    "SmoothDPM": (4, 3, 1),
    "DPCI": (3, 6, 3),
    "AIM": (8, 7, 1),
    "PrivSyn": (7, 8, 3),
    "ours, outcome (auto)": (1, 5, 2),
    "ours, auto": (2, 5, 0),
    "ours, ipw": (1, 2, 1),
    "published, before the last noise": (6, 1, 2),
    "published, released": (3, 3, 3),
    "without noise": (0, 6, 1),
    "adaptive limit": (0, 0, 0),
    "limit 1": (1, 1, 1),
    "limit 10": (2, 2, 2),
    "limit 50": (3, 3, 3),
    "epsilon 0.2": (6, 4, 3),
    "epsilon 0.4": (5, 5, 2),
    "epsilon 0.5": (6, 0, 2),
    "epsilon 0.6": (2, 2, 3),
    "epsilon 0.8": (1, 1, 1),
    "epsilon 0.99": (0, 3, 0),
    "epsilon 1": (1, 1, 1),
    "epsilon 2": (2, 2, 3),
    "epsilon 4": (0, 3, 0),
    # The ways of pooling sites, and the methods of Koga, Chaudhuri and Page beside ours.
    "MVAgg": (0, 0, 0),
    "AggAll": (1, 1, 1),
    "AggLargest": (5, 2, 2),
    "IVW": (3, 3, 3),
    "ours": (2, 1, 0),
    "proved": (1, 1, 2),
    "published, smooth": (4, 3, 1),
    "published, global": (7, 4, 3),
}
_PANEL = (2.9, 2.5)


@dataclass(frozen=True)
class Style:
    """How a method is drawn in every picture."""

    colour: str
    marker: str
    dash: Any


def style_of(method: str) -> Style:
    """Return the style of a method; a method without one of its own gets that of its name."""
    if method in _FIXED:
        colour, marker, dash = _FIXED[method]
    else:
        number = crc32(method.encode())
        colour = number % len(_COLOURS)
        marker, dash = number // 9 % len(_MARKERS), number // 81 % len(_DASHES)
    return Style(_COLOURS[colour], _MARKERS[marker], _DASHES[dash])


@dataclass(frozen=True)
class Axes:
    """The labels of the two axes, and whether they are logarithmic."""

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


def panels(
    table: pd.DataFrame,
    labels: Axes,
    *,
    x: str,
    y: str,
    line: str,
    columns: str,
    rows: str | None = None,
    spread: str | None = None,
    share_y: bool = False,
) -> Drawing:
    """Return a grid of panels with a line for each method.

    `x`, `y`, `line`, `columns` and `rows` name columns of the table; `spread` names half the length of the bars.
    """
    wide, high = _values(table, columns), _values(table, rows) if rows else [None]
    drawing, grid = _grid(len(high), len(wide), share_y)
    for down, first in enumerate(high):
        for across, second in enumerate(wide):
            part = table[table[columns] == second]
            part = part if rows is None else part[part[rows] == first]
            ax = grid[down][across]
            if part.empty:
                ax.text(0.5, 0.5, "not known", ha="center", va="center", color=GREY, transform=ax.transAxes)
                ax.set_axis_off()
                continue
            _lines(ax, part, (x, y, line), spread)
            ax.set_xscale("log" if labels.log_x else "linear")
            if labels.log_y:
                _log_y(ax)
            title = str(second) if rows is None else f"{second}, {rows} = {first}"
            _label(ax, title, labels.x if down == len(high) - 1 else "", labels.y if across == 0 else "")
    _legend(drawing, _values(table, line))
    return drawing


def heatmaps(
    table: pd.DataFrame, labels: Axes, *, x: str, y: str, value: str, columns: str, rows: str
) -> Drawing:
    """Return a grid of maps, the value written in every cell; darker is larger."""
    wide, high = _values(table, columns), _values(table, rows)
    drawing, grid = _grid(len(high), len(wide), False)
    for down, first in enumerate(high):
        for across, second in enumerate(wide):
            part = table[(table[columns] == second) & (table[rows] == first)]
            ax = grid[down][across]
            _map(ax, part.pivot(index=y, columns=x, values=value))
            title = f"{second}, {rows} = {first}"
            _label(ax, title, labels.x if down == len(high) - 1 else "", labels.y if across == 0 else "")
    return drawing


def save(drawing: Drawing, folder: Path, name: str) -> str:
    """Write a picture as SVG and PNG and return the name of the PNG file; the same picture gives the same files."""
    pyplot().rcParams["svg.hashsalt"] = name
    drawing.savefig(folder / f"{name}.svg", metadata={"Date": None})
    drawing.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
    pyplot().close(drawing)
    return f"{name}.png"


def _grid(down: int, across: int, share_y: bool) -> tuple[Drawing, Any]:
    size = (_PANEL[0] * across + 0.4, _PANEL[1] * down + 0.6)
    drawing, grid = pyplot().subplots(
        down, across, figsize=size, layout="constrained", squeeze=False, sharey="row" if share_y else False
    )
    return drawing, grid


def _values(table: pd.DataFrame, column: str) -> list[Any]:
    """Return the values of a column in the order in which the table has them."""
    return list(dict.fromkeys(table[column]))


def _lines(ax: Any, part: pd.DataFrame, names: tuple[str, str, str], spread: str | None) -> None:
    x, y, line = names
    canvas(ax)
    for method in _values(part, line):
        own, style = part[part[line] == method], style_of(str(method))
        look = {"color": style.colour, "marker": style.marker, "ls": style.dash, "ms": 4, "lw": 1.3}
        if spread is None:
            ax.plot(own[x], own[y], **look)
        else:
            ax.errorbar(own[x], own[y], yerr=own[spread], elinewidth=0.6, capsize=1.5, **look)


def _log_y(ax: Any) -> None:
    """Make the vertical axis logarithmic, with plain numbers beside it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    near = high < 30 * low
    ax.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if near else (1,)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _map(ax: Any, table: pd.DataFrame) -> None:
    top = float(table.max().max())
    low = float(table.min().min())
    # The lowest value is light grey, so that it is not taken for a cell without a value.
    ax.imshow(table, cmap="Greys", aspect="auto", origin="lower", vmin=low - 0.2 * (top - low), vmax=top)
    for down, row in enumerate(table.itertuples(index=False)):
        for across, number in enumerate(row):
            if number == number:
                dark = number - low > 0.55 * (top - low)
                colour = "white" if dark else "black"
                ax.text(across, down, f"{number:.2g}", ha="center", va="center", fontsize=6, color=colour)
    ax.set_xticks(range(len(table.columns)), [f"{value:g}" for value in table.columns], fontsize=7)
    ax.set_yticks(range(len(table.index)), [f"{value:g}" for value in table.index], fontsize=7)


def _label(ax: Any, title: str, x: str, y: str) -> None:
    ax.set_title(title, fontsize=9.5, color="#1c2733")
    ax.set_xlabel(x, fontsize=8.5, color=GREY)
    ax.set_ylabel(y, fontsize=8.5, color=GREY)


def _legend(drawing: Drawing, methods: Iterable[Any]) -> None:
    from matplotlib.lines import Line2D

    handles: Sequence[Any] = [
        Line2D(
            [], [], color=style.colour, marker=style.marker, ls=style.dash, ms=4.5, lw=1.3, label=str(name)
        )
        for name in methods
        for style in (style_of(str(name)),)
    ]
    # As many columns as fit: a letter takes about a seventeenth of an inch, the line before a label seven letters.
    longest = max(len(str(handle.get_label())) for handle in handles) + 7
    columns = max(1, min(len(handles), 6, int(17 * drawing.get_figwidth() / longest)))
    drawing.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
