"""A self-contained page: the effect, a picture of its interval, the promise and the price."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.balance import html_balance
from counterveil.report.latex import write_up
from counterveil.report.text import (
    Cells,
    brief,
    details_sentence,
    effect_cells,
    effects_of,
    interval_sentence,
    lead_sentence,
    mean_cells,
    name_of,
    rounded,
)

# A forest plot: every effect with its interval, and the wider one that holds for all, around zero.


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


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1c2733;max-width:50rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .4rem}p.lead{color:#51606f;margin:.2rem 0 1.2rem}
table{border-collapse:collapse;width:100%}th,td{padding:.4rem .5rem;text-align:right;border-bottom:1px solid #d9e0e7}
th{font-weight:600;color:#51606f;font-size:.85rem}td{white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal}div.table{overflow-x:auto}
.warning{background:#8a1c1c;color:#fff;padding:.7rem 1rem;font-weight:700;margin-bottom:1rem}
dl{display:grid;grid-template-columns:8rem 1fr;gap:.35rem 1rem}dt{font-weight:600;color:#51606f}dd{margin:0}
svg{width:100%;height:auto;margin:1rem 0}ul{margin:0;padding-left:1.1rem}
"""


def html_page(facts: dict[str, Any]) -> str:
    """Return the whole page as text; nothing in it is loaded from elsewhere."""
    title = f"Effect of {escape(facts['treatment'])} on {escape(facts['outcome'])}"
    said_first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    warning = "".join(f'<p class="warning">{escape(text)}</p>' for text in said_first)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{warning}<h1>{title}</h1>"
        f'<p class="lead">{escape(lead_sentence(facts))}; {escape(facts["method"])}</p>'
        f"{_table(effect_cells(facts))}{_picture(facts)}{_means(facts)}"
        f"<h2>What is promised</h2>{_promise(facts)}{html_balance(facts)}"
        f"<h2>What was released, and what it cost</h2>{_price(facts)}"
        f"<h2>For a paper</h2><p>{escape(write_up(facts))}</p></body></html>\n"
    )


def _table(cells: Cells) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in cells.headings)
    rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{heads}</tr>{body}</table></div>'


def _means(facts: dict[str, Any]) -> str:
    cells = mean_cells(facts)
    return f"<h2>Means of the arms</h2>{_table(cells)}" if cells else ""


def _picture(facts: dict[str, Any]) -> str:
    """Return the interval beside the shorter one that would ignore the noise, around zero; or a forest plot."""
    if "effects" in facts:
        return forest_plot(facts)
    low, high = float(facts["interval"]["low"]), float(facts["interval"]["high"])
    at = float(facts["estimate"])
    if not (isfinite(low) and isfinite(high)):
        return ""
    shorter = (facts["interval_without_noise"]["low"], facts["interval_without_noise"]["high"])
    left, right = min(low, 0.0), max(high, 0.0)
    margin = 0.06 * (right - left)

    def x(value: float) -> float:
        return 20 + 680 * (value - left + margin) / (right - left + 2 * margin)

    def bar(y: int, ends: tuple[float, float], colour: str, label: str) -> str:
        return (
            f'<line x1="{x(ends[0]):.1f}" x2="{x(ends[1]):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
            f'stroke-width="5" stroke-linecap="round"/><circle cx="{x(at):.1f}" cy="{y}" r="6" fill="{colour}"/>'
            f'<text x="20" y="{y - 14}" font-size="13" fill="#51606f" stroke="#fff" stroke-width="4" '
            f'paint-order="stroke">{label}</text>'
        )

    total = facts["std_error"]["total"]
    zero = (
        f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="14" y2="122" stroke="#9aa7b4" stroke-dasharray="4 4"/>'
        f'<text x="{x(0):.1f}" y="140" font-size="12" text-anchor="middle" fill="#51606f">no effect</text>'
    )
    ticks = "".join(
        f'<text x="{x(end):.1f}" y="140" font-size="12" text-anchor="middle" fill="#1c2733">'
        f"{rounded(end, total)}</text>"
        for end in (low, high)
        if abs(x(end) - x(0)) > 60
    )
    return (
        '<svg viewBox="0 0 720 150" role="img" aria-label="interval of the effect">'
        + zero
        + bar(52, (low, high), "#155a8a", _interval_label(facts))
        + bar(106, shorter, "#a9b8c6", "sampling error alone: too short, for comparison")
        + ticks
        + "</svg>"
    )


def _interval_label(facts: dict[str, Any]) -> str:
    if facts.get("interval_of"):
        return "with privacy noise; not an interval for the effect, see above"
    return "with privacy noise: this is the interval to report"


def _promise(facts: dict[str, Any]) -> str:
    promise = facts["guarantee"]
    rows = [
        ("Guarantee", promise["sentence"]),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        ("Details", details_sentence(facts)),
        ("Not covered", "; ".join(facts["not_covered"])),
        ("Proofs", ", ".join(promise["pages"])),
        *(("Remark", remark) for remark in promise["remarks"]),
    ]
    public = "".join(f"<li>{escape(brief(fact))}</li>" for fact in promise["public"])
    return (
        "<dl>"
        + "".join(f"<dt>{a}</dt><dd>{escape(b)}</dd>" for a, b in rows if b)
        + f"<dt>Public</dt><dd><ul>{public}</ul></dd></dl>"
    )


def _price(facts: dict[str, Any]) -> str:
    spent = Budget.from_dict(facts["spent"])
    items = "".join(f"<li>{escape(name)}: {escape(text)}</li>" for name, text in facts["releases"])
    return f"<p>Spent: {escape(str(spent))}</p><ul>{items}</ul>"
