"""Turns replies into HTML: the templates, and the pages of error codes as plain markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

_CODE = re.compile(r"CV-[A-Z]\d{3}")
_BOLD, _WORD = re.compile(r"\*\*([^*]+)\*\*"), re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def environment() -> Any:
    """Return the templates; every value in them is escaped, and a name that is missing is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("counterveil.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Values and words of the options of a choice.
    found.filters["pair"] = lambda name: (name, name)
    found.filters["keyed"] = lambda data: (data.key, data.account.dataset)
    return found


def error_page(code: str) -> str | None:
    """Return the page of an error code as HTML, None where there is none."""
    place = files("counterveil") / "error_pages" / f"{code}.md"
    if not _CODE.fullmatch(code) or not place.is_file():
        return None
    return "".join(_blocks(place.read_text(encoding="utf-8")))


def _blocks(text: str) -> Iterator[str]:
    """Yield headings, lists, code and paragraphs: what our own pages are made of."""
    for number, part in enumerate(re.split(r"^```.*$", text, flags=re.M)):
        if number % 2:
            yield f"<pre><code>{escape(part.strip())}</code></pre>"
            continue
        for block in filter(None, map(str.strip, part.split("\n\n"))):
            marks = len(block) - len(block.lstrip("#"))
            if marks:
                yield f"<h{marks}>{_inline(block[marks:].strip())}</h{marks}>"
            elif block.startswith(("- ", "1. ")):
                items = re.split(r"^(?:-|\d+\.) ", block, flags=re.M)[1:]
                yield "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
            else:
                yield f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    plain = _LINK.sub(r"\1", escape(text))
    return _WORD.sub(r"<code>\1</code>", _BOLD.sub(r"<strong>\1</strong>", plain))
