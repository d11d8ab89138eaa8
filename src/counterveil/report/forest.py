"""A forest plot: every effect with its interval, and the wider one that holds for all, around zero."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

from counterveil.report.numbers import rounded
from counterveil.report.table import effects_of, name_of

_WIDTH, _RIGHT, _ROW, _TOP = 720, 700, 34, 24
_LETTER, _SMALL = 8.2, 6.6  # width of a letter of a name, and where names are long
_MOST, _LONGEST = 22, 40  # letters of a name before it is written small, and before it is cut
_INK, _PALE, _GREY = "#155a8a", "#9fc1d8", "#51606f"


def forest_plot(facts: dict[str, Any]) -> str:
    """Return inline SVG, empty where an interval is not finite."""
    effects = effects_of(facts)
    ends = [0.0] + [float(_widest(effect)[end]) for effect in effects for end in ("low", "high")]
    if not all(map(isfinite, ends)):
        return ""
    low, high = min(ends), max(ends)
    longest = max(len(_short(name_of(effect))) for effect in effects)
    left = max(190.0, 30 + longest * (_LETTER if longest <= _MOST else _SMALL))
    scale = (_RIGHT - left) / (high - low)

    def x(value: float) -> float:
        return left + scale * (value - low)

    bottom = _TOP + _ROW * len(effects)
    size = 14 if longest <= _MOST else 11
    rows = "".join(
        _row(effect, _TOP + _ROW * place + _ROW // 2, x, size) for place, effect in enumerate(effects)
    )
    error = float(effects[0]["std_error"]["total"])
    # Labels of the ends, left out where they would run into that of zero.
    ticks = "".join(
        _tick(x(end), bottom, rounded(end, error)) for end in (low, high) if abs(x(end) - x(0)) > 60
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 50}" role="img" aria-label="effects and their intervals">'
        f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{_TOP - 8}" y2="{bottom + 4}" stroke="#9aa7b4" '
        f'stroke-dasharray="4 4"/>{rows}{_tick(x(0), bottom, "no effect")}{ticks}'
        f'<text x="20" y="{bottom + 42}" font-size="12" fill="{_GREY}">{_legend(effects)}</text></svg>'
    )


def _widest(effect: dict[str, Any]) -> dict[str, float]:
    widest: dict[str, float] = effect.get("simultaneous_interval", effect["interval"])
    return widest


def _legend(effects: list[dict[str, Any]]) -> str:
    if "simultaneous_interval" in effects[0]:
        return "dark: interval of one effect; pale: intervals that hold for all at once"
    return "intervals include the privacy noise; pale: weight of zero; diamond: all together"


def _row(effect: dict[str, Any], y: int, x: Any, size: int) -> str:
    def bar(interval: dict[str, float], colour: str, width: int) -> str:
        return (
            f'<line x1="{x(interval["low"]):.1f}" x2="{x(interval["high"]):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>'
        )

    name = escape(_short(name_of(effect)))
    label = f'<text x="20" y="{y + 5}" font-size="{size}" fill="#1c2733">{name}</text>'
    at, ink = float(x(effect["estimate"])), _PALE if effect.get("weight") == 0 else _INK
    if effect.get("summary"):
        low, high = x(effect["interval"]["low"]), x(effect["interval"]["high"])
        corners = f"{low:.1f},{y} {at:.1f},{y - 9} {high:.1f},{y} {at:.1f},{y + 9}"
        return f'{label}<polygon points="{corners}" fill="{ink}"/>'
    return (
        label
        + bar(_widest(effect), _PALE, 3)
        + bar(effect["interval"], ink, 5)
        + f'<circle cx="{at:.1f}" cy="{y}" r="6" fill="{ink}"/>'
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _tick(x: float, bottom: int, text: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{bottom + 22}" font-size="12" text-anchor="middle" fill="{_GREY}">'
        f"{escape(text)}</text>"
    )
