"""The frame of a page: style, headings, tables, and parts that fold; nothing in it is loaded from elsewhere."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from counterveil.report.document import Cells, Item, View

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


def page(view: View, body: str = "") -> str:
    """Return a view as a page: warnings, title, tables, then `body` or the named lines."""
    return document(
        view.title,
        f"{warnings(view.first)}<h1>{escape(view.title)}</h1>"
        f'<p class="lead">{escape(view.lead)}</p>{"".join(map(table, view.tables))}'
        f"{body or named_lines(view.items)}",
    )


def warnings(first: list[str]) -> str:
    """Return what stands above everything else."""
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in first)


def folded(heading: str, body: str) -> str:
    """Return a part of a page that opens when its heading is clicked; empty where there is nothing in it."""
    return f"<details><summary><h2>{escape(heading)}</h2></summary>{body}</details>" if body else ""


def paragraphs(texts: list[str]) -> str:
    """Return sentences, a paragraph each."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def named_lines(items: list[Item]) -> str:
    """Return named lines as a list of definitions; those without text are left out."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in items if text
    )
    return f"<dl>{rows}</dl>" if rows else ""


def code(text: str, label: str) -> str:
    """Return a text to copy."""
    return f'<pre tabindex="0" role="region" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'


def table(cells: Cells, caption: str = "") -> str:
    """Return cells as a table, which is scrolled where it is wider than the page."""
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in cells.headings)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in cells.rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="table" tabindex="0" role="region" aria-label="{escape(caption or "table")}"><table>{said}'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )
