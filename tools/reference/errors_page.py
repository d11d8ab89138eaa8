"""The page of errors, from the table of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from counterveil.errors import outline, refusals

HEAD = Path(__file__).with_name("errors.head")
KINDS = {
    "P": "Parameters",
    "A": "Audits",
    "S": "Studies",
    "D": "Data",
    "B": "Budget",
    "L": "Ledger",
    "C": "Claims",
    "E": "Extras",
    "F": "Federation",
    "W": "Console",
    "X": "Internal",
}


def errors_page() -> str:
    """Return the introduction and every code by its kind, with what was expected, how to fix it and why."""
    order = list(KINDS)
    rows = sorted(refusals().items(), key=lambda item: (order.index(item[0][3]), item[0]))
    parts = [HEAD.read_text(encoding="utf-8").rstrip("\n")]
    for letter, kind in groupby(rows, lambda item: item[0][3]):
        parts.append(f"## {KINDS[letter]}")
        for code, texts in groupby(kind, lambda item: item[0][:7]):
            parts += _code(code, [row for _, row in texts])
    return "\n\n".join(parts) + "\n"


def _code(code: str, rows: list[dict[str, str]]) -> Iterator[str]:
    yield f"### {code}"
    yield from dict.fromkeys(map(_said, rows))
    yield rows[0]["why"]


def _said(row: dict[str, str]) -> str:
    named = {"Expected": _plain(row.get("expected", "")), "To fix": _plain(row["fix"])}
    said = [f"{word}: {text.rstrip('.')}." for word, text in named.items() if text]
    problem = _plain(row["problem"])
    return " ".join([f"**{problem}**", *said] if problem else said)


def _plain(text: str) -> str:
    """Return a text with the names of its facts, in which Markdown finds no emphasis."""
    return outline(text).replace("*", "\\*")
