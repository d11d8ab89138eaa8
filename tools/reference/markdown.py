"""Markdown that the reference pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
MADE = "<!-- Made from the code by `make reference`; edit the help texts or tools/reference instead. -->"


def template(name: str, **parts: str) -> str:
    """Return a page: the hand-written text of a template with `{{ part }}` replaced."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    for key, part in parts.items():
        text = text.replace("{{ " + key + " }}", part.strip())
    if "{{" in text:
        raise ValueError(f"{name}: a part is missing: {text[text.index('{{') :][:40]}")
    return f"{MADE}\n\n{text}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [
        _row(headings),
        "|" + "---|" * len(headings),
        *(_row([cell.replace("|", "\\|") for cell in row]) for row in rows),
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  ", " ")
