"""The picture of a plan: half-widths of intervals against epsilon, a line for each number of people."""

from __future__ import annotations

from math import log10
from typing import Any

from counterveil.report.pictures import Chart, axis, dot, figure, labels, line, shape, ticks

_COLOURS = ("Blue", "Ochre", "Green", "Violet")
_ROOM = 4.0  # parts of a hundred on both sides, so that dots and names are whole


def plan_plot(answers: list[dict[str, Any]], without_privacy: float, beside: str) -> str:
    """Return a picture of planned half-widths, empty where fewer than two are known; the table has the numbers.

    `beside` says what the dashed line is.
    """
    known = [one for one in answers if one["half_width"] is not None]
    spread = sorted({one["epsilon"] for one in known})
    if len(spread) < 2:
        return ""
    most = max(one["half_width"] for one in known) * 1.08
    place, y = axis(log10(spread[0]), log10(spread[-1])), axis(most, 0.0)

    def x(epsilon: float) -> float:
        return _ROOM + (100 - 2 * _ROOM) * place(log10(epsilon)) / 100

    inside = (
        "" if without_privacy >= most else line((0, y(without_privacy)), (100, y(without_privacy)), "zero")
    )
    sizes = list(dict.fromkeys(one["rows"] for one in known))
    for number, rows in enumerate(sizes):
        colour = f"c{number % len(_COLOURS)}"
        points = [(x(one["epsilon"]), y(one["half_width"])) for one in known if one["rows"] == rows]
        inside += shape(points, f"line {colour}") + "".join(dot(point, f"{colour}-fill") for point in points)
    values = ticks(0.0, most)
    chart = Chart(
        inside,
        "half-width of the interval against epsilon; the table has the numbers",
        [(x(one), f"{one:g}") for one in spread],
        [(y(value), text) for value, text in zip(values, labels(values), strict=True)],
        across="epsilon (logarithmic)",
        up="half-width of the interval",
    )
    named = "; ".join(
        f"{_COLOURS[number % len(_COLOURS)]}: {rows:,} people" for number, rows in enumerate(sizes)
    )
    dashed = f" Dashed: {beside}." if without_privacy < most else ""
    return figure(
        chart.html(),
        f"{named}.{dashed}",
        "planned half-widths by epsilon",
    )
