"""A view as Markdown, and as a page of HTML.

In: a `View` (titles, tables and sentences of released numbers). Out: text. All that comes from data or
callers, such as names of columns, is escaped, so that it cannot become markup.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib.resources import files

from counterveil.report.text import (
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


STYLES = ("report.css", "pictures.css")


@cache
def style(name: str) -> str:
    """Return one of the style sheets, which lie beside this file."""
    return (files("counterveil.report") / name).read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """Return a whole page: its title, its style and its body."""
    sheets = "".join(map(style, STYLES))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        # Even if a name slipped through, nothing could be loaded or run.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{sheets}</style></head><body><main>{body}</main></body></html>\n"
    )


def page(view: View) -> str:
    """Return a view as a page: warnings, title, tables, sections and named lines."""
    opened = "".join(section_html(one) for one in view.sections if not one.folded)
    folded = "".join(section_html(one) for one in view.sections if one.folded)
    return document(
        view.title,
        f"{warnings(view.first)}<h1>{escape(view.title)}</h1>"
        f'<p class="lead">{escape(view.lead)}</p>{"".join(map(table, view.tables))}'
        f"{opened}{f'<h2>Details</h2>{folded}' if folded else ''}{named_lines(view.items)}",
    )


def section_html(section: Section) -> str:
    """Return a section of a page, one that folds opens when its heading is clicked; empty where nothing is in it."""
    body, heading = "".join(map(_page_block, section.blocks)), f"<h2>{escape(section.heading)}</h2>"
    if not body:
        return ""
    if section.folded:
        return f"<details><summary>{heading}</summary>{body}</details>"
    return f"{heading if section.heading else ''}{body}"


def _page_block(block: Block) -> str:
    match block:
        case str():
            return f"<p>{escape(block)}</p>"
        case Cells():
            return table(block)
        case Sentences(texts):
            return f'<div class="answer">{"".join(map(_page_block, texts))}</div>'
        case Named(items):
            return named_lines(items)
        case Listed(texts, heading):
            lines = "".join(f"<li>{escape(text)}</li>" for text in texts)
            return f"{f'<h3>{escape(heading)}</h3>' if heading else ''}<ul>{lines}</ul>" if texts else ""
        case Code(text, heading):
            own = f'<pre tabindex="0" role="region" aria-label="{escape(heading)}"><code>{escape(text)}</code></pre>'
            return f"<h3>{escape(heading)}</h3>{own}"
        case Picture(html):
            return html


def warnings(first: list[str]) -> str:
    """Return what stands above everything else."""
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in first)


def named_lines(items: list[Item]) -> str:
    """Return named lines as a list of definitions; those without text are left out."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in items if text
    )
    return f"<dl>{rows}</dl>" if rows else ""


def table(cells: Cells) -> str:
    """Return cells as a table, which is scrolled where it is wider than the page."""
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in cells.headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in cells.rows
    )
    caption = cells.caption
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(caption or "table")}"><table>{said}'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# A piece for a notebook: colours are those of the notebook, light or dark; only the warning has its own.
_CELL = "padding:.25em .7em;text-align:right"
_WARNED = "background:#8a1c1c;color:#fff;padding:.4em .8em;font-weight:700;margin:0 0 .5em"


def fragment(view: View) -> str:
    """Return a view as a piece of HTML for a notebook: the same lines as its text, without any style sheet."""
    first = "".join(f'<p style="{_WARNED}">{escape(text)}</p>' for text in view.first)
    more = "".join(f"<p>{escape(text)}</p>" for text in view.more)
    return (
        f'<div>{first}<p style="margin:0"><strong>{escape(view.title)}</strong><br>{escape(view.lead)}</p>'
        f"{''.join(map(_plain, view.tables))}{more}"
        + "".join(
            f'<p style="margin:.15em 0"><strong>{escape(name)}:</strong> {escape(text)}</p>'
            for name, text in view.items
            if text
        )
        + "</div>"
    )


def _plain(cells: Cells) -> str:
    heads = "".join(f'<th style="{_CELL}">{escape(head)}</th>' for head in cells.headings)
    rows = ["".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) for row in cells.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{heads}</tr>{body}</table></div>'
