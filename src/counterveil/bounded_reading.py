"""Documents and values from other parties: bounded before they are parsed, typed before they are used.

The readers of the standard library take time or stack without limit: a TOML key of 100,000 dotted parts takes minutes,
a nested list ends in a RecursionError, and a number of a million digits is expanded. Here the raw text is measured
first, in one pass, and what is too long or too deep is refused before anything is built from it. Refusals are in our
own words and quote nothing of the document.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import isfinite
from pathlib import Path
from typing import Any

LONGEST_TOML = 1_000_000
LONGEST_JSON = 20_000_000
LONGEST_LITERAL = 100_000
# A reply of another site has some hundred kilobytes with balance tables.
LONGEST_MESSAGE = 10_000_000
_MOST_KEYS = 50_000
_DEEPEST_JSON = 64
_DEEPEST_TOML = 16
_DEEPEST_LITERAL = 8
_MOST_DOTS = 16
_LONGEST_PATH = 4096
_LONGEST_NAME = 255
# Within a message: texts, keys, nesting, digits (a 64-bit integer has 20, the text of a float 25).
_LONGEST_TEXT, _LONGEST_KEY, _DEEPEST_MESSAGE = 20_000, 500, 16
_LONGEST_INTEGER, _LONGEST_FLOAT = 25, 40
# Largest number of a message that is used: its square is still a float.
LARGEST = 1e100
# What a terminal obeys or reorders (C0, DEL, C1, bidirectional overrides), and halves of characters.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_RATIONAL = re.compile(r"[0-9]{1,400}(?:/[0-9]{1,400})?")
_DECIMAL = re.compile(r"(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?")

# A number as people write it, in ASCII digits. Python's own readers take underscores and the digits of every script.
_WRITTEN = re.compile(
    r"[+-]?(?:[0-9]{1,1000}(?:/[0-9]{1,1000}|\.[0-9]{0,1000})?|\.[0-9]{1,1000})(?:[eE][+-]?[0-9]{1,3})?"
)
_BLANKS = "\t\n\v\f\r "

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

_NUMBER = r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?"
# A literal is made of these and of nothing else: no operators, no escapes, no names but three.
_LITERAL = re.compile(
    rf"(?:'[^'\\\n]*'|\"[^\"\\\n]*\"|{_NUMBER}(?! *[\w.+-])|(?:True|False|None)(?!\w)|[\[\](){{}},: ])+"
)


class UnreadableError(ValueError):
    """A text that cannot be parsed or exceeds the limits; the message says why and quotes nothing of it."""


def parse_toml(text: str, *, exact: bool = False) -> dict[str, Any]:
    """Return the tables of a TOML text, or raise `UnreadableError`.

    With `exact`, numbers with a point stay texts, so that 0.1 is one tenth; underscores between digits are TOML's own.
    """
    _check_length(text, LONGEST_TOML)
    bare = _TOML_QUOTED.sub('""', text)
    if bare.count("=") > _MOST_KEYS:
        raise UnreadableError(f"more than {_MOST_KEYS} keys")
    if any(run.count(".") > _MOST_DOTS for run in _KEY_RUN.split(bare)):
        raise UnreadableError(f"a key of more than {_MOST_DOTS + 1} dotted parts")
    _check_depth(bare, _DEEPEST_TOML)
    try:
        return tomllib.loads(text, parse_float=_as_written if exact else float)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableError(f"not TOML: {error}") from None
    except (ValueError, RecursionError, OverflowError):
        # A date that is none, or a number of thousands of digits.
        raise UnreadableError("not TOML: a value out of range") from None


def parse_json(text: str, longest: int = LONGEST_JSON) -> Any:
    """Return the content of a JSON text, or raise `UnreadableError`."""
    _check_length(text, longest)
    _check_depth(_JSON_QUOTED.sub('""', text), _DEEPEST_JSON)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableError("not JSON") from None


def parse_message(text: str | bytes, *, longest: int = LONGEST_MESSAGE, infinite: bool = False) -> Any:
    """Return the content of another party's JSON text, or raise `UnreadableError`.

    NaN, repeated keys, control characters, numbers with absurdly many digits and deep nesting are refused.
    With `infinite`, infinities are let through: a standard error can be one.
    """
    _check_length(text, longest)

    def constant(word: str) -> float:
        if infinite and word != "NaN":
            return float(word)
        raise UnreadableError("a number that is not finite")

    try:
        found = json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=constant,
            object_pairs_hook=_object,
        )
    except UnreadableError:
        raise
    except (TypeError, ValueError, RecursionError, MemoryError):
        raise UnreadableError("a text that is not JSON") from None
    check_values(found)
    return found


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tables of a TOML file, or raise `UnreadableError`."""
    return parse_toml(read_text(path, LONGEST_TOML))


def read_json(path: str | os.PathLike[str], longest: int = LONGEST_JSON) -> Any:
    """Return the content of a JSON file, or raise `UnreadableError`."""
    return parse_json(read_text(path, longest), longest)


def read_text(path: str | os.PathLike[str], longest: int) -> str:
    """Return the text of a file in UTF-8, or raise `UnreadableError`; one that is too long is not read to its end."""
    place = checked_path(path)
    try:
        # A pipe or a device may never end, and opening it may block forever.
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


def check_values(found: object) -> None:
    """Raise `UnreadableError` for nesting, texts or keys beyond the limits."""
    level: list[object] = [found]
    for _ in range(_DEEPEST_MESSAGE):
        below: list[object] = []
        for value in level:
            if isinstance(value, str):
                _check_text(value, _LONGEST_TEXT)
            elif isinstance(value, Mapping):
                for key in value:
                    _check_text(key, _LONGEST_KEY)
                below.extend(value.values())
            elif isinstance(value, list | tuple):
                below.extend(value)
        if not below:
            return
        level = below
    raise UnreadableError("a document that is nested too deeply")


def written_number(text: str) -> Fraction:
    """Return the number that a person wrote, "0.5", "1/3" or "1e-6", exactly; other texts raise `UnreadableError`."""
    plain = text.strip(_BLANKS)
    if not _WRITTEN.fullmatch(plain):
        raise UnreadableError("text that is not a plain number")
    try:
        return Fraction(plain)
    except (ValueError, ZeroDivisionError):
        raise UnreadableError("text that is not a plain number") from None


def written_float(text: str) -> float:
    """Return the double nearest to a number that a person wrote; other texts raise `UnreadableError`."""
    try:
        return float(written_number(text))
    except OverflowError:
        raise UnreadableError("a number that is too large") from None


def rational(text: object, low: float, high: float) -> Fraction:
    """Return the number in a text such as "1/3", "0.5" or "1e-6" if it lies from `low` to `high`."""
    if not isinstance(text, str) or not (_RATIONAL.fullmatch(text) or _DECIMAL.fullmatch(text)):
        raise UnreadableError("text that is not a plain number")
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UnreadableError("text that is not a plain number") from None
    if low <= value <= high:
        return value
    raise UnreadableError("a number out of range")


@dataclass(frozen=True, slots=True)
class Fields:
    """A table of a document, read field by field; `what` names it in refusals."""

    what: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, what: str, value: object, needed: Collection[str], optional: Collection[str] = ()) -> Fields:
        """Return the table if it has all that is needed and nothing that is unknown."""
        if not isinstance(value, Mapping):
            raise UnreadableError(f"{what}: not a table")
        if any(name not in value for name in needed):
            raise UnreadableError(f"{what}: a field is missing")
        if any(name not in needed and name not in optional for name in value):
            raise UnreadableError(f"{what}: an unknown field")
        return cls(what, value)

    def text(self, name: str, longest: int = 200, pattern: re.Pattern[str] | None = None) -> str:
        """Return a text of bounded length that matches the pattern."""
        value = self.values[name]
        if isinstance(value, str) and len(value) <= longest and (pattern is None or pattern.fullmatch(value)):
            return value
        raise self.wrong(name)

    def choice(self, name: str, options: Collection[str]) -> str:
        """Return one of a few texts."""
        value = self.values[name]
        if isinstance(value, str) and value in options:
            return value
        raise self.wrong(name)

    def number(
        self, name: str, low: float = -LARGEST, high: float = LARGEST, infinite: bool = False
    ) -> float:
        """Return a number in its range; booleans are refused."""
        value = self.values[name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            if isfinite(value) and low <= value <= high:
                return float(value)
            if infinite and value == float("inf"):
                return float(value)
        raise self.wrong(name)

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number in its range."""
        value = self.values[name]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self.wrong(name)

    def flag(self, name: str) -> bool:
        """Return True or False."""
        value = self.values[name]
        if isinstance(value, bool):
            return value
        raise self.wrong(name)

    def rational(self, name: str, low: float, high: float) -> Fraction:
        """Return the number in a text."""
        try:
            return rational(self.values[name], low, high)
        except UnreadableError:
            raise self.wrong(name) from None

    def table(self, name: str) -> dict[str, Any]:
        """Return a table whose fields are read elsewhere."""
        value = self.values[name]
        if isinstance(value, dict):
            return value
        raise self.wrong(name)

    def texts(self, name: str, most: int = 200, longest: int = _LONGEST_TEXT) -> list[str]:
        """Return a list of texts."""
        value = self.values[name]
        listed = isinstance(value, list) and len(value) <= most
        if listed and all(isinstance(each, str) and len(each) <= longest for each in value):
            return list(value)
        raise self.wrong(name)

    def wrong(self, name: str) -> UnreadableError:
        """Return the refusal of one field."""
        return UnreadableError(f"{self.what}: {name} is invalid")


def _as_written(text: str) -> str:
    return text.replace("_", "")


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise UnreadableError("a number with too many digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > _LONGEST_FLOAT:
        raise UnreadableError("a number with too many digits")
    value = float(text)
    if not isfinite(value):
        raise UnreadableError("a number that is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnreadableError("a duplicate key")
    return found


def _check_text(text: object, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest:
        raise UnreadableError("a text that is too long")
    if _CONTROL.search(text):
        raise UnreadableError("a text with control characters")


def _check_length(text: str | bytes, longest: int) -> None:
    if len(text) > longest:
        raise UnreadableError(f"longer than {longest} characters")


def _check_depth(bare: str, deepest: int) -> None:
    """Refuse brackets within brackets within brackets; `bare` is the text without what stands in quotes."""
    depths = accumulate(_STEP[sign] for sign in _BRACKET.findall(bare))
    if any(depth > deepest for depth in depths):
        raise UnreadableError(f"more than {deepest} levels of brackets")
