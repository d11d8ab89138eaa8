"""Survival curves as pictures: for pages, and axes of matplotlib, with numbers at risk below."""

from __future__ import annotations

from typing import Any

from counterveil.report.document import Cells
from counterveil.report.numbers import Facts, percent
from counterveil.report.page import table
from counterveil.report.pictures import INK, Chart, axis, canvas, figure, finish, labels, pyplot, shape, ticks

_COLOURS = {"control": "#b3541e", "treated": INK}
_PALE = {"control": "#ecc9b2", "treated": "#9fc1d8"}
_PALER = {"control": "#f7e8de", "treated": "#d6e5ef"}
ARMS = ("treated", "control")
_CLASSES = {"control": "c1", "treated": "c0"}  # on a page
_SHOWN = 7  # columns of numbers at risk
_SENTENCE = "strong band: interval at each time alone; faint band: holds at all times at once"


def arm_rows(facts: Facts, arm: str) -> list[dict[str, Any]]:
    """Return the rows of one arm's curve, in the order of time."""
    found: list[dict[str, Any]] = []
    for row in facts["curves"]:
        if row["arm"] != arm:
            continue
        if found and facts["steps"]:
            # A step: level until the end of the cell.
            found.append(found[-1] | {"time": row["time"]})
        found.append(row)
    return found


def risk_columns(facts: Facts) -> list[tuple[float, dict[str, str]]]:
    """Return some times at which cells begin, and how many people of each arm were then at risk, as released."""
    times = [row["time"] for row in facts["curves"] if row["arm"] == ARMS[0]][:-1]
    step = max(1, -(-len(times) // _SHOWN))
    return [
        (times[place], {arm: f"{max(round(facts['at_risk'][arm][place]), 0):,}" for arm in ARMS})
        for place in range(0, len(times), step)
    ]


def curve_plot(facts: Facts) -> str:
    """Return a picture of both curves with their intervals and bands, and the numbers at risk below."""
    horizon = arm_rows(facts, ARMS[0])[-1]["time"]
    x, y = axis(0.0, horizon), axis(1.0, 0.0)

    def points(arm: str, key: str) -> list[tuple[float, float]]:
        return [(x(row["time"]), y(min(max(row[key], 0.0), 1.0))) for row in arm_rows(facts, arm)]

    inside = ""
    for kind in ("band_", ""):
        for arm in ARMS:
            ends = points(arm, f"{kind}high"), points(arm, f"{kind}low")
            inside += shape([*ends[0], *reversed(ends[1])], f"{_CLASSES[arm]}-band", closed=True)
    for arm in ARMS:
        inside += shape(points(arm, "estimate"), f"line {_CLASSES[arm]}{' dashed' * (arm == 'control')}")
    times = ticks(0.0, horizon, 6)
    chart = Chart(
        inside,
        "survival curves of both arms with intervals",
        [(x(time), text) for time, text in zip(times, labels(times), strict=True)],
        [(y(share), f"{share:g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)],
        across="time",
        up="probability of being free of the event",
    )
    caption = f"Line: treated. Dashed: control. {_SENTENCE[:1].upper()}{_SENTENCE[1:]}."
    columns = risk_columns(facts)
    risk = Cells(
        ["people at risk (released)", *(f"{time:.4g}" for time, _ in columns)],
        [[arm, *(counts[arm] for _, counts in columns)] for arm in ARMS],
        "People at risk when a cell begins, with noise",
    )
    drawn = figure(chart.html(), caption, "survival curves")
    return f"{drawn}{table(risk)}"


def survival(result: Any, *, ax: Any = None) -> Any:
    """Return the axes with both arms' survival curves, their intervals and bands, and numbers at risk below.

    Args:
        result: what `counterveil.survival` returned.
        ax: matplotlib axes to draw on; None makes a figure.
    """
    facts = result.report_facts()
    own = ax is None
    if own:
        _, ax = pyplot().subplots(figsize=(7.2, 5.2), layout="constrained")
    ax = canvas(ax)
    level = percent(facts["level"])
    for kind, shades, alpha in (("band_", _PALER, 0.7), ("", _PALE, 0.6)):
        for arm in ARMS:
            rows = arm_rows(facts, arm)
            ends = ([row[f"{kind}low"] for row in rows], [row[f"{kind}high"] for row in rows])
            ax.fill_between([row["time"] for row in rows], *ends, color=shades[arm], alpha=alpha, lw=0)
    for arm in ARMS:
        rows = arm_rows(facts, arm)
        shares = [min(max(row["estimate"], 0.0), 1.0) for row in rows]
        style = "-" if arm == "treated" else (0, (6, 3))
        ax.plot([row["time"] for row in rows], shares, color=_COLOURS[arm], lw=2, ls=style, label=arm)
    horizon = arm_rows(facts, ARMS[0])[-1]["time"]
    ax.set(xlim=(0, horizon), ylim=(0, 1))
    ticks = [*risk_columns(facts), (horizon, dict.fromkeys(ARMS, ""))]
    ax.set_xticks([time for time, _ in ticks], [_under(time, counts) for time, counts in ticks])
    for arm, down in zip(ARMS, (-25, -37), strict=True):
        place = {
            "xy": (0, 0),
            "xytext": (-26, down),
            "xycoords": "axes fraction",
            "textcoords": "offset points",
        }
        ax.annotate(arm, **place, fontsize=9, color=_COLOURS[arm], ha="right", annotation_clip=False)
    ax.set_ylabel("probability of being free of the event")
    ax.set_xlabel("time, and people at risk when a cell begins (released, with noise)")
    ax.legend(loc="best", fontsize=9, facecolor="white", edgecolor="none", framealpha=0.9)
    note = f"{level}, {_SENTENCE}. Intervals include the privacy noise; spent: {result.spent}."
    finish(ax, f"Survival by {facts['treatment']}", note, result)
    ax.texts[-1].set_position((0, -66))
    return ax


def _under(time: float, counts: dict[str, str]) -> str:
    return "\n".join([f"{time:g}", *(counts[arm] for arm in ARMS)])
