"""The picture of a plan: half-widths of intervals against epsilon, as inline SVG in the colours of the page."""

from __future__ import annotations

from html import escape
from math import floor, log10
from typing import Any

from counterveil.report.view import rounded

_WIDTH, _HEIGHT = 720, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 700, 16, 270
_MARKS, _MOST_STEPS = (2, 5, 10, 20), 5


def plan_curves(answers: list[dict[str, Any]], without_privacy: float) -> str:
    """Return inline SVG with a line a size, empty where fewer than two points are finite; the table has the numbers."""
    known = [one for one in answers if one["half_width"] is not None]
    spread = sorted({one["epsilon"] for one in known})
    if len(spread) < 2:
        return ""
    most = max(one["half_width"] for one in known) * 1.08
    first, last = log10(spread[0]), log10(spread[-1])

    def x(epsilon: float) -> float:
        return float(_LEFT + (_RIGHT - _LEFT) * (log10(epsilon) - first) / (last - first))

    def y(half: float) -> float:
        return float(_BOTTOM - (_BOTTOM - _TOP) * half / most)

    lines = [
        _line(
            [(x(one["epsilon"]), y(one["half_width"])) for one in known if one["rows"] == rows], place, rows
        )
        for place, rows in enumerate(dict.fromkeys(one["rows"] for one in known))
    ]
    ticks = [_tick_x(x(one), f"{one:g}") for one in spread]
    ticks += [_tick_y(y(one), rounded(one, one)) for one in _steps(most)]
    plain = "" if without_privacy >= most else _plain(y(without_privacy))
    return (
        f'<svg class="curves" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        'aria-label="half-width of the interval against epsilon; the table below has the numbers">'
        f'{"".join(ticks)}<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}"/>'
        f'{plain}{"".join(lines)}<text class="label" x="{(_LEFT + _RIGHT) / 2:.0f}" y="{_BOTTOM + 44}" '
        f'text-anchor="middle">epsilon (logarithmic)</text>'
        f'<text class="label" x="14" y="{(_TOP + _BOTTOM) / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {(_TOP + _BOTTOM) / 2:.0f})">half-width of the interval</text></svg>'
    )


def _line(points: list[tuple[float, float]], place: int, rows: int) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>' for x, y in points)
    name = escape(f"{rows:,} people")
    at, above = points[0]
    return (
        f'<g class="curve c{place % 4}"><polyline points="{path}"/>{dots}'
        f'<text x="{at + 9:.1f}" y="{max(above - 8, _TOP + 8):.1f}">{name}</text></g>'
    )


def _plain(y: float) -> str:
    """Return the line of an interval without noise; its words stand where the curves are not, on the left below."""
    words = y + 17 if y < _BOTTOM - 22 else y - 7
    return (
        f'<line class="plain" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="label" x="{_LEFT + 6}" y="{words:.1f}">without privacy, least squares</text>'
    )


def _steps(most: float) -> list[float]:
    """Return two to five round values up to the largest."""
    size = 10.0 ** (floor(log10(most)) - 1)
    step = next(mark * size for mark in _MARKS if most / (mark * size) <= _MOST_STEPS)
    return [step * count for count in range(1, int(most / step) + 1)]


def _tick_x(x: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}"/>'
        f'<text class="label" x="{x:.1f}" y="{_BOTTOM + 20}" text-anchor="middle">{escape(text)}</text>'
    )


def _tick_y(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="label" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )
