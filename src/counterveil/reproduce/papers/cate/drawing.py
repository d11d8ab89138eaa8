"""Pictures of the paper's figures: predictions along a covariate, and errors by epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from counterveil.report.canvas import GREY, canvas, pyplot
from counterveil.reproduce.plots import style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

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
        Patch(color="#51606f", alpha=0.25, lw=0, label="private, 10 % to 90 % of queries"),
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
