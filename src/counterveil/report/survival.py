"""Survival curves as pictures: inline SVG for pages, and axes of matplotlib, with numbers at risk below."""

from __future__ import annotations

from html import escape
from typing import Any

from counterveil.report.canvas import GREY, INK, canvas, finish, pyplot
from counterveil.report.view import Facts, percent

_COLOURS = {"control": "#b3541e", "treated": INK}
_PALE = {"control": "#ecc9b2", "treated": "#9fc1d8"}
_PALER = {"control": "#f7e8de", "treated": "#d6e5ef"}
ARMS = ("treated", "control")
# Columns of numbers at risk, and of an SVG.
_SHOWN, _LEFT, _RIGHT, _TOP, _BOTTOM = 7, 110, 700, 16, 250
_SENTENCE = "dark band: interval at each time alone; pale band: holds at all times at once"


def arm_rows(facts: Facts, arm: str) -> list[dict[str, Any]]:
    """Return the rows of one arm's curve, in the order of time."""
    found: list[dict[str, Any]] = []
    for row in facts["curves"]:
        if row["arm"] != arm:
            continue
        if found and facts["curves_fall"] == "at the ends of cells":
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
    """Return inline SVG of both curves with their intervals and bands, and the numbers at risk below."""
    horizon = arm_rows(facts, ARMS[0])[-1]["time"]

    def point(time: float, share: float) -> str:
        x = _LEFT + (_RIGHT - _LEFT) * time / horizon
        return f"{x:.1f},{_BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), 1.0):.1f}"

    def area(arm: str, low: str, high: str, colour: str) -> str:
        rows = arm_rows(facts, arm)
        upper = [point(row["time"], row[high]) for row in rows]
        lower = [point(row["time"], row[low]) for row in reversed(rows)]
        return f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" fill-opacity="0.6"/>'

    parts = [area(arm, "band_low", "band_high", _PALER[arm]) for arm in ARMS]
    parts += [area(arm, "low", "high", _PALE[arm]) for arm in ARMS]
    for arm in ARMS:
        line = " ".join(point(row["time"], row["estimate"]) for row in arm_rows(facts, arm))
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{_COLOURS[arm]}" stroke-width="2.5"'
            f"{_dashes(arm)}/>"
        )
    return (
        f'<svg viewBox="0 0 720 {_BOTTOM + 112}" role="img" aria-label="survival curves of both arms with intervals">'
        f"{_axes(point, horizon)}{''.join(parts)}{_below(facts, point)}</svg>"
    )


def _dashes(arm: str) -> str:
    return ' stroke-dasharray="7 4"' if arm == "control" else ""


def _axes(point: Any, horizon: float) -> str:
    found = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (x, y), end = point(0.0, share).split(","), point(horizon, share).split(",")[0]
        found.append(
            f'<line x1="{x}" x2="{end}" y1="{y}" y2="{y}" stroke="#e3e8ec"/>'
            f'<text x="{float(x) - 8:.1f}" y="{float(y) + 4:.1f}" font-size="12" text-anchor="end" fill="{GREY}">'
            f"{share:g}</text>"
        )
    return "".join(found)


def _below(facts: Facts, point: Any) -> str:
    """Return times, numbers at risk and the legend, under the curves."""
    found = [
        f'<text x="8" y="{_BOTTOM + 40 + 18 * place}" font-size="12" font-weight="600" fill="{_COLOURS[arm]}">'
        f"{arm}{' - -' if arm == 'control' else ''}</text>"
        for place, arm in enumerate(ARMS)
    ]
    end = arm_rows(facts, ARMS[0])[-1]["time"]
    for time, counts in [*risk_columns(facts), (end, {})]:
        x = point(time, 0.0).split(",")[0]
        found.append(
            f'<text x="{x}" y="{_BOTTOM + 18}" font-size="12" text-anchor="middle" fill="{GREY}">{time:g}</text>'
        )
        found += [
            f'<text x="{x}" y="{_BOTTOM + 40 + 18 * place}" font-size="12" text-anchor="middle" '
            f'fill="#1c2733">{counts[arm]}</text>'
            for place, arm in enumerate(ARMS)
            if arm in counts
        ]
    lines = ("numbers: people at risk when a cell begins (released, with noise)", _SENTENCE)
    foot = "".join(
        f'<text x="8" y="{_BOTTOM + 86 + 17 * place}" font-size="12" fill="{GREY}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return "".join(found) + foot


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
