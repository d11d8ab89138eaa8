"""A self-contained page: the effect, a picture of its interval, the promise and the price."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Any

from counterveil.privacy import Budget
from counterveil.report.balance import html_balance
from counterveil.report.forest import forest_plot
from counterveil.report.numbers import rounded
from counterveil.report.table import Cells, effect_cells, mean_cells
from counterveil.report.text import brief, details_sentence, interval_sentence, lead_sentence
from counterveil.report.write_up import write_up

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
