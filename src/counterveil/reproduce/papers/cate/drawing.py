"""Pictures of the paper's figures: predictions along a covariate, and errors by epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from counterveil.report.canvas import GREY, canvas, pyplot
from counterveil.reproduce.plots import Axes, panels, style_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

_PANEL = (2.9, 1.9)
_NAMES = {
    "error": "error (PEHE)",
    "noise": "distance to own answers without noise",
}


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
        Line2D([], [], color="#51606f", lw=1.2, ls=(0, (1, 1.5)), label="without noise"),
        Line2D([], [], color="#51606f", lw=1.4, label="private, median"),
        Patch(color="#51606f", alpha=0.25, lw=0, label="private, 10 % to 90 % of queries"),
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_errors(table: pd.DataFrame) -> Drawing:
    """Return the errors by epsilon beside the distance to what the same method answers without noise."""
    long = table.melt(["method", "epsilon"], list(_NAMES), var_name="measure")
    long["measure"] = long["measure"].map(_NAMES)
    # Nothing to draw where a method refuses, and no logarithm of a method without noise.
    kept = long[long["value"] > 0]
    return panels(
        kept,
        Axes("epsilon", "", log_x=True, log_y=True),
        x="epsilon",
        y="value",
        line="method",
        columns="measure",
    )


def draw_relative(table: pd.DataFrame) -> Drawing:
    """Return the error in per cent of the same learner's error without noise."""
    shown = table.assign(measure="dataset 1")
    labels = Axes("epsilon", "error, % of that without noise", log_y=True)
    return panels(shown, labels, x="epsilon", y="relative", line="method", columns="measure")
