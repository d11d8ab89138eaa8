"""Answers at queries as plain text: a table of the first of them, then the promise and its price in words."""

from __future__ import annotations

from typing import Any

from counterveil.report.numbers import percent, rounded
from counterveil.report.table import Cells, span
from counterveil.report.text import summary_items, text_table, wrapped

_SHOWN = 12


def answers_text(facts: dict[str, Any]) -> str:
    """Return the answers as text; only the first dozen queries are shown."""
    lines = [
        line for key in ("warning", "caution") if facts.get(key) for line in wrapped(f"*** {facts[key]} ***")
    ]
    lines += [
        f"Effect of {facts['treatment']} on {facts['outcome']} at {len(facts['queries'])} queries",
        *wrapped(facts["method"]),
        *text_table(_cells(facts)),
    ]
    left = len(facts["queries"]) - _SHOWN
    lines += [f"... and {left} more"] if left > 0 else []
    covers = (
        'each interval covers sampling error and privacy noise together; those "for all" hold for all queries'
    )
    return "\n".join([*lines, *summary_items(facts, covers)])


def _cells(facts: dict[str, Any]) -> Cells:
    level = percent(facts["level"])
    names = list(facts["queries"][0]) if facts["queries"] else []
    headings = [*names, "effect", "std. error", f"{level} interval", f"{level} for all"]
    rows = []
    for place, query in enumerate(facts["queries"][:_SHOWN]):
        error = facts["std_error"]["total"][place]
        shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in query.values()]
        ends = [
            span({end: facts[kind][end][place] for end in ("low", "high")}, error)
            for kind in ("interval", "simultaneous_interval")
        ]
        rows.append([*shown, rounded(facts["estimates"][place], error), rounded(error, error), *ends])
    return Cells(headings, rows)
