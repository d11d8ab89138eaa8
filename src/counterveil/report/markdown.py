"""A view as Markdown, without its pictures; other programs make DOCX or PDF of it."""

from __future__ import annotations

import re

from counterveil.report.document import (
    Block,
    Cells,
    Code,
    Item,
    Listed,
    Named,
    Picture,
    Section,
    Sentences,
    View,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$&!])")


def escaped(text: str) -> str:
    """Return a text on one line in which nothing is taken for Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def markdown(view: View) -> str:
    """Return a view as Markdown: warnings, title, tables, sections and named lines."""
    parts = [
        *(f"> **{escaped(text)}**" for text in view.first),
        f"# {escaped(view.title)}",
        escaped(view.lead),
        *map(_table, view.tables),
        *map(escaped, view.more),
        *(part for section in view.sections for part in _section(section)),
        _items(view.items),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(section: Section) -> list[str]:
    body = [part for block in section.blocks for part in _block(block) if part]
    return [f"## {section.heading}", *body] if body else []


def _block(block: Block) -> list[str]:
    match block:
        case str():
            return [escaped(block)]
        case Cells():
            return [_table(block)]
        case Sentences(texts):
            return [escaped(text) for text in texts]
        case Named(items):
            return [_items(items)]
        case Listed(texts, heading):
            lines = "\n".join(f"- {escaped(text)}" for text in texts)
            return [f"### {heading}" if heading and texts else "", lines]
        case Code(text, heading, language):
            return [f"### {heading}", _code(text, language)]
        case Picture():
            return []


def _code(text: str, language: str) -> str:
    # Longer than every run of backticks inside, so that none of them ends it.
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _items(items: list[Item]) -> str:
    return "\n".join(f"- **{escaped(name)}**: {escaped(text)}" for name, text in items if text)


def _table(cells: Cells) -> str:
    def line(row: list[str]) -> str:
        return f"| {' | '.join(map(escaped, row))} |"

    rule = f"|:---|{'---:|' * (len(cells.headings) - 1)}"
    return "\n".join([line(cells.headings), rule, *map(line, cells.rows)])
