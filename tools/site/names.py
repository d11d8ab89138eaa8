"""The reference of the Python API: an index of public names, and a page for each, made of its docstring by Sphinx."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.public_names import members, public_names, returned_classes

import counterveil as cv

# Lists the names by what a reader wants: a paragraph of nothing but names in code, separated by commas.
INDEX = "docs/reference/api.md"
FOLDER = "docs/reference/api"
# Pages that show how a name is used, and how many of them its page links to.
USING = ("docs/how-to/*.md", "docs/tutorials/*.md")
_MOST_LINKS = 5

_LISTED = re.compile(r"^`[\w.]+`(?:,\s+`[\w.]+`)*$", re.MULTILINE)


def with_pages() -> dict[str, Any]:
    """Return everything that has a page, by the name on it; classes that have no public name bear their own."""
    public = {name: thing for name, thing in public_names().items() if not isinstance(thing, ModuleType)}
    return public | {kind.__qualname__: kind for kind in returned_classes().values()}


def pages(root: Path) -> dict[str, str]:
    """Return a page for each name: its path in the repository, were it there, and its text."""
    using = {path: path.read_text(encoding="utf-8") for pattern in USING for path in root.glob(pattern)}
    return {f"{FOLDER}/{name}.md": _page(name, thing, using, root) for name, thing in with_pages().items()}


def _page(name: str, thing: Any, using: dict[Path, str], root: Path) -> str:
    lines = [f"# `{name}`", "", "```{eval-rst}", f".. {_directive(thing)}:: {_target(name, thing)}"]
    if inspect.isclass(thing) and (inside := members(thing)):
        lines.append(f"   :members: {', '.join(inside)}")
    lines += ["```", ""]
    word = re.compile(rf"\b{re.escape(name)}\b")
    uses = {path: len(word.findall(text)) for path, text in using.items()} if "." in name else {}
    best = sorted((path for path in uses if uses[path]), key=lambda path: (-uses[path], path))[:_MOST_LINKS]
    if best:
        links = (
            f"[{_title(using[path])}](../../{path.relative_to(root / 'docs').as_posix()})" for path in best
        )
        lines += ["**In use:** " + ", ".join(links), ""]
    return "\n".join(lines)


def _directive(thing: Any) -> str:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction"


def _target(name: str, thing: Any) -> str:
    """Return what Sphinx imports: a public name as it is written, another class from its module."""
    return name if name.startswith("cv.") else f"{thing.__module__}.{thing.__qualname__}"


def _title(text: str) -> str:
    return next(line.removeprefix("# ").strip() for line in text.splitlines() if line.startswith("# "))


def listed(text: str) -> list[str]:
    """Return the names that the index lists, in its order."""
    return [name for match in _LISTED.finditer(text) for name in re.findall(r"`([\w.]+)`", match.group())]


def index(text: str) -> str:
    """Return the index as the site shows it: each list of names as a table with their summaries."""
    things = with_pages()
    return _LISTED.sub(lambda match: _table(listed(match.group()), things), text)


def _table(names: Iterable[str], things: dict[str, Any]) -> str:
    rows = [name if name.startswith("cv.") else f"~{_target(name, things[name])}" for name in names]
    summary = "\n".join(
        ["```{eval-rst}", ".. autosummary::", "   :nosignatures:", "", *(f"   {row}" for row in rows)]
    )
    contents = "\n".join(["```{toctree}", ":hidden:", "", *(f"api/{name}" for name in names)])
    return f"{summary}\n```\n\n{contents}\n```"


def without_arguments(_app: Any, what: str, name: str, *_: Any) -> tuple[str, str] | None:
    """Return a signature without arguments for classes that no reader makes: answers, and what they consist of."""
    answer = name.startswith("cv.results.") or not name.startswith("cv.")
    return ("", "") if what == "class" and answer else None


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx import names as readers write them, and show them so."""
    sys.modules |= {"cv": cv}
    sys.modules |= {name: thing for name, thing in public_names().items() if isinstance(thing, ModuleType)}
    app.connect("autodoc-process-signature", without_arguments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
