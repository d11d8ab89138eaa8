"""Documents of other parties: bounded before they are parsed, typed before they are used.

Numbers, nesting, lengths and the whole are limited first, so that no text can hang a reader. What is refused is
told in our own words: nothing of the document is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

# A reply has some hundred kilobytes with balance tables.
LONGEST_DOCUMENT = 10_000_000
_LONGEST_TEXT = 20_000
_LONGEST_KEY = 500
_DEEPEST = 16
# A 64-bit integer has 20 digits, the text of a float 25.
_LONGEST_INTEGER, _LONGEST_FLOAT = 25, 40
# Largest number that is used: its square is still a float.
LARGEST = 1e100
# What a terminal obeys or reorders (C0, DEL, C1, bidirectional overrides), and halves of characters.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_RATIONAL = re.compile(r"[0-9]{1,400}(?:/[0-9]{1,400})?")
_DECIMAL = re.compile(r"(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?")


class UntrustedError(ValueError):
    """A document that is not what it should be; its text is ours and quotes nothing."""


def read_json(text: str | bytes, *, longest: int = LONGEST_DOCUMENT, infinite: bool = False) -> Any:
    """Return what a JSON text of another party holds, or raise `UntrustedError`.

    NaN, repeated keys, control characters, numbers with absurdly many digits and deep nesting are refused.
    With `infinite`, infinities are let through: a standard error can be one.
    """
    if len(text) > longest:
        raise UntrustedError("a text that is far too long")

    def constant(word: str) -> float:
        if infinite and word != "NaN":
            return float(word)
        raise UntrustedError("a number that is not finite")

    try:
        found = json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=constant,
            object_pairs_hook=_object,
        )
    except UntrustedError:
        raise
    except (TypeError, ValueError, RecursionError, MemoryError):
        raise UntrustedError("a text that is not JSON") from None
    check_values(found)
    return found


def check_values(found: object) -> None:
    """Raise `UntrustedError` for nesting, texts or keys beyond the limits; None is returned."""
    level: list[object] = [found]
    for _ in range(_DEEPEST):
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
    raise UntrustedError("a document that is nested too deeply")


def rational(text: object, low: float, high: float) -> Fraction:
    """Return the number in a text such as "1/3", "0.5" or "1e-6" if it lies from `low` to `high`."""
    if not isinstance(text, str) or not (_RATIONAL.fullmatch(text) or _DECIMAL.fullmatch(text)):
        raise UntrustedError("a text that is no plain number")
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UntrustedError("a text that is no plain number") from None
    if low <= value <= high:
        return value
    raise UntrustedError("a number out of its range")


@dataclass(frozen=True, slots=True)
class Fields:
    """A table of a document, read field by field; `what` names it in refusals."""

    what: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, what: str, value: object, needed: Collection[str], optional: Collection[str] = ()) -> Fields:
        """Return the table if it has all that is needed and nothing that is unknown."""
        if not isinstance(value, Mapping):
            raise UntrustedError(f"{what}: no table")
        if any(name not in value for name in needed):
            raise UntrustedError(f"{what}: a field is missing")
        if any(name not in needed and name not in optional for name in value):
            raise UntrustedError(f"{what}: a field that does not exist")
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
        """Return a number in its range; True and False are none."""
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
        except UntrustedError:
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

    def wrong(self, name: str) -> UntrustedError:
        """Return the refusal of one field."""
        return UntrustedError(f"{self.what}: {name} is not what it should be")


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise UntrustedError("a number with too many digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > _LONGEST_FLOAT:
        raise UntrustedError("a number with too many digits")
    value = float(text)
    if not isfinite(value):
        raise UntrustedError("a number that is too large")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UntrustedError("a key that is given twice")
    return found


def _check_text(text: object, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest:
        raise UntrustedError("a text that is too long")
    if _CONTROL.search(text):
        raise UntrustedError("a text with control characters")
