"""A self-contained page: the effect, a picture of its interval, the guarantee and the price."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.balance import html_balance, html_overlap
from counterveil.report.confounding import html_sensitivity, sensitivity_view, tipping_plot
from counterveil.report.figures import details_sentence
from counterveil.report.scales import Scale, comparable
from counterveil.report.survival import curve_plot
from counterveil.report.text import write_up
from counterveil.report.view import (
    Cells,
    View,
    brief,
    effect_cells,
    interval_sentence,
    lead_sentence,
    mean_cells,
    rounded,
    title,
)

# A forest plot: every effect with its interval, and the wider one that holds for all, around zero.


_WIDTH, _RIGHT, _ROW, _TOP = 720, 700, 34, 24
_LETTER, _SMALL = 8.2, 6.6  # width of a letter of a name, and where names are long
_MOST, _LONGEST = 22, 40  # letters of a name before it is written small, and before it is cut
_INK, _PALE, _GREY = "#155a8a", "#9fc1d8", "#51606f"


def forest_plot(effects: list[dict[str, Any]], zero: str = "no effect") -> str:
    """Return inline SVG; `zero` is what stands at the value of no effect. Intervals without an end reach the edge."""
    finite = [end for effect in effects for end in _widest(effect).values() if isinstance(end, float)]
    if not all(map(isfinite, finite)):
        return ""
    scale = Scale.of(effects)
    longest = max(len(_short(str(effect["name"]))) for effect in effects)
    left = max(190.0, 30 + longest * (_LETTER if longest <= _MOST else _SMALL))

    def x(value: float | None) -> float:
        return left + (_RIGHT - left) * scale.place(scale.held(value))

    bottom = _TOP + _ROW * len(effects)
    size = 14 if longest <= _MOST else 11
    rows = "".join(
        _row(effect, _TOP + _ROW * place + _ROW // 2, x, size, scale) for place, effect in enumerate(effects)
    )
    error = effects[0]["std_error"]["total"]
    # Labels of the ends, left out where they would run into that of no effect.
    null = None if scale.null is None else x(scale.null)
    ticks = "".join(
        _tick(x(end), bottom, rounded(end, error))
        for end in (scale.low, scale.high)
        if null is None or abs(x(end) - null) > 60
    )
    line = (
        ""
        if null is None
        else (
            f'<line x1="{null:.1f}" x2="{null:.1f}" y1="{_TOP - 8}" y2="{bottom + 4}" stroke="#9aa7b4" '
            f'stroke-dasharray="4 4"/>'
        )
    )
    named = "" if null is None else _tick(null, bottom, zero)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 50}" role="img" aria-label="effects and their intervals">'
        f"{line}{rows}{named}{ticks}"
        f'<text x="20" y="{bottom + 42}" font-size="12" fill="{_GREY}">{_legend(effects)}'
        f"{'; lines to the edge have no end' if scale.open else ''}</text></svg>"
    )


def _widest(effect: dict[str, Any]) -> dict[str, Any]:
    widest: dict[str, Any] = effect.get("simultaneous_interval", effect["interval"])
    return widest


def _legend(effects: list[dict[str, Any]]) -> str:
    if "simultaneous_interval" in effects[0]:
        return "dark: interval of one effect; pale: intervals that hold for all at once"
    if any(effect.get("summary") for effect in effects):
        return "intervals include the privacy noise; pale: weight of zero; diamond: all together"
    return "dark: the interval that includes the privacy noise"


def _row(effect: dict[str, Any], y: int, x: Any, size: int, scale: Scale) -> str:
    def bar(interval: dict[str, Any], colour: str, width: int) -> str:
        return "".join(
            f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{y}" y2="{y}" '
            f'stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>'
            for low, high in scale.pieces(interval)
        )

    name = escape(_short(str(effect["name"])))
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
    # At the right edge a label ends there, so that it is not cut off.
    edge = x + len(text) * _SMALL / 2 > _WIDTH
    x, anchor = (_WIDTH - 2, "end") if edge else (x, "middle")
    return (
        f'<text x="{x:.1f}" y="{bottom + 22}" font-size="12" text-anchor="{anchor}" fill="{_GREY}">'
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


def page(view: View, body: str = "") -> str:
    """Return a whole page as text: warnings, title, tables, then `body`; nothing in it is loaded from elsewhere."""
    heading = escape(view.title)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{heading}</title>'
        f"<style>{_STYLE}</style></head><body>{_warnings(view.first)}<h1>{heading}</h1>"
        f'<p class="lead">{escape(view.lead)}</p>{"".join(map(_table, view.tables))}'
        f"{body or named_lines(view.items)}</body></html>\n"
    )


def html_page(facts: dict[str, Any]) -> str:
    """Return the report of a result as a page."""
    first = [facts[key] for key in ("warning", "caution") if facts.get(key)]
    lead = f"{lead_sentence(facts)}; {facts['method']}"
    return page(
        View(first, title(facts), lead, [effect_cells(facts)], []),
        f"{picture(facts)}{_means(facts)}"
        f"<h2>What is guaranteed</h2>{_guarantee(facts)}{html_balance(facts)}{html_overlap(facts)}"
        f"{html_sensitivity(facts)}"
        f"<h2>What was released, and what it cost</h2>{_price(facts)}"
        f"<h2>For a paper</h2><p>{escape(write_up(facts))}</p>",
    )


def sensitivity_page(facts: dict[str, Any]) -> str:
    """Return a sensitivity analysis as a page; `facts` are those of `Sensitivity.to_dict`."""
    view = sensitivity_view(facts, full=True)
    return page(view, f"{tipping_plot(facts)}{named_lines(view.items)}")


# Colours are those of the notebook, light or dark; only the warning has its own.
_CELL = "padding:.25em .7em;text-align:right"
_WARNED = "background:#8a1c1c;color:#fff;padding:.4em .8em;font-weight:700;margin:0 0 .5em"


def fragment(view: View) -> str:
    """Return a view as a piece of HTML for a notebook: the same lines as its text, without any style sheet."""
    warnings = "".join(f'<p style="{_WARNED}">{escape(text)}</p>' for text in view.first)
    more = "".join(f"<p>{escape(text)}</p>" for text in view.more)
    return (
        f'<div>{warnings}<p style="margin:0"><strong>{escape(view.title)}</strong><br>{escape(view.lead)}</p>'
        f"{''.join(_table(cells, _CELL) for cells in view.tables)}{more}"
        + "".join(
            f'<p style="margin:.15em 0"><strong>{escape(name)}:</strong> {escape(text)}</p>'
            for name, text in view.items
            if text
        )
        + "</div>"
    )


def _warnings(first: list[str]) -> str:
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in first)


def named_lines(items: list[tuple[str, str]]) -> str:
    """Return named lines as a list of definitions; those without text are left out."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in items if text)
    return f"<dl>{rows}</dl>"


def _table(cells: Cells, style: str = "") -> str:
    own = f' style="{style}"' if style else ""
    heads = "".join(f"<th{own}>{escape(head)}</th>" for head in cells.headings)
    rows = ["".join(f"<td{own}>{escape(cell)}</td>" for cell in row) for row in cells.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{heads}</tr>{body}</table></div>'


def _means(facts: dict[str, Any]) -> str:
    cells = mean_cells(facts)
    return f"<h2>Means of the arms</h2>{_table(cells)}" if cells else ""


def picture(facts: dict[str, Any]) -> str:
    """Return curves, or a forest plot; one effect has beside it the shorter interval that would ignore the noise."""
    if "curves" in facts:
        return curve_plot(facts)
    effects = comparable(facts)
    if len(effects) != 1:
        return forest_plot(effects) if effects else ""
    (effect,) = effects
    label = (
        "not an interval for the effect" if facts.get("interval_of") else "with privacy noise: report this"
    )
    shown = [effect | {"name": label}]
    # A function has no shorter interval: its covariance is that of all errors together.
    if "interval_without_noise" in effect:
        shorter = {"name": "sampling error alone: too short", "interval": effect["interval_without_noise"]}
        shown.append(effect | shorter | {"weight": 0})
    return forest_plot(shown)


def _guarantee(facts: dict[str, Any]) -> str:
    guarantee = facts["guarantee"]
    public = "".join(f"<li>{escape(brief(fact))}</li>" for fact in guarantee["public"])
    rows = [
        ("Guarantee", guarantee["sentence"]),
        ("Interval", interval_sentence(facts)),
        *facts.get("notes", []),
        ("Details", details_sentence(facts["details"])),
        ("Not covered", "; ".join(facts["not_covered"])),
        ("Proofs", ", ".join(guarantee["pages"])),
        *(("Remark", remark) for remark in guarantee["remarks"]),
    ]
    return f"{named_lines(rows)}<dl><dt>Public</dt><dd><ul>{public}</ul></dd></dl>"


def _price(facts: dict[str, Any]) -> str:
    spent = Budget.from_dict(facts["spent"])
    items = "".join(f"<li>{escape(name)}: {escape(text)}</li>" for name, text in facts["releases"])
    return f"<p>Spent: {escape(str(spent))}</p><ul>{items}</ul>"
