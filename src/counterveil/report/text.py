"""A summary that a statistician can paste."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import Any

from counterveil.privacy import Budget, Estimand
from counterveil.report.numbers import percent, probability, rounded

_WIDTH = 88
_HEADINGS = ("", "estimate", "std. error", "sampling", "noise")


def text_summary(facts: dict[str, Any]) -> str:
    """Return the result as plain text: a table, then the promise and its price in words."""
    rule = "-" * _WIDTH
    lines: list[str] = []
    if facts.get("warning"):
        lines += [f"*** {facts['warning']} ***"]
    lines += [
        f"Effect of {facts['treatment']} on {facts['outcome']}",
        f"{Estimand(facts['estimand']).sentence}; {facts['method']}",
        rule,
        *_table(facts),
        rule,
    ]
    spent = Budget.from_dict(facts["spent"])
    lines += _item("Interval", "covers sampling error and privacy noise together")
    lines += _item("Not covered", "; ".join(facts["not_covered"]))
    lines += _item("Promise", facts["guarantee"]["sentence"])
    lines += _item("Public", "; ".join(facts["guarantee"]["public"]))
    lines += _item("Spent", f"{spent} ({'; '.join(name for name, _ in facts['releases'])})")
    lines += _item("Proofs", ", ".join(facts["guarantee"]["pages"]))
    for remark in facts["guarantee"]["remarks"]:
        lines += _item("Remark", remark)
    return "\n".join(lines)


def _table(facts: dict[str, Any]) -> Iterable[str]:
    error, interval = facts["std_error"], facts["interval"]
    total = error["total"]
    low, high = rounded(interval["low"], total), rounded(interval["high"], total)
    heading = [*_HEADINGS, f"{percent(interval['level'])} interval", "p"]
    row = [
        facts["estimand"],
        rounded(facts["estimate"], total),
        *(rounded(error[part], error[part]) for part in ("total", "sampling", "noise")),
        f"[{low}, {high}]",
        probability(facts["p_value"]),
    ]
    widths = [max(len(a), len(b)) + 3 for a, b in zip(heading, row, strict=True)]
    for cells in (heading, row):
        yield "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))[2:]


def _item(name: str, text: str) -> list[str]:
    if not text:
        return []
    lead = f"{name}:".ljust(13)
    return [fill(text, width=_WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead))]
