"""The reference of the Python API: an index of public names, and a page for each, made of its docstring by Sphinx."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.xref import DEFAULT_LINKS
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
    using = {
        path.relative_to(root / "docs").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for pattern in USING
        for path in root.glob(pattern)
    }
    return {f"{FOLDER}/{name}.rst": _page(name, thing, using) for name, thing in with_pages().items()}


def _page(name: str, thing: Any, using: dict[str, str]) -> str:
    lines = [name, "=" * len(name), "", f".. {_directive(thing)}:: {_target(name, thing)}"]
    if inspect.isclass(thing) and (inside := members(thing)):
        lines.append(f"   :members: {', '.join(inside)}")
    word = re.compile(rf"\b{re.escape(name)}\b")
    uses = {page: len(word.findall(text)) for page, text in using.items()} if "." in name else {}
    best = sorted((page for page in uses if uses[page]), key=lambda page: (-uses[page], page))[:_MOST_LINKS]
    if best:
        lines += ["", "**In use:** " + ", ".join(f":doc:`/{page}`" for page in best)]
    return "\n".join(lines) + "\n"


def _directive(thing: Any) -> str:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction"


def _target(name: str, thing: Any) -> str:
    """Return what Sphinx imports: a public name as it is written, another class from its module."""
    return name if name.startswith("cv.") else f"{thing.__module__}.{thing.__qualname__}"


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


def signature(_app: Any, what: str, name: str, thing: Any, *_: Any) -> tuple[str, str] | None:
    """Return the arguments of a class; none of answers and what they consist of, which no reader makes."""
    if what != "class":
        return None
    if name.startswith("cv.results.") or not name.startswith("cv."):
        return "", ""
    # Where a class has `__new__` too, Sphinx would show that.
    arguments = inspect.signature(thing)
    bare = [each.replace(annotation=each.empty) for each in arguments.parameters.values()]
    return str(arguments.replace(parameters=bare, return_annotation=arguments.empty)), ""


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx import names as readers write them, and show them so."""
    sys.modules |= {"cv": cv}
    sys.modules |= {name: thing for name, thing in public_names().items() if isinstance(thing, ModuleType)}
    # Types of Python and numpy stay plain, as no page of theirs is at hand.
    DEFAULT_LINKS.clear()
    classes = {name: thing for name, thing in with_pages().items() if inspect.isclass(thing)}
    DEFAULT_LINKS.update({thing.__name__: _target(name, thing) for name, thing in classes.items()})
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
