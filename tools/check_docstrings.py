"""Checks the docstrings of public names: `python -m tools.check_docstrings [NAME ...]`.

numpydoc decides what a docstring must hold; what it cannot know of this package has codes of our own:

AT01  a public field or constructor argument of a class that neither Attributes nor Parameters describes
AT02  an attribute that is described and does not exist
TX01  a section "Args:"
TX02  "as for `cv.ate`" in place of the words
TX03  "an unknown name lists ..." in place of the names
TX04  a link in Markdown, which `help()` and the site show as it is written
TX05  a name `cv.x` that does not exist
TX06  text that is no valid reStructuredText
TX07  a line of more than 110 characters
TX08  sections that numpydoc cannot read
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate
from tools.public_names import documented

import counterveil as cv

ROOT = Path(__file__).resolve().parents[1]
CHECKED = {
    "GL06", "GL07", "GL08", "SS01", "SS02", "SS03", "SS04", "SS05", "SS06", "PR01", "PR02", "PR03", "PR04", "PR07",
    "PR10", "RT01", "RT03", "YD01",
}  # fmt: skip
# For classes AT01 compares what is described: fields may stand in Attributes.
OF_FUNCTIONS = {"PR01", "PR02", "PR03"}
LINE = 110
# Without it numpydoc adds the members of a class to what its docstring describes.
_OWN_WORDS = {"show_class_members": False}

_NOT_SAID = (
    ("TX01", r"^\s*(Args|Attributes|Returns|Raises|Yields):\s*$", "a section of another style: {}"),
    ("TX02", r"[Aa]s for\s+`+cv\.|see\s+`+c\w+\.[\w.]+`+ for the arguments", "{}: repeat the words"),
    ("TX03", r"unknown\s+name\s+lists", "{}: list them here"),
    ("TX04", r"\[[^\]]+\]\([^)\s]+\)", "a link in Markdown: {}"),
)
_NAME = re.compile(r"`cv\.([A-Za-z_][\w.]*\w)(?=[`(])")
# Where numpydoc lists what may have a star before its name, which reStructuredText reads as emphasis.
_STARS = re.compile(r"^(\s*)(\*{1,2})(?=\w+(, \*\*\w+)?( :|$))", re.MULTILINE)


class _Documented(Validator):  # type: ignore[misc]
    """What numpydoc checks; functions that a call makes have no line that defines them."""

    source_file_name = None
    source_file_def_line = None

    def __init__(self, obj_name: Any) -> None:
        super().__init__(obj_name)


def problems(thing: Any) -> list[tuple[str, str]]:
    """Return what a docstring lacks: the codes, with words."""
    text = _text(thing)
    if not text:
        return [("GL08", "there is no docstring")]
    checked = CHECKED - OF_FUNCTIONS if inspect.isclass(thing) else CHECKED
    try:
        errors = validate(get_doc_object(thing, config=_OWN_WORDS), _Documented)["errors"]
    except ValueError as problem:
        return [("TX08", str(problem))]
    found = [(code, words) for code, words in errors if code in checked]
    return found + list(_of_class(thing) if inspect.isclass(thing) else ()) + list(_of_text(text))


def _text(thing: Any) -> str:
    """Return a docstring, or nothing for the one that `dataclass` makes of a signature."""
    text = inspect.getdoc(thing) if not inspect.isclass(thing) else inspect.cleandoc(thing.__doc__ or "")
    made = inspect.isclass(thing) and (text or "").startswith(f"{thing.__name__}(")
    return "" if made else text or ""


def _of_class(kind: type) -> Iterator[tuple[str, str]]:
    sections = get_doc_object(kind, config=_OWN_WORDS)
    described = {
        name.lstrip("*")
        for section in ("Parameters", "Other Parameters", "Attributes")
        for entry in sections[section]
        for name in entry.name.split(", ")
    }
    wanted = set(_constructor(kind))
    existing = set(dir(kind)) | wanted
    if is_dataclass(kind):
        public = [each.name for each in fields(kind) if not each.name.startswith("_")]
        wanted |= set(public)
        existing |= set(public)
    for base in kind.__mro__:
        existing |= set(vars(base).get("__annotations__", ()))
    if missing := sorted(wanted - described):
        yield "AT01", f"not described: {', '.join(missing)}"
    # Classes with an `__init__` of their own may set what nothing but its body names.
    if (is_dataclass(kind) or issubclass(kind, enum.Enum)) and (extra := sorted(described - existing)):
        yield "AT02", f"described and not there: {', '.join(extra)}"


def _constructor(kind: type) -> list[str]:
    """Return the arguments that a class is made with."""
    made_by_python = kind.__init__ in {
        base.__init__ for base in kind.__mro__ if base.__module__ == "builtins"
    }
    if made_by_python or issubclass(kind, enum.Enum) or getattr(kind, "_is_protocol", False):
        return []
    try:
        return [name for name in inspect.signature(kind).parameters if not name.startswith("_")]
    except ValueError:
        return []


def _of_text(text: str) -> Iterator[tuple[str, str]]:
    for code, pattern, words in _NOT_SAID:
        if match := re.search(pattern, text, re.MULTILINE):
            yield code, words.format(" ".join(match.group().split()))
    for name in sorted(set(_NAME.findall(text))):
        if not _exists(name):
            yield "TX05", f"there is no cv.{name}"
    for number, words in _of_markup(text):
        yield "TX06", f"line {number}: {words}"
    for line in text.splitlines():
        if len(line) > LINE:
            yield "TX07", f"{len(line)} characters: {line[:50]}..."


@cache
def _settings() -> Any:
    """Return settings of docutils under which it reports and neither prints nor stops."""
    settings = get_default_settings(Parser)
    settings.report_level, settings.halt_level = 5, 6
    return settings


def _of_markup(text: str) -> list[tuple[int, str]]:
    """Return what docutils says of a text, with line numbers."""
    said: list[tuple[int, str]] = []

    def observe(message: Any) -> None:
        if message["level"] >= 2:
            said.append((message.get("line", 0), message.astext().partition(") ")[2].split("\n")[0]))

    document = new_document("docstring", _settings())
    document.reporter.attach_observer(observe)
    Parser().parse(_STARS.sub(r"\1\\\2", text), document)
    return said


def _exists(name: str) -> bool:
    """Whether a name of the package exists; attributes of instances cannot be told and count as there."""
    try:
        reduce(getattr, name.split("."), cv)
    except AttributeError:
        owner, _, attribute = name.rpartition(".")
        if not owner or not _exists(owner):
            return False
        kind = reduce(getattr, owner.split("."), cv)
        return inspect.isclass(kind) and attribute in {
            each for base in kind.__mro__ for each in vars(base).get("__annotations__", ())
        }
    return True


def place(thing: Any) -> str:
    """Return the file and the line of a name."""
    code = inspect.unwrap(getattr(thing, "fget", None) or getattr(thing, "func", None) or thing)
    try:
        file = Path(inspect.getsourcefile(code) or "")
    except TypeError:
        return "?"
    if inspect.isclass(code):
        line = inspect.getsourcelines(code)[1]
    else:
        line = code.__code__.co_firstlineno if inspect.isfunction(code) else 1
    return f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}:{line}"


def report(every: dict[str, Any]) -> list[str]:
    """Return one line for each problem."""
    return [
        f"{place(thing)}: {name}: {code} {words}"
        for name, thing in every.items()
        for code, words in problems(thing)
    ]


def main(names: list[str]) -> int:
    """Print the problems of all names, or of those that begin with a given one, and return 1 if there are any."""
    every = documented()
    if names:
        every = {name: thing for name, thing in every.items() if name.startswith(tuple(names))}
    lines = report(every)
    print("\n".join(lines) if lines else f"docstrings: {len(every)} in order")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
