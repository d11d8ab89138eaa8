"""Docstrings and signatures as facts: the text of a docstring, what it says of each argument, and how a call looks."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from inspect import Parameter, Signature, getdoc, signature
from textwrap import dedent
from types import UnionType
from typing import Any, Union, get_args, get_origin

from counterveil.questions import choices

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):\s*$", re.M)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*): ", re.M)
# As numpydoc writes them: a title that is underlined, and entries "name : type" above indented text.
_UNDERLINED = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.M)
_NAMED = re.compile(r"^\*{0,2}(\w+(?:, \w+)*)(?: : .*)?\n", re.M)
_DESCRIBING = ("Parameters", "Other Parameters", "Attributes")
_LINE = 100


@dataclass(frozen=True, slots=True)
class Doc:
    """A docstring: its paragraphs, and what it says of arguments or attributes by name."""

    paragraphs: list[str]
    entries: dict[str, str] = field(default_factory=dict)


def doc_of(thing: Any) -> Doc:
    """Return what the docstring of an object says; a dataclass without one says nothing."""
    text = getdoc(thing) or ""
    if isinstance(thing, type) and text.startswith(f"{thing.__name__}("):
        text = ""  # made by dataclasses
    if _UNDERLINED.search(text):
        return _numpydoc(text)
    paragraphs: list[str] = []
    entries: dict[str, str] = {}
    parts = _SECTION.split(text)
    paragraphs += _paragraphs(parts[0])
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = body.strip("\n").split("\n")
        inside = [line for line in lines if not line or line.startswith(" ")]
        block = dedent("\n".join(inside)).strip()
        if title in ("Args", "Attributes"):
            entries |= _entries(block)
        else:
            paragraphs += [f"{title}: {' '.join(block.split())}"]
        # What follows a section without being indented is text again.
        paragraphs += _paragraphs("\n".join(line for line in lines if line and not line.startswith(" ")))
    return Doc(paragraphs, entries)


def sections(text: str) -> tuple[str, dict[str, str]]:
    """Return what stands before the first underlined title of a docstring, and the text under each title."""
    opening, *parts = _UNDERLINED.split(text)
    return opening, dict(zip(parts[::2], parts[1::2], strict=True))


def _numpydoc(text: str) -> Doc:
    """Return what a docstring with underlined sections says."""
    opening, parts = sections(text)
    paragraphs, entries = _paragraphs(opening), {}
    for title, body in parts.items():
        if title in _DESCRIBING:
            _, *named = _NAMED.split(body)
            for names, words in zip(named[::2], named[1::2], strict=True):
                entries |= dict.fromkeys(names.split(", "), _plain(words))
        elif title not in ("Examples", "See Also"):
            paragraphs.append(f"{title}: {' '.join(body.split())}")
    return Doc(paragraphs, entries)


def _paragraphs(text: str) -> list[str]:
    return [_plain(each) for each in text.split("\n\n") if each.strip()]


def _entries(block: str) -> dict[str, str]:
    found: dict[str, str] = {}
    parts = _ENTRY.split(block)
    for names, text in zip(parts[1::2], parts[2::2], strict=True):
        found |= dict.fromkeys(names.split(", "), _plain(text))
    return found


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`counterveil.", "`cv.")


def parameters(function: Any, *, bound: bool = False) -> list[Parameter]:
    """Return the parameters of a function or class; `bound` leaves out the first of a method."""
    try:
        found = list(signature(function).parameters.values())
    except ValueError:
        return []
    return found[1:] if bound else found


def call(name: str, function: Any, *, bound: bool = False) -> str:
    """Return how a call looks, folded to lines of moderate length: `name(a, *, b=1) -> Result`."""
    words: list[str] = []
    keyword_only = False
    for each in parameters(function, bound=bound):
        if each.kind is Parameter.VAR_POSITIONAL:
            words, keyword_only = [*words, f"*{each.name}"], True
            continue
        if each.kind is Parameter.KEYWORD_ONLY and not keyword_only:
            words, keyword_only = [*words, "*"], True
        star = "**" if each.kind is Parameter.VAR_KEYWORD else ""
        default = "" if each.default is Parameter.empty else f"={shown_default(each.default)}"
        words.append(f"{star}{each.name}{default}")
    end = ")" if isinstance(function, type) else f"){_returns(function)}"
    return _folded(f"{name}(", words, end)


def _folded(start: str, words: list[str], end: str) -> str:
    lines, line = [], start
    for number, word in enumerate(words):
        piece = word + (end if number == len(words) - 1 else ",")
        if len(line) + len(piece) + 1 > _LINE:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += piece if line.endswith(("(", "  ")) or not line.strip() else f" {piece}"
    return "\n".join([*lines, line if words else start + end])


def _returns(function: Any) -> str:
    given = signature(function).return_annotation
    return "" if given is Signature.empty else f" -> {type_name(given, joint=' | ')}"


# Texts that editors complete; what they may be is told in words.
_TEXTS = re.compile(
    rf"\b({'|'.join(name for name, kind in vars(choices).items() if get_origin(kind) is Union)})\b"
)


def type_name(annotation: Any, joint: str = " or ") -> str:
    """Return a type as it is written in the source."""
    if annotation is Parameter.empty:
        return ""
    if isinstance(annotation, UnionType):
        return joint.join(type_name(each) for each in get_args(annotation))
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\s*\|\s*", joint, _TEXTS.sub("str", text.strip("'\"")))


def shown_default(value: Any) -> str:
    """Return a default as a person would type it."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, tuple):
        inside = ", ".join(map(shown_default, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if value is None or isinstance(value, bool | int | float):
        return repr(value).replace("'", '"')
    return "..."


def attributes(kind: type) -> list[tuple[str, str, str]]:
    """Return name, type and default of the fields of a dataclass."""
    if not is_dataclass(kind):
        return []
    found = []
    for each in fields(kind):
        if not each.name.startswith("_"):
            default = "" if each.default is MISSING else shown_default(each.default)
            found.append((each.name, type_name(each.type), default))
    return found
