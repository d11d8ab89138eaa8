"""Documents and values that somebody else wrote, read within bounds of size, depth and digits.

The readers of the standard library take time or stack without limit: a TOML key of 100,000 dotted parts takes minutes,
a nested list ends in a RecursionError, and a number of a million digits is expanded. Here the raw text is measured
first, in one pass, and what is too long or too deep is refused before anything is built from it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from itertools import accumulate
from pathlib import Path
from typing import Any

LONGEST_TOML = 1_000_000
LONGEST_JSON = 20_000_000
LONGEST_LITERAL = 100_000
_MOST_KEYS = 50_000
_DEEPEST_JSON = 64
_DEEPEST_TOML = 16
_DEEPEST_LITERAL = 8
_MOST_DOTS = 16
_LONGEST_PATH = 4096
_LONGEST_NAME = 255

# Texts and comments, within which nothing counts. Unfinished texts run to the end of the line, as in TOML.
_TOML_QUOTED = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3,5}|'
    r"'{3}[^']*(?:'(?!'')[^']*)*'{3,5}|"
    r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'
    r"'[^'\n]*'|#[^\n]*",
    re.S,
)
_JSON_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.S)
_KEY_RUN = re.compile(r"""[^\w\-. \t"]+""")
_BRACKET = re.compile(r"[\[\]{}()]")
_STEP = {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}

_NUMBER = r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,3})?"
# A literal is made of these and of nothing else: no operators, no escapes, no names but three.
_LITERAL = re.compile(
    rf"(?:'[^'\\\n]*'|\"[^\"\\\n]*\"|{_NUMBER}(?! *[\w.+-])|(?:True|False|None)(?!\w)|[\[\](){{}},: ])+"
)


class UnreadableError(ValueError):
    """A text that is no document, or one beyond the bounds; the message says why and quotes nothing of it."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text, or raise `UnreadableError`."""
    _check_length(text, LONGEST_TOML)
    bare = _TOML_QUOTED.sub('""', text)
    if bare.count("=") > _MOST_KEYS:
        raise UnreadableError(f"more than {_MOST_KEYS} keys")
    if any(run.count(".") > _MOST_DOTS for run in _KEY_RUN.split(bare)):
        raise UnreadableError(f"a key of more than {_MOST_DOTS + 1} dotted parts")
    _check_depth(bare, _DEEPEST_TOML)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(f"not TOML: {error}") from None
    except (ValueError, RecursionError, OverflowError):
        # A date that is none, or a number of thousands of digits.
        raise UnreadableError("not TOML: a value that no reader can hold") from None


def parse_json(text: str, longest: int = LONGEST_JSON) -> Any:
    """Return what a JSON text holds, or raise `UnreadableError`."""
    _check_length(text, longest)
    _check_depth(_JSON_QUOTED.sub('""', text), _DEEPEST_JSON)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("not JSON") from None


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tables of a TOML file, or raise `UnreadableError`."""
    return parse_toml(read_text(path, LONGEST_TOML))


def read_json(path: str | os.PathLike[str], longest: int = LONGEST_JSON) -> Any:
    """Return what a JSON file holds, or raise `UnreadableError`."""
    return parse_json(read_text(path, longest), longest)


def read_text(path: str | os.PathLike[str], longest: int) -> str:
    """Return the text of a file in UTF-8, or raise `UnreadableError`; one that is too long is not read to its end."""
    place = checked_path(path)
    try:
        # A pipe or a device may never end, and may wait for ever to be opened.
        if place.exists() and not place.is_file():
            raise UnreadableError("not a file")
        with place.open("rb") as file:
            data = file.read(4 * longest + 1)
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise UnreadableError("no such file") from None
    except OSError as error:
        raise UnreadableError(f"a file that cannot be read ({type(error).__name__})") from None
    except UnicodeDecodeError:
        raise UnreadableError("not in UTF-8") from None
    _check_length(text, longest)
    return text


def checked_path(place: object) -> Path:
    """Return a path that the operating system can be asked about, or raise `UnreadableError`."""
    if not isinstance(place, str | os.PathLike):
        raise UnreadableError(f"a path of type {type(place).__name__}")
    text = os.fspath(place)
    if not isinstance(text, str):
        raise UnreadableError("a path of bytes")
    if not text or "\0" in text:
        raise UnreadableError("an empty path, or one with a NUL character")
    try:
        lengths = [len(part) for part in os.fsencode(text).split(b"/")]
    except UnicodeEncodeError:
        raise UnreadableError("a path with characters that no file name can have") from None
    if sum(lengths) + len(lengths) > _LONGEST_PATH or max(lengths) > _LONGEST_NAME:
        raise UnreadableError(
            f"a path longer than {_LONGEST_PATH} bytes, or a name in it longer than {_LONGEST_NAME}"
        )
    return Path(text)


def parse_literal(text: str) -> Any:
    """Return what a literal means: numbers, texts, True, False, None, and lists, tuples or tables of them.

    Everything else raises `UnreadableError`.
    """
    _check_length(text, LONGEST_LITERAL)
    if not _LITERAL.fullmatch(text):
        raise UnreadableError("not a literal")
    _check_depth(_TOML_QUOTED.sub('""', text), _DEEPEST_LITERAL)
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise UnreadableError("not a literal") from None


def _check_length(text: str, longest: int) -> None:
    if len(text) > longest:
        raise UnreadableError(f"longer than {longest} characters")


def _check_depth(bare: str, deepest: int) -> None:
    """Refuse brackets within brackets within brackets; `bare` is the text without what stands in quotes."""
    depths = accumulate(_STEP[sign] for sign in _BRACKET.findall(bare))
    if any(depth > deepest for depth in depths):
        raise UnreadableError(f"more than {deepest} levels of brackets")
