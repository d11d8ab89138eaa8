"""The frame of a picture: axes without clutter, a title, a note on what is shown, and a stamp where it is simulated."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from counterveil.errors import refusal

INK, PALE, PALER, GREY, WARNING = "#155a8a", "#9fc1d8", "#d6e5ef", "#51606f", "#8a1c1c"
_WIDTH, _HEIGHT = 7.2, 4.6
_LETTERS = 105


def canvas(ax: Any, height: float = _HEIGHT) -> Any:
    """Return axes to draw on: the given ones, or those of a new figure."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(_WIDTH, height), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=GREY, labelcolor="#1c2733", labelsize=9)
    ax.grid(visible=True, color="#edf1f4", lw=0.8)
    ax.set_axisbelow(True)
    return ax


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot as found
    except ImportError:
        raise refusal("CV-E040") from None
    return found


def zero_line(ax: Any, axis: str, value: float = 0.0) -> None:
    """Draw the line of no effect, across the vertical ("y") or the horizontal axis."""
    draw = ax.axhline if axis == "y" else ax.axvline
    draw(value, color=GREY, lw=1, ls=(0, (4, 4)), zorder=1)


def legend(ax: Any) -> None:
    """Write the legend where it hides least, on white."""
    ax.legend(loc="best", fontsize=8, facecolor="white", edgecolor="none", framealpha=0.9)


def finish(ax: Any, title: str, note: str, result: Any) -> None:
    """Write title and note and, where the guarantee is less than proved, the warning across the picture."""
    framed(ax, title, note, result.guarantee.warning)


def framed(ax: Any, title: str, note: str, warning: str | None) -> None:
    """Write title and note, and a warning across the picture if there is one."""
    ax.set_title(fill(title, 70), loc="left", fontsize=12, fontweight="bold", color="#1c2733", pad=22)
    if warning:
        ax.text(0, 1.02, warning, transform=ax.transAxes, fontsize=8.5, fontweight="bold", color=WARNING)
        stamp = {"fontsize": 30, "color": WARNING, "alpha": 0.11, "ha": "center", "va": "center"}
        word = warning.split(",")[0].split(":")[0]
        ax.text(0.5, 0.5, word, transform=ax.transAxes, rotation=18, zorder=10, **stamp)
    ax.annotate(
        fill(note, _LETTERS),
        xy=(0, 0),
        xycoords="axes fraction",
        xytext=(0, -44),
        textcoords="offset points",
        fontsize=7.5,
        color=GREY,
        va="top",
        annotation_clip=False,
    )
