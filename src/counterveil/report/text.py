"""A summary that a statistician can paste."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import Any

from counterveil.privacy import Budget, Estimand
from counterveil.report.table import Cells, effect_cells, effects_of, mean_cells

_WIDTH = 88


def text_summary(facts: dict[str, Any]) -> str:
    """Return the result as plain text: a table, then the promise and its price in words."""
    rule = "-" * _WIDTH
    lines: list[str] = []
    if facts.get("warning"):
        lines += [f"*** {facts['warning']} ***"]
    if facts.get("caution"):
        lines += [fill(f"*** {facts['caution']} ***", width=_WIDTH)]
    lines += [
        f"Effect of {facts['treatment']} on {facts['outcome']}",
        f"{lead_sentence(facts)}; {facts['method']}",
        rule,
        *text_table(effect_cells(facts)),
        rule,
    ]
    means = mean_cells(facts)
    lines += [*text_table(means), rule] if means else []
    return "\n".join([*lines, *summary_items(facts, interval_sentence(facts))])


def lead_sentence(facts: dict[str, Any]) -> str:
    """Return what was estimated, in words: a result's own sentence, or that of its estimand."""
    return str(facts["sentence"]) if "sentence" in facts else Estimand(facts["estimand"]).sentence


def summary_items(facts: dict[str, Any], covers: str) -> list[str]:
    """Return the lines under a table: what intervals cover and what they do not, the promise, the price."""
    spent = Budget.from_dict(facts["spent"])
    lines = _item("Interval", covers)
    for name, note in facts.get("notes", []):
        lines += _item(name, note)
    lines += _item("Details", details_sentence(facts))
    lines += _item("Not covered", "; ".join(facts["not_covered"]))
    lines += _item("Promise", facts["guarantee"]["sentence"])
    lines += _item("Public", "; ".join(facts["guarantee"]["public"]))
    lines += _item("Spent", f"{spent} ({'; '.join(name for name, _ in facts['releases'])})")
    lines += _item("Proofs", ", ".join(facts["guarantee"]["pages"]))
    for remark in facts["guarantee"]["remarks"]:
        lines += _item("Remark", remark)
    return lines


def interval_sentence(facts: dict[str, Any]) -> str:
    """Return what the intervals cover, in words."""
    covers = "covers sampling error and privacy noise together"
    if facts.get("interval_of"):
        covers += f", of {facts['interval_of']}: NOT AN INTERVAL FOR THE EFFECT"
    if "simultaneous_interval" not in effects_of(facts)[0]:
        return covers
    return f'{covers}; those "for all" hold for all {len(facts["effects"])} effects at once'


def details_sentence(facts: dict[str, Any]) -> str:
    """Return the single figures that go with a result, in words."""
    figures = facts.get("details", {})
    return "; ".join(
        f"{name}: {f'{value:.4g}' if isinstance(value, float) else value}" for name, value in figures.items()
    )


def text_table(cells: Cells) -> Iterable[str]:
    """Yield the lines of a table whose columns are aligned."""
    widths = [max(map(len, column)) + 3 for column in zip(cells.headings, *cells.rows, strict=True)]
    for row in (cells.headings, *cells.rows):
        yield "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))[2:]


def _item(name: str, text: str) -> list[str]:
    if not text:
        return []
    lead = f"{name}:".ljust(13)
    return [fill(text, width=_WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead))]
