"""Balance and overlap of the arms as text and as pictures of a page; shown only where covariates are public."""

from __future__ import annotations

from html import escape
from typing import Any

# Differences beyond this are worth a look; the usual rule of thumb.
THRESHOLD = 0.1
_MOST = 40  # rows of a table or a plot: those with the largest differences before
_HEADINGS = ("covariate", "before", "after", "ratio before", "ratio after")
_BEFORE, _AFTER = "#a9b8c6", "#155a8a"


def balance_table(facts: dict[str, Any]) -> str:
    """Return standardised differences and variance ratios before and after, largest first, as plain text.

    `facts` is `Result.to_dict()`. Without diagnostics the text says why there are none.
    """
    rows = balance_rows(facts)
    if not rows:
        return "No balance table: covariates are private in this result, or the method does not use them."
    lines = [
        f"Balance of the covariates ({facts['estimand']}): standardised differences, treated minus control",
        "",
        *_columns([_HEADINGS, *(_cells(row) for row in rows[:_MOST])]),
    ]
    if len(rows) > _MOST:
        lines.append(f"... and {len(rows) - _MOST} more columns with smaller differences before")
    lines += ["", _verdict(rows)]
    for arm in facts.get("diagnostics", {}).get("effective_size", []):
        lines.append(f"Effective size, {arm['arm']}: {arm['effective']:.0f} of {arm['rows']} rows")
    return "\n".join(lines)


def html_balance(facts: dict[str, Any]) -> str:
    """Return the section of a page with table and love plot; empty where there are no diagnostics."""
    rows = balance_rows(facts)
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(head)}</th>" for head in _HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in rows[:_MOST]
    )
    return (
        f"<h2>Balance of the covariates</h2><p>{escape(_verdict(rows))}</p>{love_plot(rows[:_MOST])}"
        f"<table><tr>{heads}</tr>{body}</table>"
    )


def love_plot(rows: list[dict[str, Any]]) -> str:
    """Return the absolute standardised differences before and after, one line a covariate, as inline SVG."""
    known = [abs(row[key]) for row in rows for key in _DIFFERENCES if row[key] is not None]
    reach = float(max([2 * THRESHOLD, *known]))
    height = 20 * len(rows) + 46
    # Names are whole up to half of the width.
    left = min(360.0, max(120.0, 16 + 6.4 * max(len(_short(row["covariate"])) for row in rows)))

    def x(value: float) -> float:
        return left + (690 - left) * value / reach

    def dot(row: dict[str, Any], key: str, y: int, colour: str) -> str:
        if row[key] is None:
            return ""
        return f'<circle cx="{x(abs(row[key])):.1f}" cy="{y}" r="5" fill="{colour}"/>'

    lines = []
    for place, row in enumerate(rows):
        y = 20 * place + 18
        lines.append(
            f'<text x="{left - 10:.0f}" y="{y + 4}" font-size="12" text-anchor="end" fill="#1c2733">'
            f"{escape(_short(row['covariate']))}</text>"
            f'<line x1="{left:.0f}" x2="690" y1="{y}" y2="{y}" stroke="#e6ebf0"/>'
            + dot(row, "difference_before", y, _BEFORE)
            + dot(row, "difference_after", y, _AFTER)
        )
    foot = height - 24
    return (
        f'<svg viewBox="0 0 720 {height}" role="img" aria-label="love plot">'
        f'<line x1="{x(THRESHOLD):.1f}" x2="{x(THRESHOLD):.1f}" y1="6" y2="{foot}" stroke="#9aa7b4" '
        f'stroke-dasharray="4 4"/>{"".join(lines)}'
        f'<text x="20" y="{height - 6}" font-size="12" fill="#51606f">'
        f"absolute standardised difference, 0 to {reach:.2f}; grey before, blue after; dashed at {THRESHOLD}"
        "</text></svg>"
    )


# Overlap: how many people of either arm have which propensity score.


def overlap_rows(facts: dict[str, Any]) -> dict[str, list[float]] | None:
    """Return the counts by propensity score of two arms; None where there are none."""
    found = facts.get("diagnostics", {}).get("overlap")
    return found if isinstance(found, dict) and len(found.get("edges", [])) > 1 else None


def overlap_sentence(found: dict[str, list[float]]) -> str:
    """Return in words how many people have scores near 0 or 1, where few of the other arm are like them."""
    edges, treated, control = found["edges"], found["treated"], found["control"]
    near = [k for k in range(len(treated)) if edges[k + 1] <= THRESHOLD or edges[k] >= 1 - THRESHOLD]
    beyond, everyone = sum(treated[k] + control[k] for k in near), sum(treated) + sum(control)
    return (
        f"{beyond:,.0f} of {everyone:,.0f} people have a propensity score below {THRESHOLD} or above "
        f"{1 - THRESHOLD:g}"
    )


def html_overlap(facts: dict[str, Any]) -> str:
    """Return the section of a page with the overlap of the arms; empty where there are no scores."""
    found = overlap_rows(facts)
    if found is None:
        return ""
    return f"<h2>Overlap of the arms</h2><p>{escape(overlap_sentence(found))}</p>{overlap_plot(found)}"


def overlap_plot(found: dict[str, list[float]]) -> str:
    """Return inline SVG: propensity scores of the treated upwards and of the controls downwards, as parts of an arm."""
    parts = {arm: [n / max(sum(found[arm]), 1) for n in found[arm]] for arm in ("treated", "control")}
    reach = max(*parts["treated"], *parts["control"], 1e-9)
    edges = found["edges"]

    def x(score: float) -> float:
        return 60 + 630 * (score - edges[0]) / (edges[-1] - edges[0])

    bars = []
    for k, (up, down) in enumerate(zip(parts["treated"], parts["control"], strict=True)):
        left, width = x(edges[k]) + 1, x(edges[k + 1]) - x(edges[k]) - 2
        for part, top, colour in ((up, 110 - 96 * up / reach, _AFTER), (down, 110.0, _BEFORE)):
            height = 96 * part / reach
            bars.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
            )
    ticks = "".join(
        f'<text x="{x(score):.1f}" y="224" font-size="12" text-anchor="middle" fill="#51606f">{score:.2g}</text>'
        for score in (edges[0] + (edges[-1] - edges[0]) * k / 4 for k in range(5))
    )
    return (
        '<svg viewBox="0 0 720 250" role="img" aria-label="overlap of propensity scores">'
        f'{"".join(bars)}<line x1="60" x2="690" y1="110" y2="110" stroke="#51606f"/>{ticks}'
        f'<text x="4" y="60" font-size="12" fill="{_AFTER}">treated</text>'
        '<text x="4" y="170" font-size="12" fill="#51606f">control</text>'
        '<text x="60" y="244" font-size="12" fill="#51606f">propensity score; heights are parts of an arm</text></svg>'
    )


_DIFFERENCES = ("difference_before", "difference_after")


def balance_rows(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows by falling difference before; one that does not exist comes first."""
    rows: list[dict[str, Any]] = facts.get("diagnostics", {}).get("balance", [])

    def size(row: dict[str, Any]) -> float:
        value = row["difference_before"]
        return float("inf") if value is None else abs(value)

    return sorted(rows, key=size, reverse=True)


def _verdict(rows: list[dict[str, Any]]) -> str:
    before, after = (
        sum(row[key] is None or abs(row[key]) > THRESHOLD for row in rows) for key in _DIFFERENCES
    )
    return f"Columns that differ by more than {THRESHOLD}: {before} before, {after} after, of {len(rows)}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    differences = [_number(row[key], "+.3f") for key in _DIFFERENCES]
    ratios = [_number(row[key], ".2f") for key in ("variance_ratio_before", "variance_ratio_after")]
    return (row["covariate"], *differences, *ratios)


def _number(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)


def _short(name: str) -> str:
    return name if len(name) <= 52 else name[:51] + "…"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        row[0].ljust(widths[0])
        + "".join(cell.rjust(width + 3) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
