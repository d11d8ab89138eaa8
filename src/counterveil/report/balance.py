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

    def x(value: float) -> float:
        return 200 + 490 * value / reach

    def dot(row: dict[str, Any], key: str, y: int, colour: str) -> str:
        if row[key] is None:
            return ""
        return f'<circle cx="{x(abs(row[key])):.1f}" cy="{y}" r="5" fill="{colour}"/>'

    lines = []
    for place, row in enumerate(rows):
        y = 20 * place + 18
        lines.append(
            f'<text x="190" y="{y + 4}" font-size="12" text-anchor="end" fill="#1c2733">'
            f"{escape(_short(row['covariate']))}</text>"
            f'<line x1="200" x2="690" y1="{y}" y2="{y}" stroke="#e6ebf0"/>'
            + dot(row, "difference_before", y, _BEFORE)
            + dot(row, "difference_after", y, _AFTER)
        )
    foot = height - 24
    return (
        f'<svg viewBox="0 0 720 {height}" role="img" aria-label="love plot">'
        f'<line x1="{x(THRESHOLD):.1f}" x2="{x(THRESHOLD):.1f}" y1="6" y2="{foot}" stroke="#9aa7b4" '
        f'stroke-dasharray="4 4"/>{"".join(lines)}'
        f'<text x="200" y="{height - 6}" font-size="12" fill="#51606f">'
        f"absolute standardised difference, 0 to {reach:.2f}; grey before, blue after; dashed at {THRESHOLD}"
        "</text></svg>"
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
    return name if len(name) <= 28 else name[:27] + "…"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        row[0].ljust(widths[0])
        + "".join(cell.rjust(width + 3) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
